"""What do Spark's lists of the files that it has taken tell? What it would read twice, and what it will not read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

from weft.spark.storage.disk import Damaged
from weft.spec.paths import pattern_in

SHOWN_MAX = 3
COMPACT = ".compact"


class Taken(NamedTuple):
    """A file that Spark has taken, with its time of change when it did and its place in the list."""

    path: str
    changed_ms: int
    batch: int


def refuse_doubled(lists: Path, after: int, upto: int) -> None:
    """Refuse a batch of several files where a path holds a character of patterns: Spark would read others twice."""
    files = _of_batch(lists, after, upto)
    odd = next((path for path in files if pattern_in(path)), None)
    if odd is not None and len(set(files)) > 1:
        what = f"`{pattern_in(odd)}` in its path makes Spark read the other files of its batch twice"
        raise Damaged(odd, what, "rename it; the same command goes on")


def refuse_gone(lists: Path, after: int, upto: int) -> None:
    """Refuse a batch of which a file is gone: Spark would not tell; or is a pipe, whose end it would wait for."""
    gone = next((path for path in _of_batch(lists, after, upto) if not os.path.isfile(path)), None)
    if gone is not None and os.path.exists(gone):
        raise Damaged(gone, "is no file that can be read to its end", "move it away; the same command goes on")
    if gone is not None:
        remedy = "bring it back, or put an empty file in its place to leave it out; the same command goes on"
        raise Damaged(gone, "is gone, though it was not read to its end", remedy)


def _of_batch(lists: Path, after: int, upto: int) -> list[str]:
    return [one.path for number in range(after + 1, upto + 1) for one in _listed(lists, number)]


class PassedOver(RuntimeError):
    """A file lies in a source, and Spark has not taken it."""


def refuse_passed_over(files: Iterable[str], lists: Path, upto: int) -> None:
    """Refuse to call a source read to its end while a file lies there that no batch up to a place in the list took."""
    taken = {os.path.realpath(one.path) for one in _taken(lists) if one.batch <= upto}
    unread = sorted(file for file in files if os.path.realpath(file) not in taken and os.path.isfile(file))
    if unread:
        raise PassedOver(
            f"{shown_name(unread[0])}: Spark has not read it, though it lies in the source; where that comes again, "
            "give it a name of plain letters: the same command goes on"
        )


def shown_name(path: str) -> str:
    """A path as it can be printed and sent, whatever bytes are in its name."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def changed_notes(checkpoints: Iterable[Path], state: Path) -> list[str]:
    """A line on files that were changed after they were taken, if there are any; those of the state are Weft's own."""
    files = sorted({file for one in checkpoints for file in _changed(one, state)})
    if not files:
        return []
    shown = ", ".join(files[:SHOWN_MAX]) + (f" and {len(files) - SHOWN_MAX} more" if len(files) > SHOWN_MAX else "")
    what = "were changed after they were" if len(files) > 1 else "was changed after it was"
    return [f"{shown} {what} read: what was added is not read; put new records into new files"]


def _changed(checkpoint: Path, state: Path) -> Iterator[str]:
    for lists in sorted((checkpoint / "sources").glob("*")):
        for path, taken_ms, _ in _taken(lists):
            try:
                changed = os.stat(path).st_mtime_ns // 1_000_000 > taken_ms
            except OSError:  # it may go once it was read
                continue
            if changed and not path.startswith(f"{state}{os.sep}"):
                yield path


def _taken(lists: Path) -> Iterator[Taken]:
    """All files of one source: those that its newest compact list holds, and those of the lists after it."""
    names = [path.name for path in lists.glob("*")]
    numbers = sorted({int(name.partition(".")[0]) for name in names if name.partition(".")[0].isdigit()})
    whole = max((number for number in numbers if f"{number}{COMPACT}" in names), default=-1)
    yield from _told(lists / f"{whole}{COMPACT}")
    for number in numbers:
        if number > whole:
            yield from _told(lists / str(number))


def _listed(lists: Path, number: int) -> Iterator[Taken]:
    """The files of one list; a compact one ends with its own, after those of all lists before it."""
    path = lists / str(number)
    for found in _told(path if path.exists() else lists / f"{number}{COMPACT}", backwards=True):
        if found.batch < number:
            return
        yield found


def _told(path: Path, backwards: bool = False) -> Iterator[Taken]:
    """What a list tells; one that is not there, or garbled, tells nothing."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    except OSError:
        return
    for line in reversed(lines) if backwards else lines:
        try:
            told = json.loads(line)
            yield Taken(unquote(urlparse(told["path"]).path), int(told["timestamp"]), int(told["batchId"]))
        except (ValueError, LookupError, TypeError):
            continue
