"""What follows when a wish is granted, and why can some not be? The one door for every change, live and in the twin.

A wish is judged against the plan in force as it is when its turn comes. What it names must exist; every stream must
find a way between its ends, by links and the tree rule; a site must have room, counted by the rates of the file, unless
who asks has measured that it has. An operator that moves takes along what puts its records in order, and its further
instances stay where they are. What is taken over from a site that is gone stays cut as it was: nobody there can drain a
channel, so no operator may change its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from weft.model import Deployment, Operator, Placement, Query, Sharing, dataflow
from weft.model.wishes import AddQuery, MoveTo, RemoveQuery, Replace, ScaleTo, TakeOver, Wish
from weft.plan.changing.difference import relays_kept
from weft.plan.changing.fragments import Fragment, upstream_first, without_unused
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan
from weft.plan.dataflow.ordering import guards_of
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.dataflow.sharing import left_by
from weft.plan.network.paths import Paths

ASKERS = {
    "person": "`weft move`", "scenario": "the scenario", "file": "the file", "failover": "failover",
    "promise": "a promise", "relief": "relief", "balance": "balancing", "scale": "scaling", "place": "placement",
}  # fmt: skip
MEASURED = ("relief", "balance", "scale", "failover")
"""Who asks knows by measurement that there is room, or has no choice."""


def next_plan(now: RunningPlan, wish: Wish, rules: Rules, number: int | None = None) -> RunningPlan | Impossible:
    """The plan in which a wish is granted, or why there is none; `number` is that of the change, else the next."""
    granted: tuple[Deployment, Placement] | Impossible
    wish = as_made(now.deployment, wish)
    match wish:
        case MoveTo():
            granted = _moved(now, wish.homes, _asked_by(wish), rules, wish.by in MEASURED)
        case Replace():
            granted = _replaced(now, wish, rules)
        case TakeOver():
            granted = _taken_over(now, wish, rules)
        case ScaleTo():
            granted = _scaled(now, wish, rules)
        case AddQuery():
            granted = _added(now, wish, rules)
        case RemoveQuery():
            granted = _removed(now, wish)
    if isinstance(granted, Impossible):
        return granted
    deployment, placement = granted
    if isinstance(wish, TakeOver):
        fragments = tuple(_elsewhere(one, wish) for one in now.fragments)
    elif isinstance(wish, RemoveQuery):
        fragments = without_unused(now.fragments, dataflow(deployment))
    else:
        fragments = rules.cut(deployment, placement, relays_kept(deployment, now.fragments, placement))
        fragments = tuple(_as_it_writes(one, now.fragments) for one in fragments)
        if isinstance(wish, AddQuery):
            fragments = _with_added(now, wish, fragments)
    return RunningPlan(now.number + 1 if number is None else number, deployment, placement, fragments)


def _as_it_writes(new: Fragment, before: tuple[Fragment, ...]) -> Fragment:
    """A fragment as it ran if it only writes more than it would have to: nobody waits for that."""
    return next((old for old in before if replace(old, empty=new.empty) == new and {*old.empty} <= {*new.empty}), new)


def as_made(deployment: Deployment, wish: Wish) -> Wish:
    """A wish about an operator that is made once for several, about the one that is made."""
    sharing, flow = deployment.sharing, dataflow(deployment)
    if sharing is None:
        return wish

    def made(stream: str) -> str:
        return stream if flow.makes(stream) else sharing.stands_for(stream)

    if isinstance(wish, MoveTo):
        return replace(wish, homes={made(stream): to for stream, to in wish.homes.items()})
    return replace(wish, stream=made(wish.stream)) if isinstance(wish, ScaleTo) else wish


def _asked_by(wish: MoveTo | Replace | TakeOver | ScaleTo) -> str:
    """Who brought a change about, and why, where that says more."""
    who = f"by {ASKERS[wish.by]}"
    return who if wish.reason in ("asked for", wish.by) else f"{who}: {wish.reason}"


def _moved(
    now: RunningPlan, homes: Mapping[str, str], reason: str, rules: Rules, has_room: bool
) -> tuple[Deployment, Placement] | Impossible:
    deployment, placement = now.deployment, now.placement
    for stream in homes:
        unknown = _unknown(deployment, stream)
        if unknown:
            return Impossible(unknown)
    leaving = {stream: to for stream, to in homes.items() if placement.home(stream) != to}
    if not leaving:
        stream, to = next(iter(homes.items()), ("", ""))
        return Impossible(f"{stream} runs at {to} already" if stream else "no operator is named")
    for stream, to in list(leaving.items()):
        placement = placement.put(stream, to, f"moved there from {now.placement.home(stream)} {reason}")
        query, operator = _named(deployment, stream)
        for guard in guards_of(query, operator.name):
            along = f"{query.name}.{guard}"
            if along not in homes:
                placement = placement.put(along, to, f"goes with {operator.name}")
                leaving[along] = to
    for stream, to in leaving.items():
        why_not = why_impossible(deployment, placement, stream, to, rules.paths)
        if why_not:
            return Impossible(f"{stream}: {why_not}" if len(homes) > 1 else why_not)
    rooms = () if has_room else dict.fromkeys(leaving.values())
    full = _first(no_room(deployment, now.placement, leaving, to) for to in rooms)
    return Impossible(full) if full else (deployment, replace(placement, instances=now.placement.instances))


def _replaced(now: RunningPlan, wish: Replace, rules: Rules) -> tuple[Deployment, Placement] | Impossible:
    missing = [stream for stream in now.placement.homes if stream not in wish.placement.homes]
    if missing:
        return Impossible(f"the placement puts {missing[0]} nowhere")
    shared = next(iter(wish.placement.instances), None)
    if shared is not None and not rules.instances:
        return Impossible(_no_instances(shared))
    homes = {stream: wish.placement.home(stream) for stream in now.placement.homes}
    moved = _moved(now, homes, _asked_by(wish), rules, has_room=True)
    if isinstance(moved, Impossible):
        return Impossible("everything is there already") if "already" in moved.why else moved
    deployment, placement = moved
    return deployment, replace(placement, instances=wish.placement.instances, backups=wish.placement.backups)


def _taken_over(now: RunningPlan, wish: TakeOver, rules: Rules) -> tuple[Deployment, Placement] | Impossible:
    deployment, site = now.deployment, wish.site
    if all(one.name != site for one in deployment.sites):
        return Impossible(_no_site(deployment, site))
    stranded = [stream for stream, home in now.placement.homes.items() if home == site and stream not in wish.homes]
    if stranded:
        return Impossible(f"{stranded[0]} ran at {site} too, and has nowhere to go")
    for stream, to in wish.homes.items():
        unknown = _unknown(deployment, stream)
        if unknown:
            return Impossible(unknown)
        if to == site:
            return Impossible(f"{stream} cannot be taken over at {to}: that site is gone")
        if now.placement.home(stream) != site:
            return Impossible(f"{stream} runs at {now.placement.home(stream)}, not at {site}")
        query, operator = _named(deployment, stream)
        if operator.site == site:
            return Impossible(f"{stream} is pinned to {site}, which is gone")
        enters = [name for name in operator.from_ if _enters_at(deployment, query, name, site)]
        if enters:
            return Impossible(f"{stream} reads {enters[0]}, which enters at {site}, which is gone")
        if any(sink.from_ == operator.name and sink.site == site for sink in query.sinks):
            return Impossible(f"the sink of {stream} stands at {site}, which is gone")
    for fragment in now.fragments:
        ends = {wish.homes[stream] for stream in fragment.streams if fragment.site == site}
        if len(ends) > 1:
            return Impossible(f"{' and '.join(fragment.operators)} run as one, and can only be taken over together")
    return _moved(now, wish.homes, _asked_by(wish), rules, has_room=True)


def _enters_at(deployment: Deployment, query: Query, name: str, site: str) -> bool:
    inside = any(operator.name == name for operator in query.operators)
    return not inside and any(source.name == name and source.site == site for source in deployment.sources)


def _elsewhere(fragment: Fragment, wish: TakeOver) -> Fragment:
    """A fragment of a site that is gone, whole, at the site that takes it over; any other as it is."""
    if fragment.site != wish.site or not fragment.operators:
        return fragment
    return replace(fragment, site=wish.homes[fragment.streams[0]])


def _scaled(now: RunningPlan, wish: ScaleTo, rules: Rules) -> tuple[Deployment, Placement] | Impossible:
    unknown = _unknown(now.deployment, wish.stream)
    if unknown:
        return Impossible(unknown)
    if not wish.sites:
        return Impossible(f"{wish.stream} needs one instance at least")
    if not rules.instances:
        return Impossible(_no_instances(wish.stream))
    deployment, placement, (home, *others) = now.deployment, now.placement, wish.sites
    before = (placement.home(wish.stream), *placement.instances.get(wish.stream, ()))
    if sorted(before) == sorted(wish.sites) and home == before[0]:
        return Impossible(f"{wish.stream} runs at {', '.join(before)} already")
    if home != before[0]:
        moved = _moved(now, {wish.stream: home}, _asked_by(wish), rules, has_room=True)
        if isinstance(moved, Impossible):
            return moved
        _, placement = moved
    new = [site for site in dict.fromkeys(others) if site not in before]
    why_not = _first(why_impossible(deployment, placement, wish.stream, site, rules.paths) for site in new)
    share = 1.0 / len(wish.sites)
    rooms = () if wish.by in MEASURED else dict.fromkeys((home, *new))
    why_not = why_not or _first(no_room(deployment, now.placement, {wish.stream: to}, to, share) for to in rooms)
    if why_not:
        return Impossible(why_not)
    instances = {**placement.instances, wish.stream: tuple(others)}
    return deployment, replace(placement, instances={name: sites for name, sites in instances.items() if sites})


def _no_instances(stream: str) -> str:
    return f"{stream} cannot run as several instances here yet"


def _added(now: RunningPlan, wish: AddQuery, rules: Rules) -> tuple[Deployment, Placement] | Impossible:
    taken = why_taken(now.deployment, wish.queries)
    if taken is not None:
        return Impossible(taken)
    deployment = replace(now.deployment, queries=(*now.deployment.queries, *wish.queries))
    if deployment.sharing is not None or wish.sharing is not None:
        before = deployment.sharing or Sharing(now.deployment.queries)
        stands = {**before.stands, **(wish.sharing.stands if wish.sharing is not None else {})}
        deployment = replace(deployment, sharing=Sharing((*before.written, *wish.written), stands))
    unread = why_unread(deployment, wish.queries)
    if unread is not None:
        return Impossible(unread)
    placement = now.placement
    streams = [f"{query.name}.{operator.name}" for query in wish.queries for operator in query.operators]
    for stream in streams:
        if stream not in wish.homes:
            return Impossible(f"the placement puts {stream} nowhere")
        placement = placement.put(stream, wish.homes[stream], wish.reasons.get(stream, wish.reason))
    paths = rules.paths
    why_not = _first(why_impossible(deployment, placement, one, wish.homes[one], paths) for one in streams)
    rooms = dict.fromkeys(wish.homes.values()) if wish.by in ("person", "scenario") else ()
    why_not = why_not or _first(no_room(deployment, now.placement, wish.homes, to) for to in rooms)
    return Impossible(why_not) if why_not else (deployment, placement)


def why_taken(deployment: Deployment, queries: Iterable[Query]) -> str | None:
    """Why queries cannot have the names they have; None where they can."""
    names = {query.name for query in deployment.queries}
    return _first(_taken(deployment.query(query.name)) for query in queries if query.name in names)


def why_unread(deployment: Deployment, queries: Iterable[Query]) -> str | None:
    """Why queries of a deployment cannot read what they read; None where all of it is there."""
    flow = dataflow(deployment)
    nodes = [flow.node(f"{query.name}.{operator.name}") for query in queries for operator in query.operators]
    gone = ((node, one) for node in nodes for one in node.inputs if not flow.makes(one) and one not in flow.sources)
    return _first(f"{node.stream} reads {one}, which is not there" for node, one in gone)


def _with_added(now: RunningPlan, wish: AddQuery, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
    """What runs as it was cut, and what comes; cut anew is only a query whose stream is read and stayed inside."""
    new = {query.name for query in wish.queries}
    needed = {one.id: one.empty for one in fragments}
    given = {
        stream
        for one in now.fragments
        for stream in one.outputs
        if not {held for held in one.empty if held[0] == stream} - {*needed.get(one.id, ())}
    }
    host = {stream: one.query for one in now.fragments for stream in one.streams}
    inside = {
        host.get(name, name.partition(".")[0])
        for query in wish.queries
        for operator in query.operators
        for name in operator.from_
        if "." in name and name.partition(".")[0] not in new and name not in given
    }
    kept = tuple(one for one in now.fragments if one.query not in inside)
    here = {one.id for one in kept}
    wanted = {*new, *inside, None}
    more = tuple(one for one in fragments if one.query in wanted and one.id not in here)
    run_on = {stream for one in kept for stream in one.streams}
    if any(stream in run_on for one in more for stream in one.streams):
        return fragments  # what is cut anew takes operators along that ran apart until now
    relays = tuple(one for one in (*kept, *more) if one.query is None)
    others = tuple(one for one in (*kept, *more) if one.query is not None)
    return (*relays, *(upstream_first(others) if inside else others))


def _taken(query: Query) -> str:
    if query.sinks:
        return f"there is a query {query.name} already"
    used = ", ".join(f"{query.name}.{operator.name}" for operator in query.operators)
    return f"query {query.name} was removed, and others still use {used}: give the new one another name"


def _removed(now: RunningPlan, wish: RemoveQuery) -> tuple[Deployment, Placement] | Impossible:
    names = [query.name for query in now.deployment.queries]
    if wish.by != "file":  # what a file no longer has may be a mere name by now
        names = [query.name for query in now.deployment.queries if query.sinks]
    if wish.query not in names:
        return Impossible(f"there is no query {wish.query}; there are: {', '.join(names)}")
    if wish.by != "file" and len(names) == 1:
        return Impossible(f"{wish.query} is the only query: stop the run instead")
    sharing = now.deployment.sharing
    written = now.deployment.queries if sharing is None else sharing.written
    for query in (query for query in written if query.name != wish.query):
        for operator in query.operators:
            read = next((name for name in operator.from_ if name.startswith(f"{wish.query}.")), None)
            if read is not None:
                return Impossible(f"{query.name}.{operator.name} reads {read}: remove {query.name} first")
    deployment = left_by(now.deployment, wish.query)
    return deployment, only_of(deployment, now.placement)


def only_of(deployment: Deployment, placement: Placement) -> Placement:
    """A placement of the operators that a deployment has."""
    flow = dataflow(deployment)
    for name in ("homes", "instances", "backups", "reasons"):
        kept = {stream: held for stream, held in getattr(placement, name).items() if flow.makes(stream)}
        placement = replace(placement, **{name: kept})
    return placement


def _unknown(deployment: Deployment, stream: str) -> str | None:
    """Why a name is no operator's."""
    query_name, _, name = stream.partition(".")
    queries = {query.name: query for query in deployment.queries}
    if query_name not in queries:
        return f"there is no query {query_name}; there are: {', '.join(queries)}"
    names = [operator.name for operator in queries[query_name].operators]
    if name not in names:
        return f"query {query_name} has no operator {name}; it has: {', '.join(names)}"
    return None


