"""What did rules decide in a run? A line of JSON for each entry of the log, in the run's folder, over all its starts.

An entry is written when it is new and again when it has come to its end; the last line of an entry counts. A file of
more than a million bytes is put aside once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FILE = "decisions.jsonl"
ASIDE = ".jsonl.1"
FILES = (FILE, "decisions.jsonl.1")
BYTES_MAX = 1_000_000


class DecisionFile:
    """Writes what is decided; nothing rests on it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def write(self, entry: dict[str, Any]) -> None:
        """One entry as it is now."""
        if self.path.exists() and self.path.stat().st_size > BYTES_MAX:
            os.replace(self.path, self.path.with_suffix(ASIDE))
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry, default=str) + "\n")


def kept_decisions(folder: Path) -> list[dict[str, Any]]:
    """All that runs of a state folder decided and wrote down, the oldest first; what cannot be read is left out."""
    found: dict[tuple[Any, Any], dict[str, Any]] = {}
    for path in (folder / FILE).with_suffix(ASIDE), folder / FILE:
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                entry = json.loads(line)
                found[entry["at_s"], entry["number"]] = entry
            except (ValueError, TypeError, KeyError):
                continue
    return list(found.values())
