"""What did Spark and Python say? Their long error texts, taken apart into causes, frames and plain words."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

OURS = str(Path(__file__).resolve().parents[1])
INSTALLED = ("site-packages", "dist-packages", ".zip/", "<frozen", "/weft/spark/", "/weft/bodies/", OURS)
LIBRARIES = (*INSTALLED, f"/python{sys.version_info[0]}.")
LINKS_MAX = 20
MESSAGE_MAX = 400

_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<where>.+))?$')
_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?::(?: (?P<message>.*))?)?$")
_LINK = re.compile(r"^(?:Caused by: |: )(?P<kind>[A-Za-z_][\w.$]*)(?::(?: (?P<message>.*))?)?$")
_CLASS = re.compile(r"\[[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*\] ?")
_STATE = re.compile(r"\s*SQLSTATE: \w{5}.*$")
_ADVICE = re.compile(r' If necessary set "?spark\.[\w.]+"? to "?\w+"? to bypass this error\.?')
_FILE_URI = re.compile(r"\bfile:/+(?=[^/\s])")
_NOT_SAID = ("\tat ", "\t... ", "Driver stacktrace", "=== Streaming Query ===")


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of code on the way to an error."""

    file: str
    line: int
    where: str

    def is_of_a_user(self, folder: str) -> bool:
        """Whether the line is neither Weft's nor a library's."""
        theirs = INSTALLED if is_inside(self.file, folder) else LIBRARIES
        # What was compiled from Cython tells names that lead nowhere.
        return os.path.isabs(self.file) and not any(part in self.file for part in theirs)

    def shown(self, folder: str) -> str:
        """`rules.py:12, in over`, the file as seen from a folder."""
        where = f", in {self.where}" if self.where and self.where != "<module>" else ""
        return f"{shown(self.file, folder)}:{self.line}{where}"


@dataclass(frozen=True, slots=True)
class Link:
    """One of a chain of causes: what class of error, what it says, and, where Python raised it, on which lines."""

    kind: str
    message: str
    frames: tuple[Frame, ...] = ()

    @property
    def name(self) -> str:
        """The class without where it lives."""
        return re.split(r"[.$]", self.kind)[-1]


def whole(error: BaseException) -> str:
    """All that an error tells: its traceback, its causes in Python and, one after the other, those in Java."""
    parts = ["".join(traceback.format_exception(error)).rstrip()]
    parts.extend(f"Caused by: {_with_kind(cause)}" for cause in _captured(error))
    return "\n".join(parts) + "\n"


def _captured(error: Any) -> Iterator[Any]:
    """Causes that pyspark keeps beside an error: its text does not tell them."""
    for _ in range(LINKS_MAX):
        error = getattr(error, "_cause", None)
        if error is None:
            return
        yield error


def _with_kind(cause: Any) -> str:
    told = str(getattr(cause, "_desc", "") or "")
    # Of a class that pyspark does not know, the text begins with its name.
    return told if _RAISED.match(told.partition("\n")[0]) else f"{type(cause).__name__}: {told}"


def raised(text: str) -> Link | None:
    """The last thing that Python raised in a text, with the lines of code that led there."""
    for part in reversed(text.split(_TRACEBACK)[1:]):
        frames = []
        for line in part.splitlines()[1:]:
            frame = _FRAME.match(line)
            if frame:
                frames.append(Frame(frame["file"], int(frame["line"]), frame["where"] or ""))
            elif line[:1] not in ("", " ", "\t"):
                found = _RAISED.match(line)
                if found:
                    return Link(found["kind"], (found["message"] or "").strip(), tuple(frames))
                break
    return None


def links(text: str) -> list[Link]:
    """The chain of causes that Java tells, innermost last."""
    found: list[Link] = []
    lines = text.splitlines()
    for at, line in enumerate(lines):
        link = _LINK.match(line)
        if link:
            message = [link["message"] or ""]
            for more in lines[at + 1 :]:
                if _LINK.match(more) or more.startswith(_NOT_SAID) or not more.strip():
                    break
                message.append(more)
            found.append(Link(link["kind"], "\n".join(message).strip()))
    return found


def plain(message: str) -> str:
    """The first line of a message without Spark's names for errors and its advice to switch them off."""
    first = message.partition(";\n")[0].strip().partition("\n")[0]
    for noise in (_STATE, _ADVICE, _CLASS):
        first = noise.sub("", first)
    told = _FILE_URI.sub("/", first).strip().rstrip(".:").strip()
    return told if len(told) <= MESSAGE_MAX else f"{told[:MESSAGE_MAX]}..."


def marked_sql(text: str) -> str | None:
    """The part of a statement that Spark points at below an error."""
    lines = text.partition("== SQL")[2].splitlines()[1:]
    for above, line in pairwise(lines):
        mark = re.match(r"^ *(\^+)\s*$", line)
        if mark:
            return above[mark.start(1) : mark.end(1)].strip() or None
    return None


def local_path(address: str) -> str:
    """A path as Spark writes it, as the system knows it."""
    path = _FILE_URI.sub("/", address)
    return path if os.path.exists(path) else unquote(path)


def shown(path: str, folder: str) -> str:
    """A path from a folder, where it lies in it."""
    return os.path.relpath(path, folder) if is_inside(path, folder) else path


def is_inside(path: str, folder: str) -> bool:
    """Whether a path lies in a folder."""
    return bool(folder) and os.path.abspath(path).startswith(os.path.join(os.path.abspath(folder), ""))
