"""S-lab5: what relief of hot spots is worth as queries become more, and what it and the directory cost.

Synergy §3.5, Figs 3.21 to 3.25: every site asks 1 to 10 queries, whose operators lie at sites by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random
from statistics import fmean
from typing import Any

from weft.bodies import twin
from weft.bodies.twin.directory import load_updates
from weft.lab.frame import Curve, Outcome, Progress, Row
from weft.lab.trials import correlated
from weft.model import (
    Column,
    Control,
    Cost,
    Deployment,
    Link,
    Operator,
    Placement,
    Promise,
    Query,
    Relief,
    Serve,
    Sink,
    Site,
    Source,
    Walk,
)

LOADS = (1, 2, 4, 6, 8, 10)
SEEDS = (1, 2, 3)
LEVELS = (3, 4, 5, 6, 7)
JUMPS, WANDERS = 1.0, 0.3
CAPACITIES = (0.75, 1.25)
DONE = "done"


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many sites and operators, how fast sources are, how busy sites are with ten queries each, and the promise."""

    sites: int = 10
    operators: int = 4
    rate_per_s: float = 10.0
    used_at_10: float = 0.8
    promise_ms: float = 5_000.0
    lasts_s: float = 180.0


@dataclass(frozen=True, slots=True)
class OneRun:
    """What one run gave: the share of records that missed their deadline, the delay of the others, and its moves."""

    missed: float
    delay_ms: float
    moves: int
    queries: int
    pauses_ms: tuple[float, ...]


def world(setting: Crowd, load: int, relieves: bool, seed: int) -> tuple[Deployment, Placement]:
    """So many queries at every site, chains whose operators lie at different sites; rates wander about their mean."""
    rng = Random(f"{seed} {load}")
    sites = tuple(Site(f"n{at}", rng.uniform(*CAPACITIES)) for at in range(setting.sites))
    cost_ms = 1000.0 * setting.used_at_10 / (10 * setting.operators * setting.rate_per_s)
    sources, queries = [], []
    homes: dict[str, str] = {}
    for at in range(setting.sites * load):
        home = sites[at % setting.sites].name
        most = 3.0 * setting.rate_per_s
        rates = Walk(setting.rate_per_s, 0.05 * setting.rate_per_s, 1.0, 0.0, most)
        sources.append(Source(f"s{at}", home, "rate", (Column("n"),), arrivals=rates))
        names = [f"o{step}" for step in range(setting.operators)]
        operators = tuple(
            Operator(name, (before,), sql="-", cost_ms=Cost("exponential", (cost_ms,)), selectivity=1.0)
            for name, before in zip(names, [f"s{at}", *names], strict=False)
        )
        promise = Promise(latency_ms=setting.promise_ms, loss=1.0)
        queries.append(Query(f"q{at}", operators, (Sink(names[-1], "console", site=home),), promise))
        chosen = rng.sample(sites, setting.operators)
        homes |= {f"q{at}.{name}": site.name for name, site in zip(names, chosen, strict=True)}
    links = tuple(
        Link(one.name, two.name, rng.uniform(5.0, 60.0)) for at, one in enumerate(sites) for two in sites[at + 1 :]
    )
    control = Control(serve=Serve(drop_late=True), relief=Relief() if relieves else None)
    return Deployment(sites, tuple(sources), tuple(queries), links, control), Placement(homes)


def told(setting: Crowd, load: int, relieves: bool, seed: int) -> OneRun:
    """One run; records past their promise are dropped where they wait, as published."""
    deployment, placement = world(setting, load, relieves, seed)
    result = twin.run(deployment, placement, setting.lasts_s, seed=seed)
    came = sum(one["records_in"] for one in result.queries.values())
    given = [one for one in result.queries.values() if one["latency_ms"] is not None]
    out = sum(one["records_out"] for one in given)
    changes = [one for one in result.changes if one["by"] == "relief" and one["state"] == DONE]
    return OneRun(
        missed=sum(one["dropped"] for one in result.queries.values()) / came,
        delay_ms=sum(one["latency_ms"]["mean"] * one["records_out"] for one in given) / out,
        moves=sum(len(one["wish"]["move"]) for one in changes),
        queries=len(result.queries),
        pauses_ms=tuple(one["pause_ms"] for one in changes if one["pause_ms"] is not None),
    )


def _over(setting: Crowd, relieves: bool, progress: Progress) -> list[list[OneRun]]:
    """By load, all drawings."""
    found = []
    for load in LOADS:
        progress(f"{load} queries a site, {'with' if relieves else 'without'} relief")
        found.append([told(setting, load, relieves, seed) for seed in SEEDS])
    return found


