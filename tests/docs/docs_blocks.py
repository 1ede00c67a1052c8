"""What do the documents show? Their fenced blocks and the commands in them and in their tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT

SHELL = ("", "console", "sh", "bash")
# What stands for something of the reader's own, in tables of commands.
STANDS_FOR = {
    "FILE": "examples/meters/deployment.yaml", "FILE.csv": "examples/network/data/dns.csv", "COLUMN": "ts",
    "QUERY": "north", "QUERY.OPERATOR": "north.neighbourhoods", "FRAGMENT": "north.neighbourhoods", "SITE": "utility",
    "S": "5", "N": "1", "NAME": "hosting", "ROW": "P-lab2", "DIR": "state",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where it stands, what language it says it is in, and its text."""

    place: str
    language: str
    text: str


def documents() -> list[Path]:
    """Everything that people read: the README, the documents, the examples' own."""
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("examples/*/README.md"))]


def blocks(*languages: str) -> list[Block]:
    """All blocks in these languages."""
    return [one for path in documents() for one in blocks_of(path) if one.language in languages]


def blocks_of(path: Path) -> Iterator[Block]:
    """The fenced blocks of a document."""
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    opened: tuple[int, str, str] | None = None
    held: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fence = re.match(r"\s*(```+|~~~+)\s*([\w-]*)", line)
        if opened is None and fence:
            opened, held = (number, fence[1], fence[2]), []
        elif opened is not None and line.strip() == opened[1]:
            yield Block(f"{name}:{opened[0]}", opened[2], "\n".join(held) + "\n")
            opened = None
        else:
            held.append(line)
    assert opened is None, f"{name}:{opened and opened[0]}: a block that never ends"


def deployments() -> list[Block]:
    """The blocks that hold a whole deployment file."""
    return [one for one in blocks("yaml") if "weft" in (yaml.safe_load(one.text) or {})]


def commands(block: Block) -> list[list[str]]:
    """The lines of a shell block that are commands of this project, as words: `weft`, `python`, `make`."""
    found = []
    for line in block.text.replace("\\\n", " ").splitlines():
        words = line.removeprefix("$ ")
        if re.match(r"(weft|python|make) ", words):
            found.append(shlex.split(words, comments=True))
    return found


def commands_in_tables() -> list[tuple[str, list[str]]]:
    """Every cell of a table that is a `weft ...`, with something for each word that stands for the reader's own."""
    found = []
    for path in documents():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for text in re.findall(r"\|\s*`(weft [^`]+)`\s*(?=\|)", line):
                place = f"{path.relative_to(ROOT)}:{number}"
                found.append((place, [STANDS_FOR.get(word, word) for word in re.sub(r"[\[\]]", "", text).split()]))
    return found


def give_files(block: Block, folder: Path) -> Path:
    """A deployment block as a file, in a folder that has the files and functions it names, empty ones."""
    plain: dict[str, Any] = yaml.safe_load(block.text)
    for source in plain.get("sources", []):
        if "path" in source:
            path = folder / source["path"].replace("*", "x")
            path = path if path.suffix else path / f"x.{source['format']}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    for query in plain.get("queries", []):
        for operator in query["operators"]:
            module, _, function = operator.get("call", "").partition(":")
            if module:
                with open(folder / f"{module}.py", "a", encoding="utf-8") as file:
                    file.write(f"def {function}(*frames, **args):\n    return frames[0]\n")
    (folder / "deployment.yaml").write_text(block.text)
    return folder / "deployment.yaml"
