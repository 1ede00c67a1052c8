"""Where does a sink on the console go? Its first records are printed as they come; nothing else is kept of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.model import Sink
from weft.spark.channels.manifest import Written
from weft.spark.sinks.kind import Delivery, SinkKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_SHOWN = "20"


class Console(SinkKind):
    """Prints some records of each batch, and counts them all."""

    can_write_aside = False  # what was printed cannot be taken back

    def write(self, records: DataFrame, folder: Path, sink: Sink, measured: list[str], few: bool = False) -> Written:
        """Print the first records of a batch."""
        rows = records.limit(int(sink.options.get("numRows", ROWS_SHOWN))).collect()
        count = records.count() if rows else 0
        for row in rows:
            print(" | ".join(str(value) for value in row), flush=True)
        if count > len(rows):
            print(f"... and {count - len(rows)} more", flush=True)
        return Written(count)

    def deliver(self, delivery: Delivery) -> None:
        """All was shown when it was written."""