def _named(deployment: Deployment, stream: str) -> tuple[Query, Operator]:
    query_name, _, name = stream.partition(".")
    query = deployment.query(query_name)
    return query, query.operator(name)


def _no_site(deployment: Deployment, site: str) -> str:
    return f"there is no site {site}; there are: {', '.join(one.name for one in deployment.sites)}"


def why_impossible(deployment: Deployment, placement: Placement, stream: str, to: str, paths: Paths) -> str | None:
    """Why an operator cannot run at a site, given where all others run; None where it can, room left aside."""
    if all(site.name != to for site in deployment.sites):
        return _no_site(deployment, to)
    flow = dataflow(deployment)
    node = flow.node(stream)
    for name, upstream in zip(node.operator.from_, node.inputs, strict=True):
        starts = (flow.site_of(upstream, placement.homes), *placement.instances.get(upstream, ()))
        why_not = _first(paths.why_not(start, to) for start in starts)
        if why_not:
            return f"it reads {name}: {why_not}"
    for reader in flow.readers(stream):
        ends = (placement.home(reader.stream), *placement.instances.get(reader.stream, ()))
        why_not = _first(paths.why_not(to, end) for end in ends)
        if why_not:
            return f"{reader.operator.name if reader.queries == node.queries else reader.stream} reads it: {why_not}"
    for outlet in flow.shown(stream):
        if outlet.sink.site is not None:
            why_not = paths.why_not(to, outlet.sink.site)
            if why_not:
                return f"its sink stands at {outlet.sink.site}: {why_not}"
    return None


def no_room(
    deployment: Deployment, placement: Placement, leaving: Mapping[str, str], to: str, share: float = 1.0
) -> str | None:
    """Why a site cannot take a share of the operators that come to it, by the rates of the file; None where it can."""
    if all(site.name != to for site in deployment.sites):
        return None
    loads = ideal_rates(deployment).load_ms
    site = deployment.site(to)
    room = 1000.0 * site.capacity * site.quota
    coming = [stream for stream, end in leaving.items() if end == to]
    planned = sum(loads[stream] for stream, home in placement.homes.items() if home == to and stream not in leaving)
    load = share * sum(loads[stream] for stream in coming)
    if load and planned + load > room:
        return (
            f"{to} has no room: {planned:.0f} ms/s planned there and {load:.0f} ms/s more, "
            f"of {room:.0f} ms/s (capacity {site.capacity:g} x quota {site.quota:g})"
        )
    return None


def _first(reasons: Iterable[str | None]) -> str | None:
    return next((reason for reason in reasons if reason), None)
