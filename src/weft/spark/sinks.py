"""Where do results end up? A folder that any reader of plain files finds whole, after any crash.

    out/NAME/part-0000000012-0.csv      what readers see: every record once
    out/.NAME.weft/pending/0000000012   written whole, on its way; its appearance is the commit
    out/.NAME.weft/last                 the newest manifest

A batch is written aside, renamed to `pending` with its manifest inside, and only then moved file by file to where
readers look. What a crash leaves in `pending` is moved before anything else is written; what it leaves aside is
written again.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from weft.model import Sink
from weft.spark.log import Fenced, Log, LogWriter, Manifest, write_atomically

MANIFEST = "_manifest"


class SinkWriter(LogWriter):
    """Commits batches to a sink folder under an epoch."""

    def __init__(self, path: Path, sink: Sink, epoch: int, writer: str) -> None:
        self.path = path
        self.sink = sink
        self.epoch = epoch
        self.writer = writer
        self.log = Log(aside_of(path))
        self.log.folder.mkdir(parents=True, exist_ok=True)
        path.mkdir(parents=True, exist_ok=True)
        self.pending = self.log.folder / "pending"
        self.pending.mkdir(exist_ok=True)
        self._claim()
        self.last = self._last()
        for left in sorted(self.pending.iterdir()):
            self._deliver(left)
        shutil.rmtree(self.log.folder / "aside", ignore_errors=True)

    def _last(self) -> Manifest | None:
        try:
            return msgspec.json.decode((self.log.folder / "last").read_bytes(), type=Manifest)
        except FileNotFoundError:
            return None

    def folder(self) -> Path:
        """Where the files of the batch to come are written, out of sight."""
        return self.log.folder / "aside" / f"{self.segment:010d}-{self.epoch}"

    def commit(self, manifest: Manifest) -> Manifest:
        """Rename the whole batch to `pending`, then move its files to where readers look."""
        current = self._epoch_on_disk()
        if current != self.epoch:
            raise Fenced(self.path.name, self.epoch, current)
        if manifest.rows or manifest.files:
            aside = self.folder()
            (aside / MANIFEST).write_bytes(msgspec.json.encode(manifest))
            waiting = self.pending / f"{manifest.segment:010d}"
            os.rename(aside, waiting)
            self._deliver(waiting)
        else:
            self._finish(manifest)
        return manifest

    def _deliver(self, waiting: Path) -> None:
        manifest = msgspec.json.decode((waiting / MANIFEST).read_bytes(), type=Manifest)
        for index, name in enumerate(manifest.files):
            start = waiting / name
            if start.exists():
                os.replace(start, self.path / f"part-{manifest.segment:010d}-{index}.{_ending(name, self.sink.format)}")
        if manifest.replaces:
            for old in self.path.glob("part-*"):
                if int(old.name.split("-")[1]) < manifest.segment:
                    old.unlink()
        self._finish(manifest)
        shutil.rmtree(waiting)

    def _finish(self, manifest: Manifest) -> None:
        write_atomically(self.log.folder / "last", msgspec.json.encode(manifest))
        self.last = manifest

    def retain(self) -> None:
        """A sink keeps everything."""


def aside_of(path: Path) -> Path:
    """Where a sink keeps what readers must not see, beside its folder and on the same disk."""
    return path.parent / f".{path.name}.weft"


def _ending(name: str, format_: str) -> str:
    """`csv` of Spark's `part-00000-….csv`; a compressed text file keeps its second ending."""
    after = name.rsplit(f".{format_}", 1)[-1]
    return f"{format_}{after}"


def clear(path: Path) -> None:
    """Start over: remove what was written there, and nothing else."""
    if path.is_dir():
        for file in path.glob("part-*"):
            file.unlink()
    shutil.rmtree(aside_of(path), ignore_errors=True)
