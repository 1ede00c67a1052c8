"""Where do results end up? A folder that any reader of plain files finds whole, after any crash.

    out/NAME/part-0000000012-0.csv      what readers see: every record once
    out/.NAME.weft/owner.json           the run whose results these are
    out/.NAME.weft/manifests/0000000012 what batch 12 holds; its appearance is the commit
    out/.NAME.weft/data/0000000012-3/   its files, until they lie where readers look
    out/.NAME.weft/delivered            the last batch that does

A sink is a log like any other: a batch is written aside and committed by its manifest. Only then each file gets its
name where readers look, and loses the one it had. What a crash leaves on the way is delivered before anything else is
written; what was not committed is written again. A name that is taken is never written over.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import lru_cache
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

    def has_delivered(self, manifest: Manifest, path: Path) -> bool:
        """True if every file of a batch is there as it was written."""
        found = list(_results(manifest, path, self.format))
        return len(found) == len(manifest.files) and all(as_written for _, as_written in found)

    def deliver(self, delivery: Delivery) -> None:
        """Give each file its name where readers look; a batch that replaces all before it removes theirs."""
        log, path, manifest = delivery.log, delivery.path, delivery.manifest
        replaced = list(_replaced(log, path, manifest, self.format))
        told = zip(manifest.sizes, manifest.sums, strict=True)
        for name, result, one in zip(manifest.files, results_of(manifest, self.format), told, strict=True):
            _link(delivery.folder / name, path / result, one, log.disk)
        if manifest.files:
            log.disk.sync((), [path])
        if manifest.replaces:
            for earlier in replaced:
                log.disk.remove(earlier)
            log.disk.sync((), [path])


def _replaced(log: Log, path: Path, manifest: Manifest, format_: str) -> Iterator[Path]:
    """The results that a batch takes the place of; Damaged where one is another's by now, or was changed."""
    for earlier in range(manifest.segment) if manifest.replaces else ():
        for result, as_written in _results(log.manifest(earlier), path, format_):
            if not as_written:
                what = "is not as this run wrote it, and the last values were to take its place"
                raise Damaged(result, what, "move it away; the same command goes on")
            yield result


def _link(start: Path, result: Path, told: tuple[int, int], disk: Disk) -> None:
    try:
        disk.link(start, result)
    except FileNotFoundError:
        if os.path.lexists(result) and _is_as_written(result, told):
            return  # who was overtaken has delivered it just now
        gone = start if result.parent.is_dir() else result.parent
        raise Damaged(gone, "is gone, though it was not delivered yet") from None
    except FileExistsError:
        # The same file under two names, or a copy of it where the folders were copied since.
        if not os.path.samestat(start.lstat(), result.lstat()) and not _is_as_written(result, told):
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


def results_listed(log: Log, format_: str) -> set[str]:
    """What the result files are called that a sink's log tells of."""
    return {name for manifest in _manifests(log) for name in results_of(manifest, format_)}


def _listed(log: Log, path: Path, format_: str) -> Iterator[tuple[Path, bool]]:
    for manifest in _manifests(log):
        yield from _results(manifest, path, format_)


def _manifests(log: Log) -> Iterator[Manifest]:
    """All that a log tells; damaged manifests tell nothing."""
    for segment in sorted(log.numbers()) if log.manifests.is_dir() else ():
        try:
            yield log.manifest(segment)
        except (Damaged, FileNotFoundError):
            continue


def _results(manifest: Manifest, path: Path, format_: str) -> Iterator[tuple[Path, bool]]:
    """What lies under the names of a batch's results, each with whether it is as it was written."""
    told = zip(manifest.sizes, manifest.sums, strict=True)
    for name, one in zip(results_of(manifest, format_), told, strict=True):
        result = path / name
        if os.path.lexists(result):
            yield result, _is_as_written(result, one)


def _is_as_written(result: Path, told: tuple[int, int]) -> bool:
    """True if a file is what was committed, by its content: times are whatever was said when it was copied."""
    found = result.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_size != told[0]:
        return False
    return _sum_of(str(result), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) == tuple(told)


@lru_cache(maxsize=1 << 16)
def _sum_of(result: str, *_: int) -> tuple[int, int]:
    """Size and checksum of a file, which is read once as long as it stays as it is."""
    return size_and_sum(result)


def _ending(name: str, format_: str) -> str:
    """`csv` of Spark's `part-00000-….csv`; a compressed text file keeps its second ending."""
    after = name.rsplit(f".{format_}", 1)[-1]
    return f"{format_}{after}"
