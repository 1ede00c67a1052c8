"""What does a change end and start? Two plans, and the order in which the one becomes the other.

Fragments that are equal in both stay untouched. Of the others the old ones end, upstream first; a channel whose
reader will get the records inside a fragment is drained by its old reader before that ends. Operators that read a
source directly and leave its site take a relay of their own with them, which goes on where they stopped reading; those
of a query that comes get one that reads the source whole.
Nothing at a site that is gone is ended: what ran there is fenced off, and goes on from what it had committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.model import Deployment, Placement, Query, dataflow
from weft.plan.changing.fragments import Fragment, Relays, relays_of, upstream_first
from weft.plan.changing.running_plan import RunningPlan


@dataclass(frozen=True, slots=True)
class Recut:
    """Old fragments that end, with the channels each must drain first, those that are lost, and new ones that start."""

    ends: tuple[tuple[Fragment, tuple[str, ...]], ...]
    lost: tuple[Fragment, ...]
    starts: tuple[Fragment, ...]

    @property
    def olds(self) -> tuple[Fragment, ...]:
        """All that the new plan does not have, lost or ended."""
        return (*(old for old, _ in self.ends), *self.lost)


def difference(now: RunningPlan, then: RunningPlan, gone: str | None = None) -> Recut:
    """How the fragments of one plan become those of another; at a site that is `gone` nothing ends."""
    before, after = set(now.fragments), set(then.fragments)
    ending = upstream_first(tuple(one for one in now.fragments if one not in after))
    ends = tuple((old, _drains(now.deployment, old, then.fragments)) for old in ending if old.site != gone)
    lost = tuple(old for old in ending if old.site == gone)
    return Recut(ends, lost, tuple(one for one in then.fragments if one not in before))


def _drains(deployment: Deployment, old: Fragment, after: tuple[Fragment, ...]) -> tuple[str, ...]:
    """The channels whose reader will get its records inside a fragment: what lies in them must be worked off first."""
    if not old.operators:
        goes_on = any(fragment.sinks == old.sinks and fragment.channels == old.channels for fragment in after)
        return () if goes_on or not old.channels else old.channels
    flow = dataflow(deployment)
    drains: dict[str, None] = {}
    for made in old.streams:
        new = next((one for one in after if made in one.streams), None)
        if new is None:
            continue  # its query is removed: what waits for it is nobody's
        for stream in flow.node(made).inputs:
            if stream in old.channels and flow.makes(stream) and stream not in new.channels:
                drains[stream] = None
    return tuple(drains)


def relays_kept(deployment: Deployment, before: tuple[Fragment, ...], placement: Placement) -> Relays:
    """The relays there are, and new ones for who leaves the site of a source it read directly, or comes only now.

    A relay that runs has given away what it read; who comes later reads the source whole, through a relay of its own.
    """
    found = dict(relays_of(before))
    known = {name for fragment in before for name in fragment.queries}
    for query in deployment.queries:
        for name, source in () if query.name in known else _read_elsewhere(deployment, query, placement):
            found[query.name, name, source] = f"{source}@{query.name}.{name}"
    for fragment in before:
        for name, stream in zip(fragment.trunk, fragment.streams, strict=False):  # branches read no source
            assert fragment.query is not None
            if stream not in placement.homes:
                continue
            for upstream in deployment.query(fragment.query).operator(name).from_:
                direct = upstream in fragment.sources and (fragment.query, name, upstream) not in found
                if direct and placement.home(stream) != deployment.source(upstream).site:
                    found[fragment.query, name, upstream] = f"{upstream}@{fragment.query}.{name}"
    return found


def _read_elsewhere(deployment: Deployment, query: Query, placement: Placement) -> Iterator[tuple[str, str]]:
    """Operators of a query that run elsewhere than a source they read, each with that source."""
    flow = dataflow(deployment)
    for node in flow.owned(query.name):
        for upstream in node.inputs:
            if not flow.makes(upstream) and placement.home(node.stream) != flow.sources[upstream].site:
                yield node.operator.name, upstream
