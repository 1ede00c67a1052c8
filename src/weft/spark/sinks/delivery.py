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

from weft.model import Sink
from weft.spark.channels.log import Log, LogWriter, Manifest, number_of
from weft.spark.storage.disk import Damaged, size_and_sum

DONE = ".done-"


class SinkWriter(LogWriter):
    """Commits batches to a sink's log under an epoch, and delivers them to its folder."""

    def __init__(self, path: Path, sink: Sink, log: Log, epoch: int, writer: str) -> None:
        self.path = path
        self.sink = sink
        if sink.path is not None:
            log.disk.make(path)
        for left in log.data.glob(f"{DONE}*"):
            log.disk.remove_tree(left)
        super().__init__(log, epoch, writer)

    def found(self, folder: Path, segment: int) -> None:
        """A batch that was committed is still on its way."""
        self._deliver(self.log.manifest(segment), folder)

    def commit(self, manifest: Manifest) -> Manifest:
        """Commit the batch, then give its files their names where readers look."""
        folder = self.folder()
        manifest = super().commit(manifest)
        self._deliver(manifest, folder)
        return manifest

    def _deliver(self, manifest: Manifest, folder: Path) -> None:
        disk = self.log.disk
        for name, result, told in zip(
            manifest.files, results_of(manifest, self.sink.format), zip(manifest.sizes, manifest.sums, strict=True),
            strict=True,
        ):  # fmt: skip
            self._link(folder / name, self.path / result, told)
        if manifest.files:
            disk.sync((), [self.path])
        if manifest.replaces:
            for earlier in range(manifest.segment):
                for result in results_of(self.log.manifest(earlier), self.sink.format):
                    disk.remove(self.path / result)
            disk.sync((), [self.path])
        if folder.is_dir():
            # Under another name first: what lies under its own is still to be delivered, all of it.
            done = folder.with_name(f"{DONE}{folder.name}")
            disk.rename(folder, done)
            disk.remove_tree(done)

    def _link(self, start: Path, result: Path, told: tuple[int, int]) -> None:
        try:
            self.log.disk.link(start, result)
        except FileNotFoundError:
            gone = start if self.path.is_dir() else self.path
            raise Damaged(gone, "is gone, though it was not delivered yet") from None
        except FileExistsError:
            # The same file under two names, or a copy of it where the folders were copied since.
            if not os.path.samefile(start, result) and size_and_sum(result) != told:
                raise Damaged(
                    result, "is there already, and this run did not write it", "move it away; the same command goes on"
                ) from None

    def retain(self) -> None:
        """A sink keeps everything: its manifests are the list of what was written."""


def results_of(manifest: Manifest, format_: str) -> list[str]:
    """What the files of a batch are called where readers look."""
    return [
        f"part-{number_of(manifest.segment)}-{index}.{_ending(name, format_)}"
        for index, name in enumerate(manifest.files)
    ]


def results_in(log: Log, path: Path, format_: str) -> Iterator[Path]:
    """The result files that a sink's log tells of, as large as they were written; damaged manifests tell nothing."""
    return (result for result, as_written in _listed(log, path, format_) if as_written)


def results_changed(log: Log, path: Path, format_: str) -> Iterator[Path]:
    """Files under names that a sink's log tells of which are of another size than was written."""
    return (result for result, as_written in _listed(log, path, format_) if not as_written)


def _listed(log: Log, path: Path, format_: str) -> Iterator[tuple[Path, bool]]:
    for segment in sorted(log.numbers()) if log.manifests.is_dir() else ():
        try:
            manifest = log.manifest(segment)
        except (Damaged, FileNotFoundError):
            continue
        for name, size in zip(results_of(manifest, format_), manifest.sizes, strict=True):
            result = path / name
            if result.is_file():
                yield result, result.stat().st_size == size


def _ending(name: str, format_: str) -> str:
    """`csv` of Spark's `part-00000-….csv`; a compressed text file keeps its second ending."""
    after = name.rsplit(f".{format_}", 1)[-1]
    return f"{format_}{after}"
