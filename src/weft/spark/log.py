"""One log for everything: a stream as numbered segments, each with a manifest.

    streams/NAME/epoch                 the writer that may commit; a greater one fences a lower one
    streams/NAME/manifests/0000000012  what segment 12 holds; its appearance is the commit
    streams/NAME/data/0000000012-3/    its records, written under epoch 3
    streams/NAME/readers/FRAGMENT      the first segment that this reader still needs

A segment is committed by linking its manifest under its number, which fails where one is there already, so that no
segment is ever written twice. A batch that Spark replays after a crash finds its number in the last manifest and is
not written again. Segments that every reader has passed are deleted; the last manifest stays.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

TICK = "tick"
SEGMENT = "segment"
END_TIME_US = 253_370_764_800_000_000  # 9999-01-01: the event time of a stream that has ended
RETAIN_EVERY = 8


class Fenced(RuntimeError):
    """Another writer has taken over the stream; whoever sees this must stop writing."""

    def __init__(self, what: str, epoch: int, fence: int) -> None:
        self.fence = fence
        super().__init__(f"{what}: epoch {epoch} is fenced by {fence}")


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a segment holds, who wrote it, and how far its stream has come with it."""

    segment: int
    epoch: int
    writer: str
    batch: int
    rows: int = 0
    bytes: int = 0
    rows_total: int = 0
    files: tuple[str, ...] = ()
    birth_ms: tuple[float, float] | None = None
    times_us: dict[str, int] = {}
    watermark_ms: int | None = None
    inputs: dict[str, int] = {}
    end: bool = False
    replaces: bool = False
    committed_ms: float = 0.0


def _number(segment: int) -> str:
    return f"{segment:010d}"


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that a reader sees the old or the new content, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


class Log:
    """A stream's folder, seen by whoever reads it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.manifests = self.folder / "manifests"
        self.data = self.folder / "data"
        self.readers = self.folder / "readers"

    def create(self) -> Log:
        """Make the folders; harmless where they exist."""
        for folder in (self.manifests, self.data, self.readers):
            folder.mkdir(parents=True, exist_ok=True)
        return self

    def next_segment(self) -> int:
        """The number that the next segment will get: one past the last."""
        numbers = [int(name) for name in os.listdir(self.manifests) if name.isdigit()]
        return max(numbers, default=-1) + 1

    def first_segment(self) -> int:
        """The oldest segment whose manifest is still here; 0 where there is none."""
        return min((int(name) for name in os.listdir(self.manifests) if name.isdigit()), default=0)

    def manifest(self, segment: int) -> Manifest:
        """What a segment holds."""
        return msgspec.json.decode((self.manifests / _number(segment)).read_bytes(), type=Manifest)

    def last(self) -> Manifest | None:
        """The newest manifest, None while the stream is empty."""
        following = self.next_segment()
        return self.manifest(following - 1) if following else None

    def files(self, manifest: Manifest) -> list[str]:
        """The paths of a segment's records."""
        folder = self.data / f"{_number(manifest.segment)}-{manifest.epoch}"
        return [str(folder / name) for name in manifest.files]

    def register(self, reader: str) -> None:
        """Let a reader be known before anything may be deleted; one already known keeps its place."""
        path = self.readers / reader
        if not path.exists():
            write_atomically(path, str(self.first_segment()).encode())

    def forget(self, reader: str) -> None:
        """A reader that will not come back holds nothing any longer."""
        (self.readers / reader).unlink(missing_ok=True)

    def forget_but(self, fragments: Collection[str]) -> None:
        """Forget readers that belong to none of these fragments: a process that ends amid a move leaves them behind."""
        for reader in self._known():
            if reader.partition("~")[0] not in fragments:
                self.forget(reader)

    def forget_others(self, fragment: str, readers: Collection[str]) -> None:
        """Forget all readers of a fragment but these: it may have been about to read this stream in other ways."""
        for reader in self._known():
            if reader.partition("~")[0] == fragment and reader not in readers:
                self.forget(reader)

    def _known(self) -> list[str]:
        found = os.listdir(self.readers) if self.readers.is_dir() else []
        return [name for name in found if not name.startswith(".")]

    def passed(self, reader: str, segment: int) -> None:
        """A reader has committed everything before `segment`."""
        write_atomically(self.readers / reader, str(segment).encode())

    def needed(self) -> int:
        """The first segment that some reader still needs; 0 while nobody reads."""
        places = [int((self.readers / reader).read_text()) for reader in self._known()]
        return min(places, default=0)

    def beyond(self, segment: int) -> tuple[int, int]:
        """Segments and records that lie from a segment on."""
        try:
            last = self.last()
            if last is None or last.segment < segment:
                return 0, 0
            before = self.manifest(segment - 1).rows_total if segment else 0
            return last.segment + 1 - segment, last.rows_total - before
        except FileNotFoundError:  # retention or a restart was quicker; the next look will tell
            return 0, 0


