"""A small batch that several outputs want is fetched once: who only picks columns of it asks Spark for nothing more."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from weft.model import Dataflow
from weft.plan.changing.fragments import Fragment
from weft.spec import only_filters
from weft.spec.picking import Picked, picked

if TYPE_CHECKING:
    import pyarrow as pa


class FetchedFrame(ClassicDataFrame):
    """A frame of which this process has the records; whoever asks more of it than those has the frame itself made."""

    def __init__(self, frame: DataFrame, make: Callable[[], DataFrame], table: pa.Table, schema: StructType | None):
        super().__init__(None, frame.sparkSession)
        del self.__dict__["_jdf"]
        self._make = make
        self._table = table
        if schema is not None:
            self.__dict__["schema"] = schema

    @cached_property
    def _jdf(self) -> Any:
        return self._make()._jdf

    def toArrow(self) -> pa.Table:
        """The records that were fetched."""
        return self._table

    def without(self, empty: Set[str]) -> FetchedFrame:
        """The same with nulls in the place of some columns; see `without`."""
        import pyarrow as pa

        table = self._table
        for at, field in enumerate(table.schema):
            if field.name in empty and not pa.types.is_nested(field.type):
                nulls = pa.nulls(table.num_rows, field.type)
                table = table.set_column(at, field.with_nullable(True), nulls)
        make = self._make
        shown = [
            StructField(one.name, one.dataType, one.nullable or one.name in empty, one.metadata) for one in self.schema
        ]
        return FetchedFrame(self, lambda: without(make(), empty), table, StructType(shown))


def without(frame: DataFrame, empty: Set[str]) -> DataFrame:
    """A frame with nulls in the place of some columns, whose types and order stay.

    What has fields is left as it is: Arrow knows no null where one of them may not be.
    """
    shown = [
        F.lit(None).cast(field.dataType).alias(field.name)
        if field.name in empty and not isinstance(field.dataType, (StructType, ArrayType, MapType))
        else frame[f"`{field.name}`"]
        for field in frame.schema
    ]
    return frame.select(*shown)


class FetchedBatch:
    """The records of a trunk's batch, and what branches pick of them."""

    def __init__(self, flow: Dataflow, fragment: Fragment, frame: DataFrame, table: pa.Table) -> None:
        self.flow = flow
        self.fragment = fragment
        self.frame = frame
        self.table = table

    def of(self, name: str | None, make: Callable[[], DataFrame]) -> DataFrame:
        """The records of an operator; `make` is how Spark would have them."""
        way = self._way(name)
        picks = [picked(one.sql) if one.sql is not None else None for one in way]
        if all(one is not None for one in picks):
            table, schema = self.table, self.frame.schema
            for one in picks:
                assert one is not None
                table, schema = _picked(table, one), _shown(schema, one)
            return FetchedFrame(self.frame, make, table, schema)
        if not self.table.num_rows and all(only_filters(one) for one in way):
            return FetchedFrame(self.frame, make, self.table, None)
        return make()

    def _way(self, name: str | None) -> list[Any]:
        """The operators between the end of the trunk and one."""
        found = []
        while name is not None and name != self.fragment.trunk[-1]:
            node = self.flow.node(self.fragment.stream(name))
            found.append(node.operator)
            name = self.fragment.name(node.inputs[0])
        return found[::-1]


def _picked(table: pa.Table, what: Picked) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    place = {name.lower(): at for at, name in enumerate(table.column_names)}
    if what.above_zero is not None:
        table = table.filter(pc.greater(table.column(place[what.above_zero.lower()]), 0))
    columns = [table.column(place[read.lower()]) for _, read in what.columns]
    fields = [table.schema.field(place[read.lower()]).with_name(name) for name, read in what.columns]
    return pa.table(columns, schema=pa.schema(fields))


def _shown(schema: StructType, what: Picked) -> StructType:
    by_name = {field.name.lower(): field for field in schema}
    read = [(name, by_name[read.lower()]) for name, read in what.columns]
    return StructType([StructField(name, one.dataType, one.nullable, one.metadata) for name, one in read])
