"""Which queries run record by record? Those that promise milliseconds from Kafka to Kafka, where Spark can do it.

Spark's real-time mode keeps one task for each partition running, so that a record leaves as soon as it came; batches
only say how far it has come. It takes Kafka to Kafka, SQL without joins of streams, and update mode; it gives results
at least once. Such a query is one fragment at the site of its source, and its operators do not move.
"""

from __future__ import annotations

from dataclasses import replace

from weft.model import Dataflow, Deployment, Query, dataflow
from weft.spec import is_stateful, keys_of

PROMISED_MS_MAX = 250.0
"""A promise up to here is less than micro-batches on a busy machine can be trusted to keep."""


def asks_for_it(query: Query) -> bool:
    """True if a query promises milliseconds."""
    return query.promise.latency_ms is not None and query.promise.latency_ms <= PROMISED_MS_MAX


def why_not(deployment: Deployment, query: Query) -> str | None:
    """Why a query cannot run record by record; None where it can."""
    flow = dataflow(deployment)
    sources = flow.sources_of(query.name)
    away = [name for name in sources if not flow.sources[name].facts.has_topic]
    if away or not sources:
        return f"it reads {', '.join(away) or 'no source'}, which is not in Kafka"
    if len(query.sinks) != 1 or not query.sinks[0].facts.has_topic:
        return "it must write to one topic, and nothing else"
    if query.sinks[0].exact:
        return "its sink is exact, and real-time mode gives results at least once"
    if flow.reads_others(query.name) or _is_read(flow, query):
        return "it shares streams with another query"
    return _of_operators(query) or _of_sources(flow, query) or _of_sites(deployment, query)


def _is_read(flow: Dataflow, query: Query) -> bool:
    own = {node.stream for node in flow.owned(query.name)}
    return any(reader.stream not in own for stream in own for reader in flow.readers(stream))


def _of_operators(query: Query) -> str | None:
    kept = [operator for operator in query.operators if is_stateful(operator)]
    for operator in query.operators:
        if operator.sql is None:
            return f"`{operator.name}` is a Python function"
        if operator.order is not None or operator.late is not None:
            return f"`{operator.name}` orders or keeps late records"
        if len(query.consumers(operator.name)) + (operator.name == query.sinks[0].from_) != 1:
            return f"`{operator.name}` is read by several, or by none"
        if operator in kept and len(operator.from_) > 1:
            return f"`{operator.name}` joins streams"
        if operator in kept and query.sinks[0].mode != "update" and keys_of(operator):
            return f"`{operator.name}` aggregates: say `mode: update` on its sink, which then gets every change"
    if len(kept) > 1:
        return "it has several operators with state"
    if kept and any(len(operator.from_) > 1 for operator in query.operators):
        return "Spark unites no streams beside state in this mode"
    return None


def _of_sources(flow: Dataflow, query: Query) -> str | None:
    for name in flow.sources_of(query.name):
        if flow.sources[name].bad_records == "skip":
            return f"source {name} counts bad records (`bad_records: skip`)"
        if len([node for node in flow.owned(query.name) if name in node.inputs]) > 1:
            return f"source {name} is read twice"
    return None


def _of_sites(deployment: Deployment, query: Query) -> str | None:
    flow = dataflow(deployment)
    sites = {flow.sources[name].site for name in flow.sources_of(query.name)}
    sites |= {operator.site for operator in query.operators if operator.site is not None}
    sites |= {sink.site for sink in query.sinks if sink.site is not None}
    return f"it is spread over the sites {', '.join(sorted(sites))}" if len(sites) > 1 else None


def real_time(deployment: Deployment) -> tuple[str, ...]:
    """The queries that run record by record."""
    asking = [query for query in deployment.queries if asks_for_it(query)]
    return tuple(query.name for query in asking if why_not(deployment, query) is None)


def with_real_time(deployment: Deployment) -> Deployment:
    """The same, with the operators of such queries held at the site of their source."""
    chosen = real_time(deployment)
    if not chosen:
        return deployment
    flow = dataflow(deployment)
    queries = []
    for query in deployment.queries:
        if query.name in chosen:
            home = flow.sources[flow.sources_of(query.name)[0]].site
            operators = tuple(replace(operator, site=home) for operator in query.operators)
            query = replace(query, operators=operators, sinks=(replace(query.sinks[0], site=home),))  # noqa: PLW2901
        queries.append(query)
    return replace(deployment, queries=tuple(queries))


def real_time_notes(deployment: Deployment) -> list[str]:
    """What users are told of queries that promise milliseconds from Kafka, one line each."""
    notes = []
    for query in deployment.queries:
        if not asks_for_it(query):
            continue
        sources = [deployment.source(name) for name in dataflow(deployment).sources_of(query.name)]
        reason = why_not(deployment, query)
        if reason is None:
            notes.append(f"{query.name}: runs record by record (Spark's real-time mode), results at least once")
        elif any(source.facts.has_topic for source in sources) and any(sink.facts.has_topic for sink in query.sinks):
            notes.append(f"{query.name}: promises milliseconds, and cannot run record by record: {reason}")
    return notes
