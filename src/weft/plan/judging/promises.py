"""Was a promise kept? Each part of it beside what was measured, the same from every body."""

from __future__ import annotations

from typing import Any

from weft.model import Promise


def judged(
    promise: Promise, latency_ms: float | None, records_in: int, dropped: int, availability: float | None
) -> dict[str, dict[str, Any]]:
    """Latency at the promised quantile, the share of records lost and of time up: promised, measured, kept.

    What is not promised is measured all the same; what was not measured, or not promised, is neither kept nor broken.
    Where a promise has levels, it is kept at the best that the latency keeps, which is told.
    """
    limit_ms, loss, share_up = promise.latency_ms, promise.loss, promise.availability
    level = None if latency_ms is None else promise.level(latency_ms)
    return {
        "latency_ms": {
            "promised": limit_ms,
            "quantile": promise.quantile,
            "measured": None if latency_ms is None else round(latency_ms, 3),
            "kept": None if limit_ms is None or latency_ms is None else level is not None,
        }
        | ({"level": None if level is None else level.latency_ms} if promise.levels else {}),
        "loss": {
            "promised": loss,
            "measured": round(dropped / records_in, 9) if records_in else None,
            "kept": None if loss is None or not records_in else dropped <= loss * records_in,
        },
        "availability": {
            "promised": share_up,
            "measured": None if availability is None else round(availability, 6),
            "kept": None if share_up is None or availability is None else availability >= share_up,
        },
    }


def kept(parts: dict[str, dict[str, Any]]) -> bool | None:
    """Whether every part that was promised and measured was kept; None where there is none."""
    told = [part["kept"] for part in parts.values() if part["kept"] is not None]
    return all(told) if told else None
