"""Can the records of a query come together? Links, pins and oneway streets may leave an operator no site at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weft.model import Deployment
from weft.spec.problems import Problems, listed
from weft.spec.reads import after_what_they_read


def check_reachable(deployment: Deployment, problems: Problems) -> None:
    """Reports operators and sinks to which no path of links leads from where their records are.

    Where something else is wrong with what is named, that is told instead; capacity and the tree are the planner's.
    """
    reached = _reached(deployment)
    homes: dict[str, frozenset[str]] = {one.name: frozenset({one.site}) & reached.keys() for one in deployment.sources}
    for at in after_what_they_read(deployment.queries):
        query = deployment.queries[at]
        waiting = {one.name: (index, one) for index, one in enumerate(query.operators)}
        while ready := [name for name, (_, one) in waiting.items() if not set(one.from_) & waiting.keys()]:
            for name in ready:
                index, operator = waiting.pop(name)
                field = f"queries[{at}].operators[{index}]"
                read = {stream: homes.get(stream) or homes.get(f"{query.name}.{stream}") for stream in operator.from_}
                there = frozenset(reached) if operator.site is None else frozenset({operator.site}) & reached.keys()
                able = there.intersection(*(_from(reached, one) for one in read.values() if one))
                if there and all(read.values()) and not able:
                    known = {stream: one for stream, one in read.items() if one}
                    problems.error(f"{field}.site" if operator.site else field, _says(known, operator.site))
                homes[f"{query.name}.{name}"] = able
        for index, sink in enumerate(query.sinks):
            made = homes.get(f"{query.name}.{sink.from_}")
            if made and sink.site in reached and sink.site not in _from(reached, made):
                field = f"queries[{at}].sink" + (f"[{index}]" if len(query.sinks) > 1 else "")
                problems.error(f"{field}.site", _says({sink.from_: made}, sink.site))


def _says(read: Mapping[str, frozenset[str]], site: str | None) -> str:
    where = " and ".join(f"{listed(sorted(sites))} (`{stream}`)" for stream, sites in read.items())
    if site is None:
        return f"no site can be reached from both {where}; add links"
    return f"no path of links leads from {where} to {site}; add links, or put it elsewhere"


def _from(reached: Mapping[str, frozenset[str]], sites: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(reached[site] for site in sites))


def _reached(deployment: Deployment) -> dict[str, frozenset[str]]:
    """The sites to which paths of links lead from each site, itself included."""
    ways: dict[str, set[str]] = {site.name: set() for site in deployment.sites}
    for link in deployment.links:
        for start, end in ((link.from_, link.to), *(() if link.oneway else ((link.to, link.from_),))):
            if start in ways and end in ways:
                ways[start].add(end)
    out: dict[str, frozenset[str]] = {}
    for site in ways:
        todo, found = [site], {site}
        while todo:
            new = ways[todo.pop()] - found
            found |= new
            todo += new
        out[site] = frozenset(found)
    return out
