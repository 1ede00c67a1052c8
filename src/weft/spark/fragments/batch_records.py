"""Which records does a batch have for each output? The trunk's own, or those of a branch, worked out once for all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from weft.model import dataflow
from weft.plan.changing.fragments import Fragment
from weft.spark.channels.partitions import WHOLE
from weft.spark.channels.small_batches import fetched
from weft.spark.fragments import operators
from weft.spark.fragments.batch_input import FEW
from weft.spark.fragments.fetched import FetchedBatch, FetchedFrame, without
from weft.spark.fragments.outputs import Place
from weft.spark.fragments.wiring import RunContext


class BatchRecords:
    """The records that batches of one run have for the outputs of their fragment."""

    def __init__(self, context: RunContext, fragment: Fragment) -> None:
        self._context, self._fragment = context, fragment
        self._gave: int | None = None  # records of the trunk's last batch that several wanted

    def branch(self, frame: DataFrame, name: str | None) -> DataFrame:
        """The records of an operator: the trunk's own, or a branch applied to them."""
        if name is None or name == self._fragment.trunk[-1]:
            return frame
        node = dataflow(self._context.deployment).node(self._fragment.stream(name))
        upstream = self.branch(frame, self._fragment.name(node.inputs[0]))
        inputs = {node.operator.from_[0]: upstream}
        return operators.apply(node.operator, inputs, self._context.deployment.folder)

    def carried(self, place: Place, frame: DataFrame) -> DataFrame:
        """The records of an output as they travel: what nobody asks for there is null."""
        empty = {name for stream, name in self._fragment.empty if stream == place.stream}
        if not empty or place.sink is not None or place.late is not None:
            return frame
        if isinstance(frame, FetchedFrame):
            return frame.without(empty)
        return without(frame, empty)

    def fetched(self, frame: DataFrame, ended: bool) -> FetchedBatch | None:
        """A batch of a stateful operator that this process can hold; None where it is too large, or never was small."""
        if self._fragment.stateful is None:
            return None
        if self._gave is None or self._gave > FEW or ended:
            self._gave = frame.count()
        table = fetched(frame, WHOLE) if self._gave <= FEW else None
        if table is None:
            return None
        self._gave = table.num_rows
        return FetchedBatch(dataflow(self._context.deployment), self._fragment, frame, table)

    def of(self, frame: DataFrame, name: str | None, held: FetchedBatch | None) -> DataFrame:
        """The records of an operator, from what this process holds of the batch where it does."""
        return self.branch(frame, name) if held is None else held.of(name, lambda: self.branch(frame, name))


@contextmanager
def shared(frame: DataFrame, readers: int) -> Iterator[None]:
    """Work a batch out once, where several want it."""
    if readers > 1:
        frame.persist()
    try:
        yield
    finally:
        if readers > 1:
            frame.unpersist()
