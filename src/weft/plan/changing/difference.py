"""What does a move change? Two sets of fragments, and the order in which the one becomes the other.

Fragments that are equal in both stay untouched. Of the others the old ones end, upstream first; a channel whose
reader will get the records inside a fragment is drained by its old reader before that ends. Operators that read a
source directly and leave its site take a relay of their own with them, which goes on where they stopped reading.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.model import Deployment, Placement
from weft.plan.changing.fragments import Fragment, Relays, cut, relays_of
from weft.plan.dataflow.event_times import Passes, Stateful
from weft.plan.dataflow.graph import stream_of
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.network.paths import Paths


@dataclass(frozen=True, slots=True)
class Recut:
    """Old fragments that end, with the channels each must drain first, and new ones that start."""

    ends: tuple[tuple[Fragment, tuple[str, ...]], ...]
    starts: tuple[Fragment, ...]
    fragments: tuple[Fragment, ...]


def why_impossible(deployment: Deployment, placement: Placement, query: str, operator: str, to: str) -> str | None:
    """The reason why an operator may not move to a site, None where it may: sites, links, tree rule, planned load."""
    if to not in {site.name for site in deployment.sites}:
        return f"there is no site {to}; there are: {', '.join(site.name for site in deployment.sites)}"
    paths = Paths(deployment)
    found = deployment.query(query)
    step = found.operator(operator)
    homes = {one.name: placement.home(f"{query}.{one.name}") for one in found.operators}
    for upstream in step.from_:
        start = homes.get(upstream) or deployment.source(upstream).site
        why_not = paths.why_not(start, to)
        if why_not:
            return f"it reads {upstream}: {why_not}"
    for reader in found.consumers(operator):
        why_not = paths.why_not(to, homes[reader.name])
        if why_not:
            return f"{reader.name} reads it: {why_not}"
    for sink in found.sinks:
        if sink.from_ == operator and sink.site is not None:
            why_not = paths.why_not(to, sink.site)
            if why_not:
                return f"its sink stands at {sink.site}: {why_not}"
    return _no_room(deployment, placement, query, operator, to)


def _no_room(deployment: Deployment, placement: Placement, query: str, operator: str, to: str) -> str | None:
    loads = ideal_rates(deployment).load_ms
    site = deployment.site(to)
    room = 1000.0 * site.capacity * site.quota
    planned = sum(loads[_where(stream)] for stream in placement.on(to) if stream != f"{query}.{operator}")
    load = loads[query, operator]
    if load and planned + load > room:
        return (
            f"{to} has no room: {planned:.0f} ms/s planned there and {load:.0f} ms/s more, "
            f"of {room:.0f} ms/s (capacity {site.capacity:g} x quota {site.quota:g})"
        )
    return None


def _where(stream: str) -> tuple[str, str]:
    query, _, operator = stream.partition(".")
    return query, operator


def recut(
    deployment: Deployment, before: tuple[Fragment, ...], placement: Placement, stateful: Stateful, passes: Passes
) -> Recut:
    """How the fragments that run become those of another placement."""
    after = cut(deployment, placement, stateful, passes, _relays(deployment, before, placement))
    ending = [fragment for fragment in before if fragment not in after]
    starting = tuple(fragment for fragment in after if fragment not in before)
    ends = tuple((fragment, _drains(deployment, fragment, after)) for fragment in upstream_first(tuple(ending)))
    return Recut(ends, starting, after)


def _drains(deployment: Deployment, old: Fragment, after: tuple[Fragment, ...]) -> tuple[str, ...]:
    """The channels whose reader will get its records inside a fragment: what lies in them must be worked off first."""
    if not old.operators:
        goes_on = any(fragment.sinks == old.sinks and fragment.channels == old.channels for fragment in after)
        return () if goes_on or not old.channels else old.channels
    assert old.query is not None
    query = deployment.query(old.query)
    drains: dict[str, None] = {}
    for name in old.operators:
        new = next(one for one in after if one.query == old.query and name in one.operators)
        for upstream in query.operator(name).from_:
            stream = stream_of(query, upstream)
            if stream in old.channels and stream != upstream and stream not in new.channels:
                drains[stream] = None
    return tuple(drains)


def _relays(deployment: Deployment, before: tuple[Fragment, ...], placement: Placement) -> Relays:
    """The relays there are, and new ones for operators that leave the site of a source they read directly."""
    found = dict(relays_of(before))
    for fragment in before:
        for name in fragment.operators:
            assert fragment.query is not None
            for upstream in deployment.query(fragment.query).operator(name).from_:
                direct = upstream in fragment.sources and (fragment.query, name, upstream) not in found
                if direct and placement.home(f"{fragment.query}.{name}") != deployment.source(upstream).site:
                    found[fragment.query, name, upstream] = f"{upstream}@{fragment.query}.{name}"
    return found


def upstream_first(fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
    """Fragments in an order in which each stands after the writers of what it reads."""
    waiting = list(fragments)
    ordered: list[Fragment] = []
    while waiting:
        written = {stream for fragment in waiting for stream in fragment.outputs}
        ready = [fragment for fragment in waiting if not set(fragment.channels) & (written - set(fragment.outputs))]
        assert ready, "streams between fragments have no cycle"
        ordered.extend(ready)
        waiting = [fragment for fragment in waiting if fragment not in ready]
    return tuple(ordered)
