"""For what share of the time was a query up in the twin? While no site was lost that its results need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.model import Deployment, Query, dataflow


@dataclass(slots=True)
class Outage:
    """A site that was lost, what ran where at that moment, and when it came back, if it did.

    `taken` says since when operators that ran there run elsewhere.
    """

    site: str
    homes: Mapping[str, str]
    since_ns: int
    until_ns: int | None = None
    taken: dict[str, int] = field(default_factory=dict)

    def end_ns(self, deployment: Deployment, query: Query) -> int | None:
        """When a query was up again; None for never. A query that was not there then is as if it had been up."""
        streams = [node.stream for node in dataflow(deployment).behind(query.name)]
        if any(stream not in self.homes for stream in streams):
            return self.since_ns
        if self.site not in sites_needed(deployment, query, self.homes):
            return self.since_ns
        moved = {stream: at_ns for stream, at_ns in self.taken.items() if stream in streams}
        elsewhere = {**self.homes, **dict.fromkeys(moved, "")}
        if moved and self.site not in sites_needed(deployment, query, elsewhere):
            return max(moved.values()) if self.until_ns is None else min(self.until_ns, max(moved.values()))
        return self.until_ns


def sites_needed(deployment: Deployment, query: Query, homes: Mapping[str, str]) -> set[str]:
    """The sites of a query's sources, operators and sinks."""
    flow = dataflow(deployment)
    needed = {homes[node.stream] for node in flow.behind(query.name)}
    needed |= {flow.sources[name].site for name in flow.sources_of(query.name)}
    return needed | {outlet.site(flow, homes) for outlet in flow.outlets_of(query.name)}


def share_up(deployment: Deployment, query: Query, outages: Sequence[Outage], since_ns: int, until_ns: int) -> float:
    """The share of a span in which none of a query's sites was lost."""
    down_ns, reached_ns = 0, since_ns
    for outage in sorted(outages, key=lambda one: one.since_ns):
        back_ns = outage.end_ns(deployment, query)
        end_ns = until_ns if back_ns is None else min(until_ns, back_ns)
        down_ns += max(0, end_ns - max(reached_ns, outage.since_ns))
        reached_ns = max(reached_ns, end_ns)
    return 1.0 - down_ns / max(1, until_ns - since_ns)
