"""How many records did a watermark leave out? A log like that of a sink, in the state, that keeps the number alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.spark.channels.channel import Writer
from weft.spark.channels.log import Log
from weft.spark.channels.log_writer import LogWriter
from weft.spark.channels.manifest import Written
from weft.spark.channels.segments import number_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class LeftOut(Log):
    """Counts records, each once, under epochs and batches as any log; of its manifests only the last stays."""

    def open_writer(self, epoch: int, writer: str) -> Writer:
        """Claim it for an epoch; Fenced where a later one has it."""
        return LeftOutWriter(self, epoch, writer)

    def write_to(self, records: DataFrame, folder: Path, measured: list[str], few: bool = False) -> Written:
        """Count a batch."""
        return Written(rows=records.count())


class LeftOutWriter(LogWriter):
    """Commits counts under an epoch."""

    def retain(self) -> None:
        """The last manifest tells all that there is to tell."""
        for segment in self.log.numbers():
            if segment < self.segment - 1:
                self.log.disk.remove(self.log.manifests / number_of(segment))
