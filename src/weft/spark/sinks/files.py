"""Where do results end up? A folder that any reader of plain files finds whole, after any crash.

    out/NAME/part-0000000012-0.csv      what readers see: every record once
    out/.NAME.weft/owner.json           the run whose results these are
    out/.NAME.weft/manifests/0000000012 what batch 12 holds; its appearance is the commit
    out/.NAME.weft/data/0000000012-3/   its files, until they lie where readers look

A sink is a log like any other: a batch is written aside and committed by its manifest. Only then each file gets its
name where readers look, and loses the one it had. What a crash leaves on the way is delivered before anything else is
written; what was not committed is written again. A name that is taken is never written over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from weft.model import Sink
from weft.spark.channels import footers
from weft.spark.channels.log import Log
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.partitions import WHOLE
from weft.spark.channels.segments import number_of
from weft.spark.sinks.kind import Delivery, SinkKind
from weft.spark.storage.disk import Damaged, Disk, size_and_sum

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FolderOfFiles(SinkKind):
    """A folder of files of one format, by Spark's own writer of it."""

    def __init__(self, format_: str) -> None:
        self.format = format_

    def write(self, records: DataFrame, folder: Path, sink: Sink, measured: list[str], few: bool = False) -> Written:
        """Write a batch aside."""
        if self.format == "parquet":
            return footers.write_parquet(records, folder, sink.options, measured, WHOLE, few)
        return footers.write_text(records, folder, self.format, sink.options)

    def deliver(self, delivery: Delivery) -> None:
        """Give each file its name where readers look; a batch that replaces all before it removes theirs."""
        log, path, manifest = delivery.log, delivery.path, delivery.manifest
        told = zip(manifest.sizes, manifest.sums, strict=True)
        for name, result, one in zip(manifest.files, results_of(manifest, self.format), told, strict=True):
            _link(delivery.folder / name, path / result, one, log.disk)
        if manifest.files:
            log.disk.sync((), [path])
        if manifest.replaces:
            for earlier in range(manifest.segment):
                for result in results_of(log.manifest(earlier), self.format):
                    log.disk.remove(path / result)
            log.disk.sync((), [path])


def _link(start: Path, result: Path, told: tuple[int, int], disk: Disk) -> None:
    try:
        disk.link(start, result)
    except FileNotFoundError:
        gone = start if result.parent.is_dir() else result.parent
        raise Damaged(gone, "is gone, though it was not delivered yet") from None
    except FileExistsError:
        # The same file under two names, or a copy of it where the folders were copied since.
        if not os.path.samefile(start, result) and size_and_sum(result) != told:
            raise Damaged(
                result, "is there already, and this run did not write it", "move it away; the same command goes on"
            ) from None


def results_of(manifest: Manifest, format_: str) -> list[str]:
    """What the files of a batch are called where readers look."""
    return [
        f"part-{number_of(manifest.segment)}-{index}.{_ending(name, format_)}"
        for index, name in enumerate(manifest.files)
    ]


def results_in(log: Log, path: Path, format_: str) -> Iterator[Path]:
    """The result files that a sink's log tells of and that are as they were written; damaged manifests tell nothing."""
    return (result for result, as_written in _listed(log, path, format_) if as_written)


def results_changed(log: Log, path: Path, format_: str) -> Iterator[Path]:
    """Files under names that a sink's log tells of which are not what was written."""
    return (result for result, as_written in _listed(log, path, format_) if not as_written)


def _listed(log: Log, path: Path, format_: str) -> Iterator[tuple[Path, bool]]:
    for segment in sorted(log.numbers()) if log.manifests.is_dir() else ():
        try:
            manifest = log.manifest(segment)
        except (Damaged, FileNotFoundError):
            continue
        told = zip(manifest.sizes, manifest.sums, strict=True)
        for name, one in zip(results_of(manifest, format_), told, strict=True):
            result = path / name
            if result.is_file():
                yield result, _is_as_written(result, one, manifest.committed_ms)


def _is_as_written(result: Path, told: tuple[int, int], committed_ms: float) -> bool:
    """True if a file is what was committed; it is read only where it has the size and was touched since."""
    found = result.stat()
    if found.st_size != told[0]:
        return False
    return found.st_mtime * 1000 <= committed_ms or size_and_sum(result) == tuple(told)


def _ending(name: str, format_: str) -> str:
    """`csv` of Spark's `part-00000-….csv`; a compressed text file keeps its second ending."""
    after = name.rsplit(f".{format_}", 1)[-1]
    return f"{format_}{after}"
