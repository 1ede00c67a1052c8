"""How is ordering doing? What a deployment's unit leaves beside its late records, for the run and for other units."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

MEASURED = "measured.json"
IDLE_SLACK_S = 0.2  # a batch's clock is read before it runs


def silent_for_too_long(folder: Path, nudged_s: float) -> bool:
    """Whether records have been held for longer than silence may last, since the unit ran and since it was nudged."""
    found = measured_order(folder)
    if found is None or not found["held"]:
        return False
    try:
        ran_s = (folder / MEASURED).stat().st_mtime
    except FileNotFoundError:
        return False
    return bool(time.time() - max(ran_s, nudged_s) > found["idle_ms"] / 1000 + IDLE_SLACK_S)


def measured_lag_ms(folder: str | None) -> float:
    """By how much records are held back on their way to and through an ordering operator, 0 before its first batch."""
    found = measured_order(Path(folder)) if folder else None
    return float(found["lag_ms"]) if found else 0.0


def measured_order(folder: Path) -> dict[str, Any] | None:
    """How ordering is doing, None before its first batch."""
    try:
        found: dict[str, Any] = json.loads((folder / MEASURED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found
