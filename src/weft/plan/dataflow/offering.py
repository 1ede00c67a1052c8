"""Which streams that queries ask for are made already, and where? The nearest to their results (Synergy §2.3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from weft.model import Deployment, dataflow
from weft.plan.dataflow.meanings import meanings


@dataclass(frozen=True, slots=True)
class Offered:
    """A stream of a query that comes, one that means the same and is made already, and the sites that offer that."""

    stream: str
    same: str
    sites: tuple[str, ...]

    @property
    def words(self) -> str:
        """In a sentence for people."""
        offered = f"{self.stream} is offered by {', '.join(self.sites)} already, as {self.same}"
        return f"{offered} (`from: {self.same}` would read that from where it stands)"


def nearest_offered(
    deployment: Deployment, queries: Set[str], offers: Mapping[str, Sequence[str]]
) -> tuple[Offered, ...]:
    """The streams of some queries that others offer, nearest to results; `offers` are sites by stream, as told."""
    flow, known = dataflow(deployment), meanings(deployment)
    there: dict[str, str] = {}
    for stream in offers:
        if flow.makes(stream) and not queries & set(flow.node(stream).queries):
            there.setdefault(known[stream].key, stream)
    found: dict[str, Offered] = {}
    waiting = [outlet.stream for name in sorted(queries) for outlet in flow.outlets_of(name)]
    seen: set[str] = set()
    while waiting:
        stream = waiting.pop(0)
        if stream in seen or not flow.makes(stream) or not queries & set(flow.node(stream).queries):
            continue
        seen.add(stream)
        same = there.get(known[stream].key)
        if same is None:
            waiting += flow.node(stream).inputs
        else:
            found[stream] = Offered(stream, same, tuple(offers[same]))
    return tuple(found.values())
