"""Which streams carry event time, and where does it come from?

A watermark belongs to a stream, not to the place where an operator happens to run. So every stream that some
watermark downstream depends on carries, with each segment, how far its event time has come. Along stateless
operators that hand the column through unchanged it is the least over the inputs: a union is only as far as its
slowest input, whatever arrived first. Out of an operator with a watermark it is that watermark. Anywhere else it
is measured: the greatest value seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from weft.model import Column, Deployment, Operator, Query, Watermark, dataflow
from weft.model.dataflow import SameDeployment

Stateful = Callable[[Query, Operator], bool]
Passes = Callable[[Query, Operator, str, str], bool]
Origin = Literal["measured", "passed", "watermark"]


@dataclass(frozen=True, slots=True)
class Times:
    """For every stream the time columns it carries, and where each comes from."""

    origins: dict[tuple[str, str], Origin]

    def columns(self, stream: str) -> tuple[str, ...]:
        """The time columns a stream carries, sorted; a relay carries what its source does."""
        return tuple(sorted(column for name, column in self.origins if name == _carried(stream)))

    def origin(self, stream: str, column: str) -> Origin:
        """Where the time of a column comes from."""
        return self.origins[_carried(stream), column]


def _carried(stream: str) -> str:
    return stream.partition("@")[0]


def watermark_of(deployment: Deployment, query: Query, operator: Operator, name: str) -> Watermark | None:
    """The watermark an operator sets on one of its inputs, its column resolved; None where it sets none."""
    for watermark in operator.watermarks:
        if watermark.input in (None, name):
            column = watermark.column or time_column_of(deployment, query, name)
            return Watermark(watermark.delay, column, name) if column else None
    return None


def time_column_of(deployment: Deployment, query: Query, name: str) -> str | None:
    """The event time of a stream where none is named, as the check finds it; None where none is handed on."""
    from weft.spec import event_time_of

    every = _columns(SameDeployment(deployment))
    own = {operator.name: every[f"{query.name}.{operator.name}"] for operator in query.operators}
    return event_time_of(deployment, query, name, {**every, **own})


@lru_cache(maxsize=16)
def _columns(key: SameDeployment) -> dict[str, tuple[Column, ...] | None]:
    from weft.spec import columns

    return columns(key.deployment)


def passes_by_sql(query: Query, operator: Operator, name: str, column: str) -> bool:
    """Whether an operator's SQL hands a time column of an input on unchanged; of Python nothing is known."""
    from weft.spec import passes_through

    return passes_through(operator, name, column)


def carried_times(deployment: Deployment, stateful: Stateful, passes: Passes) -> Times:
    """Follow every watermark back to where its event time is born."""
    flow, queries = dataflow(deployment), {query.name: query for query in deployment.queries}
    origins: dict[tuple[str, str], Origin] = {}

    def follow(stream: str, column: str) -> None:
        if (stream, column) in origins:
            return
        if not flow.makes(stream):
            origins[stream, column] = "measured"
            return
        node = flow.node(stream)
        query, operator = queries[node.queries[0]], node.operator
        if stateful(query, operator):
            # What puts records in order has come as far as the last record that it let go.
            is_watermark = operator.watermarks and operator.order is None
            origins[stream, column] = "watermark" if is_watermark else "measured"
            return
        if all(passes(query, operator, upstream, column) for upstream in operator.from_):
            origins[stream, column] = "passed"
            for upstream in node.inputs:
                follow(upstream, column)
            return
        origins[stream, column] = "measured"

    for node in flow.nodes:
        for name, stream in zip(node.operator.from_, node.inputs, strict=True):
            watermark = watermark_of(deployment, queries[node.queries[0]], node.operator, name)
            if watermark is not None and watermark.column is not None:
                follow(stream, watermark.column)
    return Times(origins)
