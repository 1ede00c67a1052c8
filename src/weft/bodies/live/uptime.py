"""For what share of the time was a query up? All fragments behind its results at once, since records began to flow.

A fragment is down from when it fails, or its site is lost, until all run again. A move is no failure: how long results
paused is told with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.model import Deployment, dataflow
from weft.plan.changing.fragments import Fragment, source_of


def serves(deployment: Deployment, fragment: Fragment, query: str) -> bool:
    """Whether a fragment lies on a way to a query's results: its own, another query's that it reads, or a relay."""
    flow = dataflow(deployment)
    if fragment.query is None:
        return source_of(fragment.outputs[0]) in flow.sources_of(query)
    behind = {node.stream for node in flow.behind(query)}
    return fragment.query == query or any(stream in behind for stream in fragment.streams)


class Uptime:
    """Adds up, look by look, how long each query was up; what is seen holds from the look before."""

    def __init__(self) -> None:
        self._then_s: float | None = None
        self._all_s = 0.0
        self._down_s: dict[str, float] = {}

    def look(self, now_s: float, down: Collection[str]) -> None:
        """Some queries are down at a moment; the first look only begins."""
        if self._then_s is not None and now_s > self._then_s:
            self._all_s += now_s - self._then_s
            for query in down:
                self._down_s[query] = self._down_s.get(query, 0.0) + now_s - self._then_s
        self._then_s = now_s if self._then_s is None else max(now_s, self._then_s)

    def share(self, query: str) -> float | None:
        """The share of the time in which a query was up; None before any has passed."""
        return 1.0 - self._down_s.get(query, 0.0) / self._all_s if self._all_s else None


def queries_down(
    deployment: Deployment, fragments: Sequence[Fragment], down: Collection[str], lost: Collection[str]
) -> set[str]:
    """The queries with a fragment that does not run, or at a site that is lost."""
    gone = [fragment for fragment in fragments if fragment.id in down or fragment.site in lost]
    return {query.name for query in deployment.queries if any(serves(deployment, one, query.name) for one in gone)}
