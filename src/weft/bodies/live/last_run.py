"""What did the last run measure? Read from the lines that it left in its state folder, without Spark."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from weft.model import Observed

FILE = "measurements.jsonl"
LINES_MAX = 2000  # some three hours of a run


def last_observed(folder: Path) -> Observed | None:
    """What was observed in the last period that a run in a state folder measured whole; None where there is none."""
    for line in reversed(_lines(folder)):
        try:
            observed = msgspec.json.decode(line, type=_Observing).observed
        except msgspec.MsgspecError:  # a line that a crash cut off, or of before anything was observed
            continue
        if observed.complete:
            return observed
    return None


class _Observing(msgspec.Struct):
    observed: Observed


def _lines(folder: Path) -> list[str]:
    try:
        return (folder / FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def last_measured(folder: Path) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """Cost and selectivity of operators (query, operator) as the last run in a state folder measured them.

    What it did not come to measure, as in a few seconds without records, is what was measured before.
    """
    found: dict[tuple[str, str], tuple[float | None, float | None]] = {}
    for line in islice(reversed(_lines(folder)), LINES_MAX):
        try:
            told = json.loads(line)["operators"]
            split = {(name.rpartition(".")[0], name.rpartition(".")[2]): values for name, values in told.items()}
            here = {key: (_number(one["cost_ms"]), _number(one["selectivity"])) for key, one in split.items()}
        except (ValueError, KeyError, TypeError, AttributeError):  # a line that a crash cut off, or no such line
            continue
        found = {key: _first(known, here.get(key)) for key, known in found.items()} if found else here
        if all(None not in known for known in found.values()):
            break
    return found


def _first(
    known: tuple[float | None, float | None], before: tuple[float | None, float | None] | None
) -> tuple[float | None, float | None]:
    """What is known, and where it is not, what was before."""
    if before is None:
        return known
    return (before[0] if known[0] is None else known[0], before[1] if known[1] is None else known[1])


def last_batches(folder: Path) -> dict[str, float]:
    """How long batches of each fragment took (ms, the median) by the end of the last run in a state folder."""
    for line in reversed(_lines(folder)):
        try:
            told = json.loads(line)["fragments"]
            return {name: float(one["batch_ms"]) for name, one in told.items() if one["batch_ms"]}
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return {}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
