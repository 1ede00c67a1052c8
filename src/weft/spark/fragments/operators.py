"""How does an operator become Spark? DataFrames in, one DataFrame out."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.model import Operator
from weft.spark.failures.causes import cause_of
from weft.spark.ordering.dataframe import in_place
from weft.spec import is_stateful
from weft.spec.sql import without_distinct

WATERMARK_KEY = "spark.watermarkDelayMs"
STATEFUL_NODES = (
    "Aggregate",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "Distinct",
    "FlatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState",
    "TransformWithState",
    "TransformWithStateInPySpark",
    "TransformWithStateInPandas",
)

# Views are per session, and SQL is resolved against them at once: one operator at a time.
_views = threading.Lock()


class BadOperator(ValueError):
    """Spark refuses an operator, or its function does not give a DataFrame; a restart would not help."""


def apply(
    operator: Operator,
    inputs: dict[str, DataFrame],
    folder: str,
    late_folder: str = "",
    before: Sequence[str | None] = (),
    query: str = "",
) -> DataFrame:
    """An operator on its inputs, which are given by the names it reads them under.

    One that orders puts late records into a folder, and looks into those of the operators that ordered `before` it.
    What is wrong with it is told with its query, where that is given.
    """
    name = f"{query}.{operator.name}" if query else operator.name
    try:
        if operator.sql is not None:
            return _sql(operator.sql, inputs)
        if operator.order is not None and operator.call is None:
            return in_place(inputs[operator.from_[0]], operator.order, late_folder, before)
        assert operator.call is not None
        result = function_of(operator.call, folder)(*(inputs[name] for name in operator.from_), **operator.args)
    except (Exception, SystemExit) as error:  # a user's `sys.exit` would end the run without a word
        raise BadOperator(f"operator {name}: {cause_of(error, folder).text}") from error
    if not isinstance(result, DataFrame):
        raise BadOperator(f"operator {name}: {operator.call} gave {type(result).__name__}, not a DataFrame")
    return result


def _sql(sql: str, inputs: dict[str, DataFrame]) -> DataFrame:
    session = next(iter(inputs.values())).sparkSession
    with _views:
        for name, frame in inputs.items():
            # Quoted, so that `north.district` of another query is one name and no table of a database.
            frame.createOrReplaceTempView(f"`{name}`")
        try:
            # Spark's DISTINCT is an aggregate, which append mode refuses; its own word for streams is another one.
            plain = without_distinct(sql) if any(frame.isStreaming for frame in inputs.values()) else None
            return session.sql(sql) if plain is None else session.sql(plain).dropDuplicates()
        finally:
            for name in inputs:
                session.catalog.dropTempView(name)


def function_of(call: str, folder: str) -> Callable[..., Any]:
    """The function that `module:function` names, looked for beside the deployment file first."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module, _, name = call.partition(":")
    _forget_namesakes(module.partition(".")[0], folder)
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise BadOperator(f"{call} is not a function")
    return function  # type: ignore[no-any-return]


def _forget_namesakes(package: str, folder: str) -> None:
    """Let a module of this folder be found where one of the same name was imported from another deployment's."""
    known = getattr(sys.modules.get(package), "__file__", None)
    here = os.path.abspath(folder)
    own = (os.path.join(here, f"{package}.py"), os.path.join(here, package, "__init__.py"))
    if known is None or os.path.abspath(known) in own or not any(os.path.isfile(path) for path in own):
        return
    for name in [one for one in sys.modules if one == package or one.startswith(f"{package}.")]:
        del sys.modules[name]
    sys.path.remove(folder)
    sys.path.insert(0, folder)
    importlib.invalidate_caches()


def tagged(frame: DataFrame, column: str, delay_ms: int) -> DataFrame:
    """Mark a column as the event time that Spark's stateful operators follow, without measuring it again."""
    root = column.split(".", maxsplit=1)[0]
    metadata = {**frame.schema[root].metadata, WATERMARK_KEY: delay_ms}
    return frame.withColumn(root, F.col(f"`{root}`").alias(root, metadata=metadata))


def with_metadata(frame: DataFrame, schema: StructType) -> DataFrame:
    """Give columns from a channel back what Spark knew of them (that a column is a time window, say)."""
    marked = [field for field in schema if field.metadata]
    for field in marked:
        metadata = {key: value for key, value in field.metadata.items() if key != WATERMARK_KEY}
        if metadata:
            frame = frame.withColumn(field.name, F.col(f"`{field.name}`").alias(field.name, metadata=metadata))
    return frame


def keeps_state(operator: Operator, result: DataFrame) -> bool:
    """True if an operator keeps state between records: a function as it declares, else as written or as Spark plans."""
    if operator.call is not None and operator.stateful is not None:
        return operator.stateful
    # Some statements become stateful only where Spark optimises them (INTERSECT, say); of functions only Spark knows.
    return is_stateful(operator) or has_state_in_plan(result)


def has_state_in_plan(frame: DataFrame) -> bool:
    """True if the plan of an operator, applied to streams, holds a node that remembers."""
    return _remembers(frame._jdf.queryExecution().analyzed())


def _remembers(plan: Any) -> bool:
    children = [plan.children().apply(index) for index in range(plan.children().size())]
    name = str(plan.nodeName())
    # A join with what is no stream looks each record up, and remembers none.
    joins_streams = name == "Join" and all(child.isStreaming() for child in children)
    return name in STATEFUL_NODES or joins_streams or any(_remembers(child) for child in children)
