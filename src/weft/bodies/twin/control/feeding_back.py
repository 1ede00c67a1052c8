"""What does each site know of the delays of its queries? In virtual time, sites tell one another what they measure.

It changes nothing of a run: words travel over the links beside the records, and what has arrived by the next look is
known then. A site that is lost forgets all; one that comes back begins another life.
"""

from __future__ import annotations

from typing import Protocol

from weft.bodies.twin.control.carrier import Carrier
from weft.model import Deployment, Observed, Placement, dataflow
from weft.plan.judging.slack import sites_of
from weft.plan.network.paths import Paths
from weft.protocol import Effect
from weft.protocol.feedback import (
    DelayBeat,
    DelayMeasured,
    DelaysAre,
    DelayWord,
    Feedback,
    LeavesOff,
    TakesPart,
    slack_at,
)

NS_PER_S = 1_000_000_000


class SitesThere(Protocol):
    """What feeding back needs of steering."""

    def up(self, site: str) -> bool: ...
    def running(self) -> Placement: ...
    def message_ns(self, sender: str, to: str) -> int | None: ...


class FeedingBack:
    """The feedback of all sites, and what each of them knows by now."""

    def __init__(self, deployment: Deployment, steered: SitesThere) -> None:
        self.deployment, self.steered = deployment, steered
        self._carrier = Carrier(steered.message_ns, self._perform, 0)
        self._lives: dict[str, int] = {}
        self._parts: dict[tuple[str, str], TakesPart] = {}
        self._known: dict[tuple[str, str], tuple[DelayWord, ...]] = {}
        self._paths = Paths(deployment)
        self._promised = [one.name for one in deployment.queries if one.promise.latency_ms is not None]

    def seen(self, observed: Observed) -> None:
        """A period was measured: what was sent before has arrived, and sites tell what they measured."""
        now_ns = round(observed.at_s * NS_PER_S)
        self._until(now_ns)
        self._carrier.now_ns = now_ns
        for one in self.deployment.sites:
            self._attend(one.name)
        for query in self._promised:
            sites = sites_of(self.deployment, query, self.steered.running().homes)
            self._take_parts(query, sites)
            for site in sites:
                self._measure(query, site, observed)
                self._carrier.take(site, DelayBeat(query))
        self._carrier.story.clear()

    def slack(self, at_s: float) -> dict[str, dict[str, float]]:
        """By site and operator, in ms, what each site knows at a moment; of queries of which it knows enough."""
        self._until(round(at_s * NS_PER_S))
        found: dict[str, dict[str, float]] = {}
        for (site, query), words in sorted(self._known.items()):
            slack = slack_at(site, self.deployment, query, words, self._paths)
            if slack is not None:
                found.setdefault(site, {}).update({name: round(ms, 3) for name, ms in slack.items()})
        return found

    def _until(self, now_ns: int) -> None:
        while (due_ns := self._carrier.next_ns()) is not None and due_ns <= now_ns:
            self._carrier.step()

    def _attend(self, site: str) -> None:
        """A site that is lost takes all it knew with it; one that is back begins anew."""
        is_here = site in self._carrier.machines
        if self.steered.up(site) and not is_here:
            self._lives[site] = self._lives.get(site, 0) + 1
            self._carrier.add(Feedback(site, self._lives[site]))
        elif is_here and not self.steered.up(site):
            self._carrier.lose(site)
            self._parts = {key: part for key, part in self._parts.items() if key[0] != site}
            self._known = {key: words for key, words in self._known.items() if key[0] != site}

    def _take_parts(self, query: str, sites: tuple[str, ...]) -> None:
        """Whoever runs something of a query is told where else it runs, and others that they do no more."""
        for site in [site for site, name in self._parts if name == query and site not in sites]:
            del self._parts[site, query]
            self._known.pop((site, query), None)
            self._carrier.take(site, LeavesOff(query))
        for site in sites:
            part = TakesPart(query, sites[0], sites)
            if self._parts.get((site, query)) != part and site in self._carrier.machines:
                self._parts[site, query] = part
                self._carrier.take(site, part)

    def _measure(self, query: str, site: str, observed: Observed) -> None:
        """A site tells what it measured in the period, where it did."""
        flow, homes = dataflow(self.deployment), self.steered.running().homes
        time_ms, latency = observed.sites[site].time_ms, observed.queries[query].latency_ms
        here = [node.stream for node in flow.behind(query) if homes[node.stream] == site]
        ends = latency is not None and any(outlet.site(flow, homes) == site for outlet in flow.outlets_of(query))
        took = tuple((stream, round(time_ms)) for stream in here) if time_ms is not None else ()
        if took or ends:
            delay_ms = round(latency.mean) if latency is not None and ends else None
            self._carrier.take(site, DelayMeasured(query, took, delay_ms))

    def _perform(self, site: str, effect: Effect) -> None:
        if isinstance(effect, DelaysAre):
            self._known[site, effect.query] = effect.words
