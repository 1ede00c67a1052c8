"""What has passed on which code? `results/long.json`, one entry for each version of the code, test and seed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDERS = ("src", "tests", "examples", "benchmarks")
KINDS = (".py", ".yaml", ".toml", ".txt", ".sql")
CODES_KEPT = 8  # versions of the code, the oldest is forgotten first


def fingerprint(root: Path) -> str:
    """The same for the same code, committed or not."""
    files = [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in KINDS]
    told = hashlib.sha256()
    for path in sorted(one for one in files if not {".weft", "out", "data"} & set(one.relative_to(root).parts)):
        told.update(f"{path.relative_to(root)}\0".encode())
        told.update(path.read_bytes())
    return told.hexdigest()[:16]


def commit(root: Path) -> str:
    """The commit that is checked out, where that is known."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def split(unit: str) -> tuple[str, str]:
    """A test and its seed (or what else it is parametrised by) from pytest's name for both."""
    test, _, seed = unit.partition("[")
    return test, seed.removesuffix("]")


def joined(test: str, seed: str) -> str:
    """Pytest's name for a test with a seed."""
    return f"{test}[{seed}]" if seed else test


@dataclass
class Ledger:
    """Seeds that passed on this code, what failed on any, and how long tests take."""

    path: Path
    code: str
    commit: str
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # by test: the last time
    at_least_s: dict[str, float] = field(default_factory=dict)  # by test: a budget ended it after so long

    @classmethod
    def load(cls, path: Path, code: str, commit: str) -> Ledger:
        """The ledger of a file; an empty one where there is none."""
        held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        names = ("codes", "failed", "seconds", "at_least_s")
        ledger = cls(path, code, commit, **{name: held.get(name, {}) for name in names})
        before = ledger.codes.pop(code, {"commit": commit, "passed": {}})
        ledger.codes[code] = before  # last, as the newest
        return ledger

    def passed(self, unit: str) -> bool:
        """True where it passed on this very code."""
        test, seed = split(unit)
        return seed in self.codes[self.code]["passed"].get(test, {})

    def note(self, unit: str, outcome: str, seconds: float, date: str) -> None:
        """Take down how a test ended, and keep it: a run may be stopped at any moment."""
        test, seed = split(unit)
        held = self.codes[self.code]["passed"].setdefault(test, {})
        if outcome == "passed":
            held[seed] = date
            self.failed.pop(unit, None)
            self.seconds[test] = round(seconds, 1)
            self.at_least_s.pop(test, None)
        elif outcome == "failed":
            held.pop(seed, None)
            self.failed[unit] = {"code": self.code, "commit": self.commit, "date": date}
            self.seconds[test] = round(seconds, 1)
        elif outcome == "cut off":
            self.at_least_s[test] = max(round(seconds, 1), self.at_least_s.get(test, 0.0))
        if not held:
            del self.codes[self.code]["passed"][test]
        self.save()

    def save(self) -> None:
        """Write the file as a whole or not at all."""
        kept = dict(list(self.codes.items())[-CODES_KEPT:])
        whole = {"failed": self.failed, "seconds": self.seconds, "at_least_s": self.at_least_s, "codes": kept}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}")
        temporary.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        os.replace(temporary, self.path)


def ranges(seeds: Iterable[str]) -> str:
    """Seeds for people: 1-4, 7, north."""
    numbers = sorted({int(one) for one in seeds if one.isdigit()})
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return ", ".join([*words, *sorted({one for one in seeds if one and not one.isdigit()})])
