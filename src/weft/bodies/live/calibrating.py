"""What do micro-batches cost on this machine? Measured on Spark, by one run of made-up records in phases.

Fragments of every kind run side by side: without state, with windows, one that drops what came before, a join, with
several outputs, with a Python function, with a sink of csv, and two in a chain. A phase lets some of their sources give
records while the others are silent, so that batches of few and of many fragments at once are seen; in one a single
fragment gets many records. Phases come round until every fragment has ended its first batches, which do not count, and
twice after that.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from weft.bodies.live.calibration import cores
from weft.bodies.live.embedded import EmbeddedSites
from weft.bodies.live.run import Options, Run
from weft.model import Column, Deployment, Link, Operator, Query, Sink, Site, Source, Trace, Watermark
from weft.plan.judging.batch_costs import SHIPPED, BatchCosts, Crowding
from weft.plan.observing.batches import Batch, fitted, under_way

PERIOD_S = 2.0
CYCLES = 2
FLOW_S_MAX = 180.0
RATE_PER_S, RATE_PER_S_MANY = 100.0, 40_000.0
RECORDS_FEW = 2_000
COLUMNS = (Column("timestamp", "TIMESTAMP"), Column("value", "BIGINT"))
MODULE = '''
def same(value):
    """Hands every record through Python."""
    return value.mapInPandas(lambda frames: frames, value.schema)
'''
ALL = ("plain", "window", "once", "asked", "told", "fork", "python", "text", "chain")
FRAGMENTS = 9  # the chain is two, asked and told are one
MANY = ("plain", "many")
PHASES: tuple[tuple[tuple[str, ...], int], ...] = (
    (ALL, 3), (("plain",), 3), (("window",), 3), (("fork", "python"), 3), (("once", "text"), 3),
    (("asked", "told", "chain"), 3), (MANY, 1),
)  # fmt: skip
"""Which fragments' sources give records in each phase of a cycle, and for how many periods.

