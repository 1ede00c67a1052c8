"""Does each name stand for one thing that is there?"""

from __future__ import annotations

from collections.abc import Sequence

from weft.model import Deployment
from weft.spec.problems import Problems, unknown


def check_site(name: str | None, field: str, deployment: Deployment, problems: Problems) -> None:
    """Reports a site that is not there."""
    check_known("site", name, [site.name for site in deployment.sites], field, problems)


def check_known(kind: str, name: str | None, known: Sequence[str], field: str, problems: Problems) -> None:
    """Reports a name that stands for nothing, unless there is nothing to choose from."""
    if name is not None and known and name not in known:
        problems.error(field, unknown(kind, name, known))


def check_names(deployment: Deployment, problems: Problems) -> None:
    """Reports names that stand for two things."""
    _unique([site.name for site in deployment.sites], "sites", problems)
    _unique([source.name for source in deployment.sources], "sources", problems)
    _unique([query.name for query in deployment.queries], "queries", problems)
    sources = {source.name.lower(): source.name for source in deployment.sources}
    for at, query in enumerate(deployment.queries):
        _unique([operator.name for operator in query.operators], f"queries[{at}].operators", problems)
        for index, operator in enumerate(query.operators):
            hidden = sources.get(operator.name.lower())
            if hidden is not None and operator.name:
                says = f"`{operator.name}` is also the source `{hidden}`; rename the operator: one name is one stream"
                problems.error(f"queries[{at}].operators[{index}].name", says)


def _unique(names: Sequence[str], path: str, problems: Problems) -> None:
    """Reports a name that stands twice; case does not tell names apart, as in Spark."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        before = first.setdefault(name.lower(), index)
        if before != index and name:
            line = problems.line(f"{path}[{before}].name")
            where = f"{path}[{before}]" + (f" (line {line})" if line is not None else "")
            as_written = "" if names[before] == name else f" as `{names[before]}`, and case does not tell names apart"
            problems.error(f"{path}[{index}].name", f"`{name}` is taken by {where}{as_written}; rename one")
