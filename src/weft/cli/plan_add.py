"""`weft plan --add`: what would queries more mean? What they would share, and each promise before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.add import as_it_runs, read_queries
from weft.cli.output import WRONG_INPUT, Rows, fail, number, print_table, say
from weft.cli.placing import Placed, placed
from weft.cli.planned import planned_json

if TYPE_CHECKING:
    from weft.model import Deployment, Query
    from weft.spec import Report

SHOWN = ("latency_ms", "p95_ms", "availability", "admitted", "reason")


def plan_with(
    file: Path, report: Report, before: Placed, add: Path, state: Path | None, fresh: bool, seed: int, ideal: bool
) -> tuple[dict[str, Any], Deployment]:
    """The plan with the queries of a file more, and the deployment that it is of; `fresh`: whatever runs by now."""
    written = report.deployment
    assert written is not None
    if not fresh:
        written = as_it_runs(written, file, state)
    control = replace(before.deployment.control, order=written.control.order)
    written = replace(written, control=control)
    new = read_queries(add, written)
    after, why_not = _with_added(file, before, written, new, state, fresh, seed)
    return _compared(before, after, tuple(query.name for query in new), why_not, ideal), after.deployment


def _with_added(
    file: Path, before: Placed, written: Deployment, queries: tuple[Query, ...], state: Path | None, fresh: bool,
    seed: int,
) -> tuple[Placed, str | None]:  # fmt: skip
    """What would run with queries more, and why they would be refused: around what runs, else planned together."""
    from weft.bodies.live.state import state_folder
    from weft.cli.placing import in_force
    from weft.plan.changing.adding import coming
    from weft.plan.changing.next_plan import no_room
    from weft.plan.changing.running_plan import Impossible
    from weft.plan.dataflow.ordering import with_ordering
    from weft.plan.dataflow.sharing import with_sharing

    if fresh or in_force(state_folder(file, state)) is None:
        whole = replace(written, queries=(*written.queries, *queries))
        return placed(file, with_sharing(with_ordering(whole)), state, seed=seed, fresh=True), None
    running = before.deployment
    wish = coming(running, before.placement, queries, written.control, "it would come", "person", seed=seed)
    if isinstance(wish, Impossible):
        fail(f"{file}: {wish.why}", WRONG_INPUT)
    whole = replace(running, queries=(*running.queries, *wish.queries))
    placement = before.placement
    for stream, site in wish.homes.items():
        placement = placement.put(stream, site, wish.reasons.get(stream, wish.reason))
    full = (no_room(whole, before.placement, wish.homes, to) for to in dict.fromkeys(wish.homes.values()))
    return replace(before, deployment=whole, placement=placement), next((why for why in full if why), None)


def _compared(
    before: Placed, after: Placed, names: tuple[str, ...], why_not: str | None, ideal: bool
) -> dict[str, Any]:
    """The plan with queries more, each query's projection before and after, and whether they would be admitted."""
    was = planned_json(before.deployment, before.placement, before.model_costs(ideal))
    planned = planned_json(after.deployment, after.placement, after.model_costs(ideal))
    both: dict[str, dict[str, Any]] = {
        name: {"before": _shown(was["projected"].get(name)), "after": _shown(planned["projected"][name])}
        for name in planned["projected"]
    }
    broken = [
        f"{name}: {one['after']['reason']}"
        for name, one in both.items()
        if not one["after"]["admitted"] and (one["before"] is None or one["before"]["admitted"])
    ]
    refused = [*([why_not] if why_not else []), *broken]
    return planned | {"added": list(names), "promises": both, "admitted": not refused, "refused": refused}


def print_compared(planned: dict[str, Any]) -> None:
    """Each query before and after, and the verdict, where queries would come."""
    if "promises" not in planned:
        return
    rows: Rows = [
        (name, *(_cell(one[when]) for when in ("before", "after")), one["after"]["reason"])
        for name, one in planned["promises"].items()
    ]
    print_table("promises, before and after", ("query", "before", "after", "after, in words"), rows)
    names = ", ".join(planned["added"])
    if planned["refused"]:
        say(f"{names}: would not be admitted: " + "; ".join(planned["refused"]))
    else:
        say(f"{names}: would be admitted, and every promise that was kept is kept")


def _shown(projected: dict[str, Any] | None) -> Any:
    return None if projected is None else {key: projected[key] for key in SHOWN}


def _cell(projected: dict[str, Any] | None) -> str:
    if projected is None:
        return "-"
    latency = projected["p95_ms"] if projected["p95_ms"] is not None else projected["latency_ms"]
    shown = "without bound" if latency is None else f"{number(latency)} ms"
    return f"{shown}, {'kept' if projected['admitted'] else 'broken'}"
