"""Which records of a batch came behind the watermark? Those that Spark's stateful operators left out, one by one.

Spark counts what a watermark drops, but by rows of a shuffle, which may each stand for many records, and it forgets
the records themselves. Its count is asked first, since it costs next to nothing: where it is 0, nothing is done. Where
it is not, the plan of the batch is taken up once more, up to the input of the stateful operator. There each row either
is behind the watermark that Spark used in this batch or it is not, and each carries the record of the operator's input
that it came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.spark.fragments.operators import STATEFUL_NODES, WATERMARK_KEY

INPUT = "_weft_input_"
RECORD = "_weft_record"
METRIC = "numRowsDroppedByWatermark"
_CHECK = "spark.sql.streaming.unsupportedOperationCheck"
_MULTIPLYING = ("Expand", "Generate")  # one record may become several rows, as in windows that slide

Path = tuple[int, ...]


def as_input(frame: DataFrame, number: int) -> DataFrame:
    """A frame that can be found again in the plan as the input of that number of the stateful operator."""
    return frame.alias(f"{INPUT}{number}")


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many rows a batch's stateful operators dropped, by Spark's count, and behind which watermark they were."""

    rows: int
    watermark_ms: int


class LateRecords:
    """Finds, batch by batch, what the watermark of one streaming query left out."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self.session = session
        self.name = name
        self._query: Any = None
        self._paths: list[Path] | None = None

    def dropped(self) -> Dropped | None:
        """What Spark says that it dropped of the batch just run; None where that is nothing."""
        execution = self.execution()
        if execution is None:
            return None
        rows, watermark_ms = 0, 0
        for node in self._counting(execution.executedPlan()):
            dropped = int(node.metrics().apply(METRIC).value())
            watermark = node.eventTimeWatermarkForLateEvents() if dropped else None
            if watermark is not None and watermark.isDefined():
                rows, watermark_ms = rows + dropped, int(watermark.get())
        return Dropped(rows, watermark_ms) if rows else None

    def records(self, number: int, watermark_ms: int) -> DataFrame | None:
        """The records of an input behind the watermark in the batch just run; None where a plan does not tell them."""
        execution = self.execution()
        assert execution is not None, "its batch has just run"
        try:
            found = _stateful_above(execution.logical(), f"{INPUT}{number}")
            plans = _Plans(self.session, execution)
            return None if found is None else plans.late(*found, f"{INPUT}{number}", watermark_ms)
        except (PySparkException, Py4JError):  # a plan of a kind that nobody has thought of
            return None

    def execution(self) -> Any | None:
        """What Spark runs, or has just run, for the query."""
        if self._query is None:
            active = self.session._jsparkSession.streams().active()
            self._query = next((one.streamingQuery() for one in active if one.name() == self.name), None)
        return None if self._query is None else self._query.lastExecution()

    def _counting(self, plan: Any) -> list[Any]:
        """The parts of a plan that count what they drop; where they lie is looked up once."""
        if self._paths is not None:
            found = [_at(plan, path) for path in self._paths]
            if all(node is not None and node.metrics().contains(METRIC) for node in found):
                return found
        self._paths = [path for path, node in _walk(plan) if node.metrics().contains(METRIC)]
        return [_at(plan, path) for path in self._paths]


@dataclass(frozen=True, slots=True)
class _Carried:
    """A plan that carries an input's records in a column; `many`: one record may have become several rows."""

    plan: Any
    record: Any
    many: bool = False


