"""`weft plan --add`: what would queries more mean? What they would share, and each promise before and after."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.add import as_it_runs, read_queries
from weft.cli.finding import held_here
from weft.cli.output import WRONG_INPUT, Rows, fail, number, print_table, say
from weft.cli.placing import Placed, placed
from weft.cli.planned import LEVEL_KEYS, plain_projection, planned_json

if TYPE_CHECKING:
    from weft.model import Deployment, Query
    from weft.plan.judging.admission import Admission
    from weft.plan.judging.projection import Projection
    from weft.spec import Report

SHOWN = ("latency_ms", "p95_ms", "availability", "admitted", "reason", *LEVEL_KEYS)


def plan_with(
    file: Path, report: Report, before: Placed, add: Path, state: Path | None, fresh: bool, seed: int, ideal: bool
) -> tuple[dict[str, Any], Deployment]:
    """The plan with the queries of a file more, and the deployment that it is of; `fresh`: whatever runs by now."""
    from weft.bodies.live.state import state_folder
    from weft.plan.dataflow.offering import nearest_offered

    written = report.deployment
    assert written is not None
    if not fresh:
        written = as_it_runs(written, state_folder(file, state))
    control = replace(before.deployment.control, order=written.control.order)
    written = replace(written, control=control)
    new = read_queries(add, written)
    after, found = admitted(file, before, written, new, state, fresh, seed, ideal)
    planned = planned_json(after.deployment, after.placement, after.model_costs(ideal, now=True))
    both: dict[str, dict[str, Any]] = {
        name: {"before": _shown(found.before.get(name)), "after": _shown(one)} for name, one in found.after.items()
    }
    names = [query.name for query in new]
    told = {"added": names, "promises": both, "admitted": not found.refused, "refused": list(found.refused)}
    offers = {} if fresh else offered_now(file, state)
    offered = [asdict(one) for one in nearest_offered(after.deployment, set(names), offers)]
    return planned | told | {"offered": offered}, after.deployment


def offered_now(file: Path, state: Path | None) -> dict[str, tuple[str, ...]]:
    """The sites that offer each stream, as the directory of a run has told; empty where nothing runs."""
    found = held_here(file, state)
    told = (found.status() or {}) if found.alive() else {}
    offers: dict[str, tuple[str, ...]] = {}
    for site, one in told.get("sites", {}).items():
        for stream in (one.get("directory") or {}).get("offers", ()):
            offers[stream] = (*offers.get(stream, ()), site)
    return offers


def admitted(
    file: Path, before: Placed, written: Deployment, queries: tuple[Query, ...], state: Path | None,
    fresh: bool = False, seed: int = 0, ideal: bool = False,
) -> tuple[Placed, Admission]:  # fmt: skip
    """What would run with queries more, and what that means for promises: around what runs, else planned together."""
    from weft.bodies.live.state import state_folder
    from weft.cli.placing import in_force
    from weft.plan.changing.adding import coming
    from weft.plan.changing.running_plan import Impossible
    from weft.plan.dataflow.ordering import with_ordering
    from weft.plan.dataflow.sharing import with_sharing
    from weft.plan.judging.admission import admission, judge, projected, with_wish

    costs = before.model_costs(ideal, now=True)
    if fresh or in_force(state_folder(file, state)) is None:
        whole = replace(written, queries=(*written.queries, *queries))
        after = placed(file, with_sharing(with_ordering(whole)), state, seed=seed, fresh=True)
        was = projected(before.deployment, before.placement, costs)
        return after, admission(after.deployment, was, projected(after.deployment, after.placement, costs))
    running = before.deployment
    wish = coming(running, before.placement, queries, written.control, "it would come", "person", seed=seed)
    if isinstance(wish, Impossible):
        fail(f"{file}: {wish.why}", WRONG_INPUT)
    deployment, placement = with_wish(running, before.placement, wish)
    found = judge(running, before.placement, wish, costs)
    return replace(before, deployment=deployment, placement=placement), found


def print_compared(planned: dict[str, Any]) -> None:
    """Each query before and after, what is made already, and the verdict, where queries would come."""
    from weft.plan.dataflow.offering import Offered

    if "promises" not in planned:
        return
    rows: Rows = [
        (name, *(_cell(one[when]) for when in ("before", "after")), one["after"]["reason"])
        for name, one in planned["promises"].items()
    ]
    print_table("promises, before and after", ("query", "before", "after", "after, in words"), rows)
    for one in planned["offered"]:
        say(Offered(**one).words)
    names = ", ".join(planned["added"])
    if planned["refused"]:
        say(f"{names}: would not be admitted: " + "; ".join(planned["refused"]))
    else:
        say(f"{names}: would be admitted, and every promise that was kept is kept")


def _shown(projected: Projection | None) -> Any:
    if projected is None:
        return None
    plain = plain_projection(projected)
    return {key: plain[key] for key in SHOWN if key in plain}


def _cell(projected: dict[str, Any] | None) -> str:
    if projected is None:
        return "-"
    latency = projected["p95_ms"] if projected["p95_ms"] is not None else projected["latency_ms"]
    shown = "without bound" if latency is None else f"{number(latency)} ms"
    return f"{shown}, {'kept' if projected['admitted'] else 'broken'}"
