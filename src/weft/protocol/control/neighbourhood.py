"""What does a change touch? The sites it leaves and joins, what moves, and the streams next to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from weft.model import Deployment, Placement, dataflow
from weft.model.wishes import AddQuery, MoveTo, RemoveQuery, Replace, ScaleTo, TakeOver, Wish
from weft.protocol.control.words import Shift


def neighbourhood(deployment: Deployment, shifts: Iterable[Shift]) -> tuple[str, ...]:
    """The names of all that some moves touch: `site NAME` for sites, and streams by their own names."""
    reads = {node.stream: node.inputs for node in dataflow(deployment).nodes}
    touched: dict[str, None] = {}
    for shift in shifts:
        beside = (reader for reader, streams in reads.items() if shift.of in streams)
        sites = (f"site {site}" for site in (shift.before, shift.after) if site)
        touched.update(dict.fromkeys((*sites, shift.of, *reads.get(shift.of, ()), *beside)))
    return tuple(touched)


def shifts_of(wish: Wish, running: Placement) -> tuple[Shift, ...]:
    """What a wish would change of what runs, one entry for each home and each instance; nowhere is an empty name."""
    match wish:
        case MoveTo(homes=homes) | TakeOver(homes=homes) | AddQuery(homes=homes):
            pass
        case Replace(placement=placement):
            homes = placement.homes
        case RemoveQuery(query=query):
            homes = {stream: "" for stream in running.homes if stream.startswith(f"{query}.")}
        case ScaleTo(stream=stream, sites=sites):
            home = running.homes.get(stream, "")
            before = Counter((home, *running.instances.get(stream, ())))
            more, less = Counter(sites) - before, before - Counter(sites)
            ways = (*(("", site) for site in more.elements()), *((site, "") for site in less.elements()))
            # What is as it should be now may be otherwise at its turn: it touches its operator all the same.
            return tuple(Shift(stream, *way) for way in ways or ((home, home),))
    moved = ((stream, running.homes.get(stream, ""), to) for stream, to in homes.items())
    return tuple(Shift(stream, before, to) for stream, before, to in moved if before != to)


def with_wished(deployment: Deployment, wish: Wish) -> Deployment:
    """A deployment with the queries that a wish adds to it; a file that has changed has them already."""
    names = {query.name for query in deployment.queries}
    more = [query for query in wish.queries if query.name not in names] if isinstance(wish, AddQuery) else []
    return replace(deployment, queries=(*deployment.queries, *more)) if more else deployment