def epoch_of(folder: Path) -> int:
    """The epoch that may write to a stream; 0 before the first."""
    try:
        return int((folder / "epoch").read_text())
    except FileNotFoundError:
        return 0


def fence(folder: Path, epoch: int) -> None:
    """From now on no writer with a lower epoch commits to a stream; a fence only rises."""
    folder.mkdir(parents=True, exist_ok=True)
    if epoch > epoch_of(folder):
        write_atomically(folder / "epoch", str(epoch).encode())


class LogWriter:
    """The one that may commit segments to a stream under its epoch."""

    def __init__(self, log: Log, epoch: int, writer: str) -> None:
        self.log = log.create()
        self.epoch = epoch
        self.writer = writer
        self._claim()
        self.last = log.last()
        self._sweep()

    def _claim(self) -> None:
        current = self._epoch_on_disk()
        if current > self.epoch:
            raise Fenced(self.log.folder.name, self.epoch, current)
        write_atomically(self.log.folder / "epoch", str(self.epoch).encode())

    def _epoch_on_disk(self) -> int:
        return epoch_of(self.log.folder)

    def _sweep(self) -> None:
        """Records of segments that were never committed go; they will be written again."""
        kept = {f"{int(name):010d}" for name in os.listdir(self.log.manifests) if name.isdigit()}
        for folder in self.log.data.iterdir():
            number, _, epoch = folder.name.partition("-")
            if number not in kept or int(epoch) != self.log.manifest(int(number)).epoch:
                shutil.rmtree(folder, ignore_errors=True)

    def written(self, batch: int) -> bool:
        """Whether this writer's batch lies in the stream already."""
        return self.last is not None and self.last.writer == self.writer and self.last.batch >= batch

    @property
    def segment(self) -> int:
        """The number of the segment to come."""
        return self.last.segment + 1 if self.last else 0

    def folder(self) -> Path:
        """Where the records of the segment to come are written."""
        return self.log.data / f"{_number(self.segment)}-{self.epoch}"

    def commit(self, manifest: Manifest) -> Manifest:
        """Link the manifest under its number: from here on the segment is there, once and for all."""
        current = self._epoch_on_disk()
        if current != self.epoch:
            raise Fenced(self.log.folder.name, self.epoch, current)
        temporary = self.log.manifests / f".{_number(manifest.segment)}-{self.epoch}"
        try:
            temporary.write_bytes(msgspec.json.encode(manifest))
            os.link(temporary, self.log.manifests / _number(manifest.segment))
        except FileExistsError as error:
            raise Fenced(f"{self.log.folder.name}, segment {manifest.segment}", self.epoch, current) from error
        finally:
            temporary.unlink(missing_ok=True)
        self.last = manifest
        if manifest.segment % RETAIN_EVERY == 0:
            self.retain()
        return manifest

    def retain(self) -> None:
        """Delete what every reader has passed, but for the last manifest before it, which carries the times."""
        needed = self.log.needed()
        for number in _numbers_below(self.log.manifests, needed - 1):
            (self.log.manifests / number).unlink(missing_ok=True)
        for name in os.listdir(self.log.data):
            if int(name.partition("-")[0]) < needed:
                shutil.rmtree(self.log.data / name, ignore_errors=True)


def _numbers_below(folder: Path, bound: int) -> Iterable[str]:
    return [name for name in os.listdir(folder) if name.isdigit() and int(name) < bound]
