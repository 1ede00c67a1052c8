"""What does a sink of some format do with a batch? It writes it aside and, once it is committed, delivers it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.model import Sink
from weft.spark.channels import footers
from weft.spark.channels.log import Log
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.partitions import WHOLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Delivery:
    """A committed batch on its way: what it holds, the folder it was written to, and the sink it is for.

    `path` is the sink's own folder where it has one, else one in the state folder. `kept` is what its kind keeps from
    one delivery of a writer to the next.
    """

    sink: Sink
    manifest: Manifest
    folder: Path
    log: Log
    path: Path
    kept: dict[str, Any] = field(default_factory=dict)


class SinkKind(ABC):
    """What all sinks of one format do."""

    can_write_aside = True

    def write(self, records: DataFrame, folder: Path, sink: Sink, measured: list[str], few: bool = False) -> Written:
        """Write a batch to a new folder, where it waits until it is committed and delivered."""
        return footers.write_parquet(records, folder, {}, measured, WHOLE, few)

    def has_delivered(self, manifest: Manifest, path: Path) -> bool:
        """False if a batch is seen to be not all where its readers look."""
        return True

    @abstractmethod
    def deliver(self, delivery: Delivery) -> None:
        """Give a committed batch to those who wait for it; Fenced where a later epoch has taken over.

        What a crash cut off is delivered again, under the same number of its manifest: doing it twice must do no harm.
        """