Many records come for so short a time that Java is told, as for nearly all deployments, that records come slowly.
"""
CYCLE_S = PERIOD_S * sum(periods for _, periods in PHASES)
STARTING = 4  # batches of each fragment that do not count
LOOK_S = 1.5
COOLING_MAX = 0.9
UNTIL_COMMITTED = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch")
"""What Spark does of a batch until its results are committed."""
TOO_BUSY = "too few batches ended to tell what they cost: this machine is too busy, try again later"


def deployment_in(folder: Path) -> Deployment:
    """Fragments of every kind, on two sites."""
    sources = tuple(
        Source(name, "here", "rate", COLUMNS, event_time="timestamp", arrivals=Trace(_rates(name), PERIOD_S))
        for name in ALL
    )

    def select(name: str, from_: str, **more: Any) -> Operator:
        return Operator(name, (from_,), sql=f"SELECT timestamp, value + 1 AS value FROM {from_}", **more)

    window = Operator(
        "all", ("window",), watermarks=(Watermark("0 seconds"),), site="here",
        sql="SELECT window(timestamp, '1 second') AS w, value % 10 AS k, count(*) AS n FROM window GROUP BY 1, 2",
    )  # fmt: skip
    once = Operator(
        "all", ("once",), watermarks=(Watermark("0 seconds"),), site="here",
        sql="SELECT DISTINCT timestamp, value FROM once",
    )  # fmt: skip
    join = Operator(
        "all", ("asked", "told"), watermarks=(Watermark("1 second"),), site="here",
        sql="SELECT a.timestamp, a.value FROM asked a JOIN told t ON a.value = t.value"
        " AND t.timestamp BETWEEN a.timestamp - INTERVAL 1 SECOND AND a.timestamp + INTERVAL 1 SECOND",
    )  # fmt: skip
    branches = tuple(select(f"branch_{number}", "all", site="here") for number in (1, 2))
    queries = (
        Query("plain", (select("all", "plain", site="here"),), _sinks("plain", "all")),
        Query("window", (window,), _sinks("window", "all")),
        Query("once", (once,), _sinks("once", "all")),
        Query("join", (join,), _sinks("join", "all")),
        Query(
            "fork",
            (select("all", "fork", site="here"), *branches),
            _sinks("fork", "all", *(one.name for one in branches)),
        ),
        Query("python", (Operator("all", ("python",), call="handed:same", site="here"),), _sinks("python", "all")),
        Query("text", (select("all", "text", site="here"),), (Sink("all", "csv", "out/text-all"),)),
        Query(
            "chain",
            (select("head", "chain", site="here"), select("tail", "head", site="there")),
            _sinks("chain", "tail"),
        ),
    )
    return Deployment(
        (Site("here"), Site("there")), sources, queries, links=(Link("here", "there"),), folder=str(folder)
    )


def _sinks(query: str, *operators: str) -> tuple[Sink, ...]:
    return tuple(Sink(name, "parquet", f"out/{query}-{name}") for name in operators)


def _rates(name: str) -> tuple[float, ...]:
    """Records a second of a source in every phase, cycle after cycle."""
    cycle = [_rate(phase) if name in phase else 0.0 for phase, periods in PHASES for _ in range(periods)]
    return (*cycle * math.ceil(FLOW_S_MAX / CYCLE_S), 0.0)


def _rate(phase: tuple[str, ...]) -> float:
    return RATE_PER_S_MANY if phase is MANY else RATE_PER_S


def calibrate(say: Callable[[str], None] = lambda text: None) -> BatchCosts:
    """Measure; takes a minute, and the start of Spark."""
    folder = Path(tempfile.mkdtemp(prefix="weft-calibrate-"))
    try:
        (folder / "handed.py").write_text(MODULE)
        heard = _Heard(say)
        load = os.getloadavg()[0]
        run = Run(deployment_in(folder), folder / "state", Options(seconds=FLOW_S_MAX, fresh=True))
        run.go(heard)
        return costs_of(heard.batches.values(), load)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Heard:
    """Collects Spark's reports while a run goes on, and ends it when there are enough."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.batches: dict[tuple[str, int], Batch] = {}
        self._say = say
        self._due_s = 0.0
        self._ends_s = math.inf

    def __call__(self, run: Run) -> None:
        now_s = time.monotonic()
        if run.flowing_s is None or not isinstance(run.sites, EmbeddedSites) or now_s < self._due_s:
            return
        self._due_s = now_s + LOOK_S
        for name, fragment in list(run.sites.runs.items()):
            for report in [] if fragment.query is None else fragment.query.recentProgress:
                took_ms = report["durationMs"].get("triggerExecution")
                if took_ms is None or report["durationMs"].get("addBatch") is None:
                    continue
                began_ms = datetime.fromisoformat(report["timestamp"].replace("Z", "+00:00")).timestamp() * 1000
                after_ms = max(0.0, took_ms - sum(report["durationMs"].get(part, 0) for part in UNTIL_COMMITTED))
                batch = Batch(name, began_ms, began_ms + took_ms, report["numInputRows"], after_ms)
                self.batches[name, report["batchId"]] = batch
        if math.isinf(self._ends_s) and _started(self.batches.values()):
            cycles_s = CYCLES * CYCLE_S
            self._ends_s = now_s + cycles_s
            self._say(f"first batches are over after {now_s - run.flowing_s:.0f} s; {cycles_s:.0f} s more")
        if now_s >= self._ends_s:
            run.stop()


def _started(batches: Iterable[Batch]) -> bool:
    """Whether every fragment has ended its first batches."""
    ended = Counter(one.fragment for one in batches)
    return len(ended) >= FRAGMENTS and min(ended.values()) >= STARTING


