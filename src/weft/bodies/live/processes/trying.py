"""Do all sites know the queries that are to come? The desk says which graph there is, and waits for their word.

No request and no answer: the desk says its graph to every site that says it has another, every second, and sites say
which they know and which they refuse. So what is lost, doubled or late changes nothing, and a site that comes back has
the graph before it starts anything. One that was tried and did not come does no harm: nothing of it is ever started.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from weft.bodies.live.facts import Facts, meanings
from weft.bodies.live.house import lacking
from weft.bodies.live.processes.graph import Packed
from weft.bodies.live.state import CannotRun
from weft.model import Deployment
from weft.plan.dataflow.event_times import carried_times
from weft.protocol.agents import READY, AgentHere
from weft.protocol.words import Parcel
from weft.spark.kafka.connector import needs_connector

LOOK_S = 0.1
TRY_S_MAX = 120.0
GRAPH_BYTES_MAX = 900_000


@dataclass(frozen=True, slots=True)
class Tried:
    """A deployment with queries more, as the Spark of every site that is there takes it."""

    deployment: Deployment
    facts: Facts
    lacks: str | None


class Trying:
    """The graph of the desk, and what sites say of it; `up`: the last word of each site that is there."""

    def __init__(self, deployment: Deployment, up: Callable[[], dict[str, AgentHere]]) -> None:
        self._sites = [site.name for site in deployment.sites]
        self._in_force = self._graph = Packed(deployment)
        self._up = up
        self._told: tuple[str, Facts] | None = None  # what Spark said of a graph, by its digest

    def hear(self, here: AgentHere, facts: Facts | None) -> None:
        """A site is there."""
        if facts is not None:
            self._told = here.knows, facts

    def answer(self, here: AgentHere, wants_facts: bool) -> tuple[str, Parcel, bool]:
        """What a site is told: the graph's digest, the graph if it has another, and whether facts are wanted.

        One that starts begins with what is in force: it cannot begin at all with what its Spark refuses.
        """
        graph = self._graph if here.phase == READY else self._in_force
        known = here.knows == graph.digest or len(graph.parcel.text) > GRAPH_BYTES_MAX
        untold = self._told is None or self._told[0] != graph.digest
        return graph.digest, Parcel() if known else graph.parcel, wants_facts or untold

    def try_out(self, deployment: Deployment, running: Deployment, known: Facts) -> Tried:
        """Let all sites know a deployment with queries more; CannotRun where one cannot, or does not in time."""
        if needs_connector(deployment) and not needs_connector(running):
            raise CannotRun("it needs Spark's connector to Kafka, which this run was started without: start it again")
        before, graph = self._graph, Packed(deployment)
        if len(graph.parcel.text) > GRAPH_BYTES_MAX:
            raise CannotRun("the run has too many operators to tell its sites of them: put it into the file")
        self._graph = graph
        try:
            facts = self._all_know(graph)
        except CannotRun:
            self._graph = before
            raise
        now = carried_times(deployment, *meanings(deployment, facts))
        return Tried(deployment, facts, lacking(carried_times(running, *meanings(running, known)), now, running))

    def learn(self) -> None:
        """What was tried last is to be in force."""
        self._in_force = self._graph

    def _all_know(self, graph: Packed) -> Facts:
        """Wait until all sites know a graph; what the Spark of one says of it.

        One that is away is waited for: once a query is in force, a site whose Spark refuses it can no more begin.
        """
        deadline = time.monotonic() + TRY_S_MAX
        while True:
            up = self._up()
            for site, here in up.items():
                if here.refuses == graph.digest:
                    raise CannotRun(f"site {site}: {here.reason}")
            silent = [site for site in self._sites if site not in up or up[site].knows != graph.digest]
            if not silent and self._told is not None and self._told[0] == graph.digest:
                return self._told[1]
            if time.monotonic() > deadline:
                raise CannotRun(f"not all sites have tried it within {TRY_S_MAX:.0f} s; not: {', '.join(silent)}")
            time.sleep(LOOK_S)
