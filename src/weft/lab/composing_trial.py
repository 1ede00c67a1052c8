"""One trial of composition: all requests of a world by one algorithm, and what their queries take at the end."""

from __future__ import annotations

import heapq
from dataclasses import replace
from functools import cache
from random import Random
from statistics import fmean, stdev
from typing import NamedTuple

from weft.lab.composing_body import Body
from weft.lab.composing_rivals import RIVALS, State, latency_us
from weft.lab.composing_world import Land, Survey, drawn
from weft.plan.composing.values import Broken, Graph
from weft.protocol.composing import Admitted, ComposerLimits, Keeper, KeeperLimits
from weft.protocol.composing.words import Confirm

OURS = "Synergy"
ELSEWHERE = 3
FIND_US, PROBE_US = 200_000, 100_000
LIMITS = ComposerLimits(tells=False, confirm_ms=5_000)
KEEPER = KeeperLimits()
# Student's t for 95 % of the mean, by the number of seeds.
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262, 40: 2.023}


class Told(NamedTuple):
    """What became of the requests of a trial."""

    requests: int
    admitted: int
    kept: int
    """Admitted, and within its promise at the end."""
    latency_ms: float
    """Mean over admitted queries, at the end."""
    probes: int
    setup_ms: float
    """Mean from asking to being admitted; 0 where it is not measured."""


class Unguarded(Keeper):
    """A keeper as Composition has it: looks at resources and time so far, not at what others were promised."""

    __slots__ = ()

    def too_much(self, name: str, work: int) -> Broken | None:
        """Whether there is room."""
        needs, self.needs_most = self.needs_most, 0
        broken = super().too_much(name, work)
        self.needs_most = needs
        return broken

    def wrong(self, row: object, asked: Confirm) -> Broken | None:
        """What is reserved is confirmed."""
        return super().wrong(row, Confirm(asked.attempt, asked.piece, asked.feeds, 0, 0, asked.turn))  # type: ignore[arg-type]


def composed(land: Land, limits: ComposerLimits = LIMITS, keeper: type[Keeper] = Keeper) -> Body:
    """All requests by the machines, as they come; runs until everything has ended."""

    def freest(site: str) -> tuple[str, ...]:
        loads = ((body.machines[one].load / capacity, one) for one, capacity in land.capacity.items())  # type: ignore[attr-defined]
        return tuple(one for _, one in heapq.nsmallest(ELSEWHERE, loads))

    body = Body(land.capacity, land.ways, land.hosts, freest, FIND_US, PROBE_US, limits, KEEPER, keeper)
    for request in land.requests:
        body.ask(request.site, request.ask, request.at_us)
    body.run()
    assert not body.left_behind(), body.left_behind()[:3]
    return body


def ours(land: Land, limits: ComposerLimits = LIMITS) -> Told:
    """The machines' trial."""
    body = composed(land, limits)
    graphs = {name: one.answer.graph for name, one in body.words.items() if isinstance(one.answer, Admitted)}
    load = {keeper.name: keeper.load for keeper in body.keepers()}
    waits = [one.answered_us - one.asked_us for one in body.words.values() if isinstance(one.answer, Admitted)]
    return _judged(land, load, graphs, body.probes, fmean(waits) / 1_000 if waits else 0.0)


def rival(land: Land, name: str, seed: int) -> Told:
    """A rival's trial; set-up is not measured."""
    state = State(land, dict.fromkeys(land.capacity, 0))
    rng = Random(f"{name}/{seed}")
    for request in land.requests:
        sites = RIVALS[name](state, request, rng)
        if sites is not None:
            state.place(request, sites)
    return _judged(land, state.load, state.graphs, state.probes, 0.0)


def _judged(land: Land, load: dict[str, int], graphs: dict[str, Graph], probes: int, setup_ms: float) -> Told:
    took = {name: _latency_us(land, load, graphs, name) for name in graphs}
    full = {site for site, capacity in land.capacity.items() if load[site] >= capacity}
    kept = sum(
        took[name] <= land.requests[int(name[1:])].limit_us and not any(hop.site in full for hop in graph.hops)
        for name, graph in graphs.items()
    )
    return Told(len(land.requests), len(graphs), kept, fmean(took.values()) / 1_000 if took else 0.0, probes, setup_ms)


def _latency_us(land: Land, load: dict[str, int], graphs: dict[str, Graph], name: str, until: str = "") -> int:
    """What a record takes through a query; where it leans on another, through that one first."""
    graph, request = graphs[name], land.requests[int(name[1:])]
    leans = graph.hops[0].leans
    if not leans:
        return latency_us(land, load, request, graph, until)
    other, _, piece = leans.partition(" ")
    before_us = _latency_us(land, load, graphs, other.partition("#")[0], piece)
    if graph.hops[0].piece == until:
        return before_us
    return before_us + latency_us(land, load, request, Graph(graph.hops[1:]), until)


@cache
def trial(setting: Survey, name: str, seed: int) -> Told:
    """One algorithm on one drawing."""
    land = drawn(setting, seed)
    if name == OURS:
        return ours(land)
    return rival(land, name, seed)


@cache
def plain_setup(setting: Survey, seed: int) -> tuple[int, float]:
    """Probes and set-up of Composition: the same machines without sharing and projection, new operators only beside."""
    body = composed(drawn(setting, seed), _plain(), Unguarded)
    waits = [one.answered_us - one.asked_us for one in body.words.values() if isinstance(one.answer, Admitted)]
    return body.probes, fmean(waits) / 1_000 if waits else 0.0


def _plain() -> ComposerLimits:
    """What Composition does not do."""
    return ComposerLimits(tells=False, confirm_ms=LIMITS.confirm_ms, shares=False, deploys=False)


def interval(values: list[float]) -> dict[str, float]:
    """The mean, and by how much the mean of more seeds may differ (95 %)."""
    half = STUDENT[len(values)] * stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"mean": round(fmean(values), 4), "plus_minus": round(half, 4)}


def grown(setting: Survey, sites: int) -> Survey:
    """The same world with more or fewer sites: operators, requests and their rate in proportion."""
    by = sites / setting.sites
    return replace(
        setting, sites=sites, operators=max(1, round(setting.operators * by)),
        requests=max(1, round(setting.requests * by)), per_s=setting.per_s * by,
    )  # fmt: skip