def measure(progress: Progress) -> Outcome:
    """Misses and delay over load with and without, moves over queries, and load updates over levels."""
    setting = Crowd()
    without, with_ = (_over(setting, relieves, progress) for relieves in (False, True))
    missed = [[fmean(one.missed for one in row) for row in rows] for rows in (without, with_)]
    delays = [[fmean(one.delay_ms for one in row) for row in rows] for rows in (without, with_)]
    moves = [fmean(one.moves for one in row) for row in with_]
    queries = [float(row[0].queries) for row in with_]
    pauses = [ms for row in with_ for one in row for ms in one.pauses_ms]
    updates = {pull: [load_updates(levels, pull=pull)["messages"] for levels in LEVELS] for pull in (JUMPS, WANDERS)}
    growth = {pull: counts[-1] / counts[0] for pull, counts in updates.items()}
    measured: dict[str, Any] = {
        "missed_without_at_10": round(missed[0][-1], 4),
        "missed_with_at_10": round(missed[1][-1], 4),
        "delay_ms_without_at_10": round(delays[0][-1], 1),
        "delay_ms_with_at_10": round(delays[1][-1], 1),
        "queries_per_move": round(sum(queries) / sum(moves), 2) if sum(moves) else None,
        "queries_per_move_at_10": round(queries[-1] / moves[-1], 2) if moves[-1] else None,
        "move_ms": round(fmean(pauses), 1) if pauses else None,
        "updates_3_levels": updates[JUMPS][0],
        "updates_7_levels": updates[JUMPS][-1],
        "loads": list(LOADS),
        "missed_without": [round(one, 4) for one in missed[0]],
        "missed_with": [round(one, 4) for one in missed[1]],
        "missed_without_by_seed_at_10": [round(one.missed, 4) for one in without[-1]],
        "missed_with_by_seed_at_10": [round(one.missed, 4) for one in with_[-1]],
        "delay_ms_without": [round(one, 1) for one in delays[0]],
        "delay_ms_with": [round(one, 1) for one in delays[1]],
        "queries": queries,
        "moves": [round(one, 2) for one in moves],
        "updates_jumping": updates[JUMPS],
        "updates_wandering": updates[WANDERS],
    }
    claims = {
        "misses without relief rise with load, to more than 5 % at 10 queries a site": (
            missed[0][-1] > 0.05 and missed[0][-1] == max(missed[0])
        ),
        "with relief there are fewer misses at every load that has any": all(
            b < a for a, b in zip(*missed, strict=True) if a > 0
        ),
        "with relief at most half of the misses at 10 queries a site": missed[1][-1] <= 0.5 * missed[0][-1],
        "with relief the delay of what arrives is less at 10 queries a site": delays[1][-1] < delays[0][-1],
        "moves grow with queries, linearly (correlation of at least 0.9)": correlated(queries, moves) >= 0.9,
        "at most one move for three queries": sum(moves) <= sum(queries) / 3,
        "load updates grow moderately from 3 to 7 levels (at most by the published 11 %), loads jumping": (
            growth[JUMPS] <= 277 / 249
        ),
    }
    xs = tuple(map(float, LOADS))
    curves = (
        Curve("without relief", xs, tuple(100.0 * one for one in missed[0])),
        Curve("with relief", xs, tuple(100.0 * one for one in missed[1])),
    )
    return Outcome(measured, claims, curves, ("queries a site", "records that missed their deadline, in %"))


def _text(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


ROW = Row(
    id="S-lab5",
    title="misses and delay with and without relief of hot spots",
    source="Repantis 2008, sections 3.4 and 3.5, figures 3.21 to 3.25",
    setting={**asdict(Crowd()), "loads": list(LOADS), "seeds": list(SEEDS), "levels": list(LEVELS)},
    published={
        "misses": "rise drastically without relief, are controlled with it",
        "delay": "lower with relief",
        "queries_per_move": 3,
        "move_ms": 1144,
        "updates_3_levels": 249,
        "updates_7_levels": 277,
    },
    measure=measure,
    choices=(
        "as a file that says `control: {relief: {}, serve: {drop_late: true}}`, in the twin with `--ideal`: records "
        "past their promise are dropped where they wait, as published, and are the misses; delay is that of the others",
        "how busy sites are the source does not say: by 0.8 on the mean with ten queries a site; sites differ in "
        "capacity (0.75 to 1.25), so that by chance some are asked more than they do; sources wander about their mean "
        "(steps of 5 % a second, at most three times it)",
        "a first form had sites of one capacity: none of them was asked too much even with ten queries, and nothing "
        "moved; a second had capacities of 0.5 to 1.5, where a site was asked half as much again as it does, by 40 "
        "operators: relief, which moves four at most and then rests, took a third of its misses",
        f"loads of {_text(LOADS)} queries a site; with and without begin at the same placement by chance, unadmitted",
        "a move's time is the pause of its operator; operators have no state, as published",
        "load updates: the directory's machines in virtual time, 30 sites, 300 looks each, one copy, loads up to 10 "
        "that jump as those that one component makes; where they wander, each level passed costs a word",
    ),
    misses=(
        "moves: only with eight and ten queries is any site asked more than it does, and relief moves nothing before; "
        "how busy the published sites were is not known",
        "load updates: with seven levels they are narrower than the steps by which loads wander, and each level passed "
        "costs a word",
        "the mark for moves is a bound: one for 62 queries over all loads, for 21 at ten a site, where one for three "
        "is published; updates grow from 143 to 230, published from 249 to 277",
    ),
    shrunk=(
        "10 sites instead of 34, chains of 4 operators instead of 8, a promise of 5 s instead of 20 s, 180 s a run: a "
        "look of relief at 340 queries of 8 operators takes minutes",
    ),
)
