"""Does ordering keep the share it was asked, and at which wait? Streams of many kinds, and what a unit makes of them.

Measured on each: the share late at every moment, from the first record on and once 1,000 have been seen; the share late
at the end of those beyond the first 1,000; and the mean wait over that of the least fixed hold, known afterwards, that
keeps the share on the same stream in the same batches. `python -m tests.protocol.kept_shares` prints the worst of each.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.lab import recorded
from weft.lab.holds import least_hold
from weft.model import Order
from weft.protocol.ordering import Ordering

LOGS = {"dns": "ts", "ssl": "ts", "taxi": "pickup_datetime", "flows": "ts"}
LAWS = ("exponential", "uniform", "lognormal", "pareto", "some", "flushed")
CHANGES = ("none", "doubles", "halves", "regimes", "swings", "runs", "walks")
SEEN = 1000
START = 250
"""Before so many records a single late one is a large share of them."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of one stream: shares late, and the wait over the best fixed hold's."""

    start_max: float
    seen_max: float
    total: float
    later: float
    ratio: float


def left_late(times: np.ndarray, share: float, batch: int = 0) -> tuple[np.ndarray, float]:
    """Which records, by arrival, a unit leaves late, and the mean wait of the others; `batch` of them at once."""
    unit = Ordering(Order(late_max=share))
    step = batch or len(times)
    parts = [unit.take(times[k : k + step], at_once=batch > 0) for k in range(0, len(times), step)] + [unit.end()]
    late = np.zeros(len(times), np.bool_)
    for part in parts:
        late[part.numbers] = part.late
    return late, float(np.concatenate([part.wait[~part.late] for part in parts]).mean())


def kept(times: np.ndarray, share: float = 0.1, batch: int = 0) -> Kept:
    """One stream through a unit that was asked to keep a share."""
    late, wait = left_late(times, share, batch)
    so_far = np.cumsum(late) / np.arange(1, len(late) + 1)
    _, best = least_hold(times, int(share * len(times)), max(1, batch))
    return Kept(
        float(so_far[START:].max(initial=0.0)),
        float(so_far[SEEN:].max(initial=0.0)),
        float(late.mean()),
        float(late[SEEN:].mean()) if len(late) > SEEN else 0.0,
        wait / best if best else float("inf"),
    )


def draw_delays(law: str, mean: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Delays of a mean of so many thousand ticks, the usual gap between two records."""
    match law:
        case "exponential":
            drawn = rng.exponential(mean, count)
        case "uniform":
            drawn = rng.uniform(0, 2 * mean, count)
        case "lognormal":
            drawn = mean * rng.lognormal(-0.5, 1.0, count)
        case "pareto":
            drawn = 0.5 * mean * rng.pareto(1.5, count)
        case "some":
            drawn = np.where(rng.random(count) < 0.3, rng.exponential(3 * mean, count), 0.0)
        case _:
            drawn = np.where(rng.random(count) < 0.77, rng.uniform(1.1 * mean, 1.5 * mean, count), 0.0)
    return 1000 * drawn


def draw_change(change: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """By what each record's delay is multiplied."""
    at = np.arange(count)
    match change:
        case "doubles":
            return np.where(at < count // 2, 1.0, 2.0)
        case "halves":
            return np.where(at < count // 2, 1.0, 0.5)
        case "regimes":
            return np.repeat(rng.uniform(0.5, 2.0, count // 500 + 1), 500)[:count]
        case "swings":
            return 1 + 0.5 * np.sin(2 * np.pi * at / rng.uniform(500, 3000))
        case "runs":
            in_run = np.zeros(count)
            for start in rng.integers(0, count, count // 400):
                in_run[start : start + rng.integers(10, 60)] = 1
            return 1 + 2 * in_run
        case "walks":
            return np.exp(np.clip(np.cumsum(rng.normal(0, 0.01, count)), -1, 1))
    return np.ones(count)


def drawn_stream(law: str, change: str, count: int, seed: int) -> np.ndarray:
    """Event times in order of arrival; every other seed delays records on their way, so that they overtake."""
    rng = np.random.default_rng(seed)
    mean = float(np.exp(rng.uniform(np.log(4), np.log(200))))
    # More are drawn than are taken: a stream that ends with all stragglers of its past is none that is cut off.
    more = 2 * count
    changes = draw_change(change, count, rng)
    delays = draw_delays(law, mean, more, rng) * np.concatenate([changes, np.full(count, changes[-1])])
    moments = np.cumsum(rng.exponential(1000.0, more))
    if seed % 2:
        return moments[np.argsort(moments + delays, kind="stable")][:count].astype(np.int64)
    return (moments - delays)[:count].astype(np.int64)


def drawn_streams(counts: tuple[int, ...], seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """A stream of every law and change, and of each length."""
    for count in counts:
        for law in LAWS:
            for change in CHANGES:
                seed += 1
                yield f"{law}, {change}, {count}, seed {seed}", drawn_stream(law, change, count, seed)


def log_parts(parts: tuple[int, ...] = (1, 2, 4)) -> Iterator[tuple[str, np.ndarray]]:
    """The recorded logs, whole and cut into so many parts each."""
    for log, column in LOGS.items():
        times = recorded.read(Path(os.environ["WEFT_DATA"], f"{log}.csv")).moments(column).times
        for cut in parts:
            size = len(times) // cut
            for at in range(cut):
                yield f"{log}, part {at + 1} of {cut}", times[at * size : (at + 1) * size]


def main(seed: int = 0) -> None:
    """Print every stream that misses something, and the worst of each kind."""
    groups = {"logs": list(log_parts()), "drawn": list(drawn_streams((2500, 5000), seed))}
    for group, streams in groups.items():
        for batch in (0, 100, 500):
            found = {name: kept(times, batch=batch) for name, times in streams}
            for name, one in found.items():
                if one.later > 0.1 or one.seen_max > 0.1 or one.start_max > 0.12 or one.ratio > 1.2:
                    print(f"  {name}, batch {batch}: {_told(one)}")
            print(f"{group}, batch {batch}, {len(found)} streams")
            for field in Kept.__dataclass_fields__:
                values = np.array([getattr(one, field) for one in found.values()])
                limit = {"ratio": 1.2, "total": 0.12, "start_max": 0.12}.get(field, 0.1)
                over = (values > limit).sum()
                print(f"  {field:10s} worst {values.max():.3f} median {np.median(values):.3f} over {over}")


def _told(one: Kept) -> str:
    return (
        f"start {one.start_max:.3f} seen {one.seen_max:.3f} total {one.total:.3f} later {one.later:.3f} "
        f"wait {one.ratio:.2f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
