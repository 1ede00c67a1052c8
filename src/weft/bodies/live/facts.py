"""What must a desk know of operators that only Spark can tell? Which keep state, and what columns streams have."""

from __future__ import annotations

import msgspec

from weft.model import Deployment, Operator, Query, dataflow
from weft.plan.dataflow.event_times import Passes, Stateful, passes_by_sql
from weft.spark.fragments.analysis import Analysis


class Facts(msgspec.Struct, frozen=True):
    """What Spark says: which operators (`query.operator`) keep state, and what columns every stream has."""

    stateful: frozenset[str]
    columns: dict[str, tuple[str, ...]]


def facts_of(analysis: Analysis) -> Facts:
    """What planning needs of an analysis."""
    return Facts(analysis.stateful, {stream: tuple(schema.names) for stream, schema in analysis.schemas.items()})


def meanings(deployment: Deployment, facts: Facts) -> tuple[Stateful, Passes]:
    """Facts as planning asks for them: whether an operator keeps state, and whether it hands a column through."""

    def stateful(query: Query, operator: Operator) -> bool:
        return f"{query.name}.{operator.name}" in facts.stateful

    def passes(query: Query, operator: Operator, name: str, column: str) -> bool:
        # Without state a function of several streams can only unite them: it is as far as the slowest.
        if operator.call is not None and len(operator.from_) > 1:
            return column.partition(".")[0] in facts.columns[dataflow(deployment).stream(query.name, name)]
        return passes_by_sql(query, operator, name, column)

    return stateful, passes
