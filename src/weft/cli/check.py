"""`weft check` and `weft schema`: is the file right, and what may stand in it?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.cli.output import WRONG_INPUT, File, Json, as_json, counted, fail, note, print_json, say

if TYPE_CHECKING:
    from weft.model import Deployment


def check(file: File, json: Json = False) -> None:
    """Validate a deployment file, the SQL of its operators included; nothing is started.

    Every problem is told with file, line, field, what was found and what would be right.

    \b
    Example:  weft check examples/meters/deployment.yaml
    """
    import typer

    from weft import spec

    report = spec.check(file)
    levels = [] if report.deployment is None else _levels(file, report.deployment)
    if json:
        print_json(
            {
                "ok": report.ok,
                "errors": [as_json(problem) for problem in report.errors],
                "warnings": [as_json(problem) for problem in report.warnings],
            }
            | ({"levels": levels} if levels else {})
        )
        raise typer.Exit(0 if report.ok else WRONG_INPUT)
    for problem in report.warnings:
        note(f"{problem.at(report.file)} (warning)")
    for problem in report.errors:
        note(problem.at(report.file))
    if report.deployment is None:
        fail(f"{report.file}: {counted(len(report.errors), 'error')}", WRONG_INPUT)
    warned = f", {counted(len(report.warnings), 'warning')}" if report.warnings else ""
    say(f"{report.file}: ok, {_summary(report.deployment)}{warned}")
    for line in levels:
        say(f"  {line}")


def _levels(file: Path, deployment: Deployment) -> list[str]:
    """Which level each query that accepts several would be kept at; only these are worth a plan here."""
    if not any(query.promise.levels for query in deployment.queries):
        return []
    from weft.cli.placing import level_lines
    from weft.plan.dataflow.ordering import with_ordering
    from weft.plan.dataflow.sharing import with_sharing

    return level_lines(file, with_sharing(with_ordering(deployment)), None)


def _summary(deployment: Deployment) -> str:
    operators = sum(len(query.operators) for query in deployment.queries)
    parts = ((deployment.sites, "site"), (deployment.sources, "source"), (deployment.queries, "query"))
    return ", ".join([*(counted(len(part), word) for part, word in parts), counted(operators, "operator")])


def schema() -> None:
    """Print the JSON Schema of deployment files, for editors and other programs.

    What the keys under `control:` do and cost is in docs/control.md.

    \b
    Example:  weft schema > deployment.schema.json
    """
    from weft import spec

    print_json(spec.schema())
