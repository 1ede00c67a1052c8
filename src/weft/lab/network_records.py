"""The network query on recorded logs: which records come into each of its eight operators, and when.

It asks for the pairs in the top 5 % of traffic over 20 minutes, and answers continuously: an operator gives a record
for every one that changes something, so that rates go from operator to operator as the source describes.
"""

from __future__ import annotations

import csv
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from weft.plan.observing.correlation import Floats

LOGS: Mapping[str, tuple[str, tuple[str, str]]] = {
    "dns": ("ts", ("id.orig_h", "id.resp_h")),
    "ssl": ("ts", ("id.orig_h", "id.resp_h")),
    "flows": ("ts", ("id.orig_h", "id.resp_h")),
    "taxi": ("dropoff_datetime", ("medallion", "payment_type")),
}
"""Of every log the column of its moments, and the two that make a pair."""
OPERATORS = ("sort", "select", "project", "aggregate", "count", "rank", "compare", "report")
BEFORE: Mapping[str, tuple[str, ...]] = {
    "sort": (),
    "select": ("sort",),
    "project": ("select",),
    "aggregate": ("project",),
    "count": ("aggregate",),
    "rank": ("aggregate",),
    "compare": ("rank", "count"),
    "report": ("compare",),
}
"""What each operator reads."""
RANGE_S, TOP = 1_200.0, 0.95


@dataclass(frozen=True, slots=True)
class PairLog:
    """The moments of a log's records from 0 on, in order, and the pair that each is of."""

    name: str
    moments_s: Floats
    pairs: tuple[tuple[str, str], ...]


def read(folder: Path, name: str) -> PairLog:
    """A log of the folder of real data."""
    column, (one, two) = LOGS[name]
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = [(_moment_s(row[column]), row[one], row[two]) for row in csv.DictReader(file)]
    rows.sort(key=lambda row: row[0])
    moments = np.array([row[0] for row in rows])
    return PairLog(name, moments - moments[0], tuple((row[1], row[2]) for row in rows))


def _moment_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if "-" in text else float(text)


def passed(log: PairLog, range_s: float = RANGE_S) -> dict[str, list[int]]:
    """By operator, the numbers of the log's records that come into it; one that reads two streams gets each twice.

    `select` lets through pairs whose both ends are known; `compare` those updates by which a pair is in the top 5 % of
    all that were seen in the range.
    """
    every = list(range(len(log.pairs)))
    known = [at for at in every if all(end not in ("", "-") for end in log.pairs[at])]
    traffic: Counter[tuple[str, str]] = Counter()
    ranked: list[int] = []
    inside: deque[int] = deque()
    heavy: list[int] = []
    for at in known:
        inside.append(at)
        _count(traffic, ranked, log.pairs[at], 1)
        while log.moments_s[at] - log.moments_s[inside[0]] > range_s:
            _count(traffic, ranked, log.pairs[inside.popleft()], -1)
        if bisect_left(ranked, traffic[log.pairs[at]]) >= TOP * len(ranked):
            heavy.append(at)
    twice = [at for at in known for _ in range(2)]
    return {
        "sort": every, "select": every, "project": known, "aggregate": known, "count": known, "rank": known,
        "compare": twice, "report": heavy,
    }  # fmt: skip


def _count(traffic: Counter[tuple[str, str]], ranked: list[int], pair: tuple[str, str], by: int) -> None:
    """A pair's traffic grows or shrinks, and its place in the ranking with it."""
    before = traffic[pair]
    if before:
        ranked.pop(bisect_left(ranked, before))
    traffic[pair] += by
    if traffic[pair]:
        insort(ranked, traffic[pair])
    else:
        del traffic[pair]


def sampled(moments_s: Floats, every: int, window_s: float) -> tuple[Floats, Floats]:
    """When every so many-th record came, from the first whole window on, and the rate in the window that ended then."""
    at = np.arange(every - 1, len(moments_s), every)
    at = at[moments_s[at] >= window_s]
    return moments_s[at], rates_at(moments_s, moments_s[at], window_s)


def rates_at(moments_s: Floats, when_s: Floats | Sequence[float], window_s: float) -> Floats:
    """Records a second in the window that ends at each of some moments."""
    ends = np.asarray(when_s, float)
    count = np.searchsorted(moments_s, ends, "right") - np.searchsorted(moments_s, ends - window_s, "right")
    found: Floats = count / window_s
    return found


def ancestors(operator: str) -> tuple[str, ...]:
    """All operators before one, the nearest first."""
    found: list[str] = []
    ahead = list(BEFORE[operator])
    while ahead:
        name = ahead.pop(0)
        if name not in found:
            found.append(name)
            ahead += BEFORE[name]
    return tuple(found)
