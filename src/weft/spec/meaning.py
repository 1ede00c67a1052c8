"""Does it make sense? Names, references, streams, and what each part asks of the others."""

from __future__ import annotations

from weft.model import (
    AddAt,
    CrashAt,
    Deployment,
    Level,
    MoveAt,
    PartitionAt,
    Query,
    RateAt,
    RemoveAt,
    RestartAt,
    Source,
    Walk,
)
from weft.spec.addresses import check_addresses
from weft.spec.conf import check_spark
from weft.spec.ddl import is_timestamp
from weft.spec.flow import check_queries
from weft.spec.kafka import check_kafka
from weft.spec.names import check_known, check_names, check_site
from weft.spec.nested import nested_in
from weft.spec.options import check_options
from weft.spec.paths import check_paths
from weft.spec.problems import Problems, brief, did_you_mean, listed
from weft.spec.reachable import check_reachable
from weft.spec.readable import check_readable


def check_meaning(
    deployment: Deployment, problems: Problems, blocks: frozenset[str] = frozenset(), data: bool = True
) -> None:
    """Reports everything that is well written but makes no sense; `blocks` are paths of block texts.

    Without `data` the files that sources read need not be here.
    """
    check_names(deployment, problems)
    _check_sites(deployment, problems)
    for index, source in enumerate(deployment.sources):
        _check_source(source, f"sources[{index}]", deployment, problems)
    check_queries(deployment, problems, blocks)
    check_reachable(deployment, problems)
    check_paths(deployment, problems, data)
    check_readable(deployment, problems)
    check_options(deployment, problems)
    check_kafka(deployment, problems)
    check_spark(deployment, problems)
    check_addresses(deployment, problems)
    _check_levels(deployment, problems)
    _check_control(deployment, problems)
    for index, happening in enumerate(deployment.scenario):
        _check_happening(happening, f"scenario[{index}]", deployment, problems)


def _check_sites(deployment: Deployment, problems: Problems) -> None:
    parents = {site.name: site.parent for site in deployment.sites}
    reported: set[str] = set()
    for index, site in enumerate(deployment.sites):
        check_site(site.parent, f"sites[{index}].parent", deployment, problems)
        walked = [site.name]
        above = site.parent
        while above is not None and above in parents and above not in walked:
            walked.append(above)
            above = parents[above]
        if above == site.name and site.name not in reported:
            reported |= set(walked)
            round_ = " -> ".join([*walked, site.name])
            problems.error(f"sites[{index}].parent", f"the parents go round: {round_}; one of them must have none")
    seen: dict[tuple[str, str], int] = {}
    for index, link in enumerate(deployment.links):
        path = f"links[{index}]"
        check_site(link.from_, f"{path}.from", deployment, problems)
        check_site(link.to, f"{path}.to", deployment, problems)
        if link.from_ == link.to and link.from_:
            problems.error(f"{path}.to", f"`{link.to}` is linked to itself; leave it out, or name another site")
            continue
        ways = [(link.from_, link.to)] if link.oneway else [(link.from_, link.to), (link.to, link.from_)]
        taken = next((seen[way] for way in ways if way in seen), None)
        if taken is not None:
            says = f"`{link.from_}` and `{link.to}` are linked by links[{taken}] too; keep one, or make both `oneway`"
            problems.error(path, says)
        seen |= dict.fromkeys(ways, index)


