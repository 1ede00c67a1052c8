"""What was predicted, and what came? `weft run --twin` sets plan and twin beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.cli.output import Rows, number

if TYPE_CHECKING:
    from weft.cli.placing import Placed

QUANTILES = ("p50", "p95")
PREDICTED_HEAD = (
    "query", *(f"{what} {quantile} ms" for quantile in QUANTILES for what in ("plan", "twin", "measured")), "ratios",
)  # fmt: skip


def predicted(before: Placed, summary: dict[str, Any]) -> dict[str, Any]:
    """Of every query p50 and p95 by plan and twin, as known before the run, and as measured after the start."""
    flowed_s = float(summary.get("flowed_s") or 0.0)
    measured = {name: one.get("after_start_ms") for name, one in summary["queries"].items()}
    return compared(before, measured, flowed_s)


def compared(before: Placed, measured: dict[str, Any], flowed_s: float) -> dict[str, Any]:
    """The same of what was measured in `flowed_s` seconds."""
    from weft.bodies import twin
    from weft.plan.judging.batch_projection import project_on_spark
    from weft.plan.judging.projection import project

    if not flowed_s:
        return {}
    costs = before.model_costs(False)
    projected = (
        project(before.deployment, before.placement)
        if costs is None
        else project_on_spark(before.deployment, before.placement, costs)
    )
    try:
        result = twin.run(before.deployment, before.placement, flowed_s, costs=costs)
    except twin.CannotRun:
        return {}  # its story says why
    found: dict[str, Any] = {}
    for query in before.deployment.queries:
        plan = projected[query.name]
        # By the ideal model there is no start.
        twins = result.queries[query.name]["latency_ms" if costs is None else "after_start_ms"]
        seen = measured.get(query.name)
        one: dict[str, Any] = {
            "plan": {"p50": _rounded(plan.p50_ms), "p95": _rounded(plan.p95_ms)},
            "twin": None if twins is None else {key: _rounded(twins[key]) for key in QUANTILES},
            "measured": None if seen is None else {key: _rounded(seen[key]) for key in QUANTILES},
        }
        one["ratio"] = {by: _ratios(one[by], one["measured"]) for by in ("plan", "twin")}
        found[query.name] = one
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _ratios(said: dict[str, float | None] | None, seen: dict[str, float | None] | None) -> dict[str, float | None]:
    """What was predicted over what was measured."""
    ratios: dict[str, float | None] = {}
    for key in QUANTILES:
        above, below = (said or {}).get(key), (seen or {}).get(key)
        ratios[key] = round(above / below, 3) if above is not None and below else None
    return ratios


def predicted_rows(found: dict[str, Any]) -> Rows:
    """As a table."""
    rows = []
    for name, one in found.items():
        cells = [number((one[what] or {}).get(key)) for key in QUANTILES for what in ("plan", "twin", "measured")]
        told = [one["ratio"][by][key] for by in ("plan", "twin") for key in QUANTILES]
        rows.append((name, *cells, " ".join("-" if value is None else f"{value:.2f}" for value in told)))
    return rows
