"""What came out, and how is it going? The contract's JSON of a run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from weft.bodies.live.uptime import queries_down
from weft.bodies.live.view import RunView
from weft.model import Query, sink_name
from weft.plan.dataflow.adding_up import filtered_of
from weft.plan.dataflow.ordering import is_ordering
from weft.plan.dataflow.shared_streams import reasons_of_written, shared_streams, sites_of_written

DECISIONS_SHOWN = 20


def status_of(run: RunView) -> dict[str, Any]:
    """What `weft status` shows: the summary so far, and how each query is doing right now."""
    queries = _asked(run)
    summary = summary_of(run)
    if run.phase == "running":
        summary["rates_per_s"] = {
            query.name: round(sum(run.meter.rate_per_s(sink_name(query, sink)) for sink in query.sinks), 1)
            for query in queries
        }
    return {
        "phase": run.phase,
        "at": time.time(),
        **summary,
        "backlog": {query.name: run.progress.backlog_of_query(query.name) if run.progress else 0 for query in queries},
        "down": dict(run.down),
    }


def summary_of(run: RunView) -> dict[str, Any]:
    """As the twin's, measured, plus fragments; records are of all runs of this state, rates of this run's results."""
    progress, changes = run.progress, run.changes
    fragments = {
        fragment.id: {
            "site": fragment.site,
            "query": fragment.query,
            "queries": list(fragment.queries),
            "operators": list(fragment.operators),
            "stateful": fragment.stateful,
            "reads": list(fragment.inputs),
            "writes": [*fragment.outputs, *(f"sink {name}" for name in fragment.sinks)],
            **(progress.fragment(fragment.id) if progress else {}),
        }
        for fragment in run.fragments
    }
    flowed_s = _flowed_s(run)
    if run.flowing_s is not None:
        down = queries_down(run.deployment, run.fragments, run.down, run.crashed)
        run.meter.uptime.look(run.flowing_s + flowed_s, down)
    _take_ordering(run)
    operators = progress.operators() if progress else {}
    deployment = changes.in_force.deployment if changes and changes.plan else run.deployment
    placement = changes.placement if changes else run.placement
    return {
        "queries": {query.name: _query(run, query, operators) for query in _asked(run)},
        "sites": _sites(run),
        "moves": [move.as_json() for move in changes.moves] if changes else [],
        "changes": _changes(run),
        "events": run.meter.commits,
        "flowed_s": round(flowed_s, 3),
        "rates_per_s": {
            query.name: round(run.meter.given(query) / flowed_s, 1) if flowed_s else 0.0 for query in _asked(run)
        },
        "wall_s": round(time.monotonic() - run.started_s, 3),
        "warnings": run.warnings,
        "plan": changes.in_force.number if changes else 0,
        "placement": sites_of_written(deployment, placement),
        "reasons": reasons_of_written(deployment, placement),
        **({"shared": shared_streams(deployment)} if deployment.sharing is not None else {}),
        "operators": operators,
        **_decided(run),
        **_ordering(run),
        **_syncs(run),
        "fragments": fragments,
    }


def _changes(run: RunView) -> list[dict[str, Any]]:
    """Every change that was asked for or advised, in the order of time."""
    asked = [one.as_json() for one in list(run.changes.asked.values())] if run.changes else []
    advised = run.decisions.advised() if run.decisions is not None else []
    return sorted([*asked, *advised], key=lambda one: one["at_s"])


def _decided(run: RunView) -> dict[str, Any]:
    """What rules say, where some are on: their advice, and the last that was decided on what they wish."""
    if run.decisions is None:
        return {}
    advice: dict[str, Any] = {}
    if run.advising is not None and run.deployment.control.advise is not None:
        advice = {"advice": run.advising.latest()}
    return {**advice, "decisions": run.decisions.entries()[-DECISIONS_SHOWN:]}


def _sites(run: RunView) -> dict[str, dict[str, Any]]:
    """What each site has used, which process it is, and what the directory knows of it, where there is one."""
    if run.progress is None or run.sites is None:
        return {}
    used = run.progress.sites(run.deployment, run.flowing_s)
    known = {site: {"directory": run.finding.of_site(site)} for site in used} if run.finding is not None else {}
    slack = _slack(run)
    return {
        site: {**values, **run.sites.about(site), **known.get(site, {}), **slack.get(site, {})}
        for site, values in used.items()
    }


def _slack(run: RunView) -> dict[str, dict[str, dict[str, float]]]:
    """The time left for operators, as each site itself knows it; nothing where delays are not fed back."""
    if run.progress is None or run.deployment.control.relief is None:
        return {}
    return {site: {"slack_ms": held.slack_ms} for site, held in run.progress.inbox.sites.items()}


def _asked(run: RunView) -> list[Query]:
    """The queries that somebody asks for; what others use of one that is gone is told with theirs."""
    return [query for query in run.deployment.queries if query.sinks]


def _query(run: RunView, query: Query, operators: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A query's numbers; where each record has one way, those that its operators filtered, too."""
    filtered = {stream: one["filtered"] for stream, one in operators.items()}
    return {**run.meter.query(query), "filtered": filtered_of(run.deployment, query, filtered)}


def _take_ordering(run: RunView) -> None:
    """What came too late for its place in an ordered stream is left out of results like what a watermark leaves out."""
    for stream, held in run.progress.ordering().items() if run.progress else ():
        run.meter.left_out(f"{stream}.late", int(held["late"]))


def _syncs(run: RunView) -> dict[str, Any]:
    """How long batches waited until what they wrote was on disk."""
    spent = list(run.progress.syncs_ms) if run.progress else []
    if not spent:
        return {}
    half, most = np.quantile(spent, (0.5, 0.95))
    return {"sync_ms": {"per_batch_p50": round(float(half), 2), "per_batch_p95": round(float(most), 2)}}


def _flowed_s(run: RunView) -> float:
    """Seconds that records have flowed in this run, without its stopping."""
    if run.flowing_s is None:
        return 0.0
    return (run.stopping_s or time.monotonic()) - run.flowing_s


def _ordering(run: RunView) -> dict[str, Any]:
    """How ordering is doing, by the stream it puts in order; nothing where no operator asks for it."""
    streams = [
        f"{query.name}.{operator.name}"
        for query in run.deployment.queries
        for operator in query.operators
        if is_ordering(operator)
    ]
    found = run.progress.ordering() if run.progress else {}
    return {"ordering": {stream: found[stream] for stream in streams if stream in found}} if streams else {}