class _Plans:
    """Takes parts of a batch's plan as DataFrames."""

    def __init__(self, session: SparkSession, execution: Any) -> None:
        self.session = session
        self.own = execution.sparkSession()  # the query's own copy of the session: what is set there stays there
        self.own.conf().set(_CHECK, "false")

    def late(self, node: Any, side: int, filters: list[Any], label: str, watermark_ms: int) -> DataFrame | None:
        """The records of an input that are behind the watermark where they come to a stateful node."""
        child = _children(node)[side]
        event_time = _event_time(node, child)
        carried = self._carried(child, label)
        rows = child if carried is None else carried.plan
        if str(node.nodeName()) == "Join":
            rows = self._as_joined(node, side, filters, rows)
        ids = [attribute.exprId().id() for attribute in _all(rows.output())]
        if event_time not in ids:
            return None
        frame = self._frame(rows)
        names = frame.columns
        frame = frame.toDF(*(f"c{index}" for index in range(len(ids))))
        at = ids.index(event_time)
        moment = F.col(f"c{at}.end" if isinstance(frame.schema[at].dataType, StructType) else f"c{at}")
        late = self._as_batch(frame.filter(moment <= F.timestamp_millis(F.lit(watermark_ms))))
        if carried is None:  # what a function makes of its records does not tell whose it is
            return late.toDF(*names)
        record = f"c{ids.index(carried.record.exprId().id())}"
        late = late.filter(F.col(record).isNotNull())  # of a union: rows of its other inputs
        if carried.many:
            late = late.groupBy(F.col(f"{record}.id")).agg(F.first(record).alias(record))
        return late.select(f"{record}.record.*")

    def _frame(self, plan: Any) -> DataFrame:
        return DataFrame(self._catalyst.classic.Dataset.ofRows(self.own, _stripped(plan)), self.session)

    def _as_batch(self, frame: DataFrame) -> DataFrame:
        """The rows of a batch's plan, no longer a stream: what Spark itself hands to `foreachBatch`."""
        rows = frame._jdf.queryExecution().toRdd()
        return DataFrame(self.own.internalCreateDataFrame(rows, frame._jdf.schema(), False), self.session)

    @property
    def _catalyst(self) -> Any:
        jvm = self.session._jvm
        assert jvm is not None
        return jvm.org.apache.spark.sql

    def _carried(self, plan: Any, label: str) -> _Carried | None:
        """A plan that carries the records of an input below it; None where it cannot."""
        if _is_input(plan, label):
            frame = self._frame(_children(plan)[0])
            columns = F.struct(*(F.col(f"`{column}`") for column in frame.columns))
            record = F.struct(F.monotonically_increasing_id().alias("id"), columns.alias("record"))
            return _last_of(frame.withColumn(RECORD, record))
        for index, child in enumerate(_children(plan)):
            below = self._carried(child, label)
            if below is not None:
                return self._above(plan, index, below)
        return None

    def _above(self, plan: Any, index: int, below: _Carried) -> _Carried | None:
        name, record = str(plan.nodeName()), below.record
        many = below.many or name in _MULTIPLYING
        if name == "Project":
            return _Carried(plan.copy(plan.projectList().appended(record), below.plan), record, many)
        if name == "Expand":
            lists = plan.projections()
            for at in range(lists.size()):
                lists = lists.updated(at, lists.apply(at).appended(record))
            return _Carried(plan.copy(lists, plan.output().appended(record), below.plan), record, many)
        if name == "Union":
            over = plan.withNewChildren(self._alike(plan, index, below))
            return _Carried(over, _all(over.output())[-1], many)
        over = plan.withNewChildren(plan.children().updated(index, below.plan))
        return _Carried(over, record, many) if record.exprId().id() in _ids(over) else None

    def _alike(self, union: Any, index: int, below: _Carried) -> Any:
        """The children of a union, all with one more column: the record, and in those of other inputs nothing."""
        outputs = [one for one in _all(below.plan.output()) if one.exprId().id() != below.record.exprId().id()]
        order = below.plan.output()
        for at, attribute in enumerate([*outputs, below.record]):
            order = order.updated(at, attribute)
        with_record = self._catalyst.catalyst.plans.logical.Project(order, below.plan)
        kind = self._frame(with_record).schema[len(outputs)].dataType
        children = union.children().updated(index, with_record)
        for at, other in enumerate(_children(union)):
            if at != index:
                nothing = self._frame(other).withColumn(RECORD, F.lit(None).cast(kind))
                children = children.updated(at, _last_of(nothing).plan)
        return children

    def _as_joined(self, join: Any, side: int, filters: list[Any], rows: Any) -> Any:
        """One side of a join with the conditions that Spark asks of it before it joins."""
        plan = join.withNewChildren(join.children().updated(side, rows))
        for one in filters:
            plan = one.withNewChildren(one.children().updated(0, plan))
        optimized = self._frame(plan)._jdf.queryExecution().optimizedPlan()
        joins = [node for _, node in _walk(optimized) if str(node.nodeName()) == "Join"]
        asked = _children(joins[0])[side] if joins else rows
        # Of a side that is only looked up, as in a semi join, Spark keeps no more columns than it compares.
        return asked if _ids(rows) <= _ids(asked) else rows


def _last_of(frame: DataFrame) -> _Carried:
    plan = frame._jdf.queryExecution().analyzed()
    return _Carried(plan, _all(plan.output())[-1])


def _stateful_above(plan: Any, label: str) -> tuple[Any, int, list[Any]] | None:
    """The stateful node that an input comes to, by which of its children, and the filters just above that node."""
    found = _seek(plan, label)
    return found if found is not None and found[0] is not None else None


def _seek(plan: Any, label: str) -> tuple[Any, int, list[Any]] | None:
    if _is_input(plan, label):
        return None, 0, []
    for index, child in enumerate(_children(plan)):
        found = _seek(child, label)
        if found is None:
            continue
        node, side, filters = found
        if node is None:
            return (plan, index, []) if _keeps_state(plan) else found
        at_node = node.fastEquals(child) or (filters and filters[-1].fastEquals(child))
        is_filter = str(plan.nodeName()) == "Filter"
        return (node, side, [*filters, plan]) if is_filter and at_node else found
    return None


def _keeps_state(plan: Any) -> bool:
    name = str(plan.nodeName())
    return name in STATEFUL_NODES or (name == "Join" and all(child.isStreaming() for child in _children(plan)))


def _event_time(node: Any, child: Any) -> int | None:
    """The id of the column by which Spark tells late rows: of an aggregate a key, else any of its input."""
    keys = node.groupingExpressions() if str(node.nodeName()) == "Aggregate" else child.output()
    for key in _all(keys):
        if str(key.nodeName()) in ("AttributeReference", "Alias") and key.metadata().contains(WATERMARK_KEY):
            return int(key.exprId().id())
    return None


def _stripped(plan: Any) -> Any:
    """A plan without what only a running query measures."""
    if str(plan.nodeName()) in ("EventTimeWatermark", "CollectMetrics"):
        return _stripped(_children(plan)[0])
    children = plan.children()
    for index, child in enumerate(_children(plan)):
        children = children.updated(index, _stripped(child))
    return plan.withNewChildren(children) if children.size() else plan


def _ids(plan: Any) -> set[int]:
    """The columns that a plan gives, as Spark tells them apart."""
    return {int(attribute.exprId().id()) for attribute in _all(plan.output())}


def _is_input(plan: Any, label: str) -> bool:
    return str(plan.nodeName()) == "SubqueryAlias" and str(plan.alias()) == label


def _all(things: Any) -> list[Any]:
    return [things.apply(index) for index in range(things.size())]


def _children(plan: Any) -> list[Any]:
    return _all(plan.children())


def _walk(plan: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, plan
    for index, child in enumerate(_children(plan)):
        yield from _walk(child, (*path, index))


def _at(plan: Any, path: Path) -> Any | None:
    for index in path:
        children = plan.children()
        if children.size() <= index:
            return None
        plan = children.apply(index)
    return plan