def _check_source(source: Source, path: str, deployment: Deployment, problems: Problems) -> None:
    check_site(source.site, f"{path}.site", deployment, problems)
    if "-" in source.name:
        problems.warn(f"{path}.name", f"SQL must write a name with `-` in backticks: `{source.name}`")
    if source.event_time is not None and source.schema:
        names = [column.name for column in source.schema]
        found = next((one for one in source.schema if one.name.lower() == source.event_time.lower()), None)
        if found is None:
            says = f"the schema has no column `{source.event_time}`; it has: {listed(names)}"
            problems.error(f"{path}.event_time", says + did_you_mean(source.event_time, names))
        elif not is_timestamp(found.type):
            says = f"`{found.name}` is {found.type}; event time must be a TIMESTAMP column"
            problems.error(f"{path}.event_time", says)
    if source.facts.flat:
        nested = nested_in(source.schema)
        if nested:
            name, type_ = next(iter(nested.items()))
            says = f"csv holds no nested columns, and `{name}` is {brief(type_)}"
            problems.error(f"{path}.schema", f"{says}; declare it STRING, and let an operator read it, as from_json")
    if source.facts.made_up:
        if source.arrivals is None:
            says = f"is missing: a {source.format} source needs it, as {{kind: poisson, rate_per_s: 100}}"
            problems.error(f"{path}.arrivals", says)
        if source.bad_records != "fail":
            problems.error(f"{path}.bad_records", f"a {source.format} source has no bad records; leave it out")
        if source.options:
            problems.error(f"{path}.options", f"a {source.format} source is read by no reader; leave them out")
    walk = source.arrivals
    if isinstance(walk, Walk):
        most = walk.rate_per_s_max if walk.rate_per_s_max is not None else walk.rate_per_s
        if not walk.rate_per_s_min <= walk.rate_per_s <= most:
            says = f"must hold rate_per_s_min <= rate_per_s <= rate_per_s_max, found {walk.rate_per_s_min:g}, "
            problems.error(f"{path}.arrivals", f"{says}{walk.rate_per_s:g}, {most:g}")


def _check_levels(deployment: Deployment, problems: Problems) -> None:
    """Reports levels that are no second best: they go from short to long, and their worth does not rise."""
    for index, query in enumerate(deployment.queries):
        promise, path = query.promise, f"queries[{index}].promise.levels"
        if promise.levels and promise.latency_ms is None:
            problems.error(path, "needs a `latency_ms` beside it: levels are what would also do")
            continue
        better = Level(promise.latency_ms or 0.0)
        for at, level in enumerate(promise.levels):
            if level.latency_ms <= better.latency_ms:
                says = f"must be greater than the one before, {better.latency_ms:g}, found {level.latency_ms:g}"
                problems.error(f"{path}[{at}].latency_ms", says)
            if level.weight > better.weight:
                says = f"must be at most that of the one before, {better.weight:g}, found {level.weight:g}"
                problems.error(f"{path}[{at}].weight", says)
            better = level


def _check_control(deployment: Deployment, problems: Problems) -> None:
    control = deployment.control
    for name, part in (("balance", control.balance), ("scale", control.scale)):
        if part is not None and not part.low < part.target < part.high:
            says = f"must hold low < target < high, found {part.low:g}, {part.target:g}, {part.high:g}"
            problems.error(f"control.{name}", says)
    if control.scale is not None:
        problems.warn("control.scale", "only the twin acts on it so far")
    if control.balance is not None and all(site.parent is None for site in deployment.sites):
        problems.warn("control.balance", "no site has a parent: there is no tree to balance")
    relief = control.relief
    if relief is not None and relief.horizon_s < relief.period_s:
        says = f"must be at least period_s, found {relief.horizon_s:g} and {relief.period_s:g}"
        problems.error("control.relief.horizon_s", says)
    if relief is not None and all(query.promise.latency_ms is None for query in deployment.queries):
        problems.warn("control.relief", "no query promises a latency: there is nothing to relieve")


def _check_happening(happening: object, path: str, deployment: Deployment, problems: Problems) -> None:
    match happening:
        case MoveAt(move=target, to=site):
            queries = (*deployment.queries, *_coming(deployment))
            targets = [f"{query.name}.{operator.name}" for query in queries for operator in query.operators]
            check_known("operator", target, targets, f"{path}.move", problems)
            check_site(site, f"{path}.to", deployment, problems)
        case RateAt(rate=rates):
            for name in rates:
                names = [source.name for source in deployment.sources]
                check_known("source", name, names, f"{path}.rate.{name}", problems)
        case CrashAt(crash=site):
            check_site(site, f"{path}.crash", deployment, problems)
        case RestartAt(restart=site):
            check_site(site, f"{path}.restart", deployment, problems)
        case RemoveAt(remove=name):
            names = [query.name for query in (*deployment.queries, *_coming(deployment))]
            check_known("query", name, names, f"{path}.remove", problems)
        case PartitionAt(partition=pair):
            for index, site in enumerate(pair):
                check_site(site, f"{path}.partition[{index}]", deployment, problems)
            if len(pair) == 2 and pair[0] == pair[1]:
                problems.error(f"{path}.partition", f"must be two different sites, found `{pair[0]}` twice")


def _coming(deployment: Deployment) -> list[Query]:
    """The queries that the scenario brings."""
    return [query for what in deployment.scenario if isinstance(what, AddAt) for query in what.queries]