def costs_of(heard: Iterable[Batch], load: float) -> BatchCosts:
    """The costs that the batches of a calibration tell; ValueError where they are too few."""
    batches = sorted(heard, key=lambda one: one.began_ms)
    if not _started(batches):
        raise ValueError(TOO_BUSY)
    nth: Counter[str] = Counter()
    counting = []
    for one in batches:
        nth[one.fragment] += 1
        counting.append(nth[one.fragment] > STARTING)
    at_once = under_way(batches)
    steady = [
        (one, count)
        for one, count, counts in zip(batches, at_once, counting, strict=True)
        if counts and one.records <= RECORDS_FEW
    ]
    if not steady:
        raise ValueError(TOO_BUSY)
    crowding, fixed, spread = fitted(
        [one for one, _ in steady], [count for _, count in steady], SHIPPED.crowding, cores()
    )
    if not {"plain.all", "chain.head", "chain.tail"} <= set(fixed):
        raise ValueError(TOO_BUSY)
    # A fragment that reads a channel is as one that reads a source; both are many.
    stateless_ms = median(fixed[name] for name in ("plain.all", "chain.head", "chain.tail"))
    pace = stateless_ms / SHIPPED.stateless_ms  # for what no batch of was seen

    def more_ms(fragment: str, shipped_ms: float, count: int = 1) -> float:
        seen = fixed.get(fragment)
        return round(shipped_ms * pace if seen is None else max(0.0, seen - stateless_ms) / count, 1)

    def state_ms(fragment: str, shipped_ms: float | None) -> float:
        shipped = SHIPPED.stateful_ms if shipped_ms is None else shipped_ms
        return round(stateless_ms + more_ms(fragment, shipped - SHIPPED.stateless_ms), 1)

    first_ms = _first_ms(batches, at_once, fixed, crowding)
    second_ms = _first_ms(batches, at_once, fixed, crowding, 1)
    each_ms = [
        max(0.0, one.took_ms / crowding.slower(count) - fixed["plain.all"]) / one.records
        for one, count, counts in zip(batches, at_once, counting, strict=True)
        if counts and one.fragment == "plain.all" and one.records > RECORDS_FEW
    ]
    return BatchCosts(
        stateless_ms=round(stateless_ms, 1),
        stateful_ms=state_ms("window.all", SHIPPED.stateful_ms),
        output_ms=more_ms("fork.all", SHIPPED.output_ms, 2),
        python_ms=more_ms("python.all", SHIPPED.python_ms),
        record_ms=round(median(each_ms) / 2, 6) if each_ms else SHIPPED.record_ms,  # read, and one operator
        crowd=crowding.crowd,
        room=crowding.room,
        look_ms=round(_look_ms([one for one, _ in steady]), 1),
        first_ms=round(first_ms, 1),
        cooling=round(min(COOLING_MAX, second_ms / first_ms), 3) if first_ms else SHIPPED.cooling,
        spread=round(spread, 3),
        cores=cores(),
        setting=f"{cores()} cores, load average {load:.1f} before",
        measured_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        text_ms=more_ms("text.all", SHIPPED.text_ms),
        distinct_ms=state_ms("once.all", SHIPPED.distinct_ms),
        join_ms=state_ms("join.all", SHIPPED.join_ms),
        after_ms=round(median(one.after_ms / crowding.slower(count) for one, count in steady), 1),
    )


def _look_ms(batches: list[Batch]) -> float:
    """How long after a batch of the chain's head its tail began one, where it was idle."""
    heads = [one.ended_ms for one in batches if one.fragment == "chain.head"]
    tails = [one for one in batches if one.fragment == "chain.tail"]
    waits = []
    for before, tail in pairwise(tails):
        ends = [end for end in heads if before.ended_ms < end <= tail.began_ms]
        if ends:
            waits.append(tail.began_ms - min(ends))
    return median(waits) if waits else SHIPPED.look_ms


def _first_ms(
    batches: list[Batch],
    at_once: list[float],
    fixed: dict[str, float],
    crowding: Crowding,
    number: int = 0,
) -> float:
    """What first batches, or those of another number, took more than later ones would have among as many."""
    taken: dict[str, list[float]] = {}
    for one, count in zip(batches, at_once, strict=True):
        taken.setdefault(one.fragment, []).append(one.took_ms / crowding.slower(count))
    return median(max(0.0, each[number] - fixed[name]) for name, each in taken.items() if name in fixed)
