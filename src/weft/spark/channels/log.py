"""One log for everything: a stream as numbered segments, each with a manifest.

    streams/NAME/epoch                 the writer that may commit; a greater one fences a lower one
    streams/NAME/manifests/0000000012  what segment 12 holds; its appearance is the commit
    streams/NAME/data/0000000012-3/    its records, written under epoch 3
    streams/NAME/readers/FRAGMENT      the first segment that this reader still needs
    heads/NAME                         the last segment that was committed, kept elsewhere

A segment is committed by linking its manifest under its number, which fails where one is there already, so that no
segment is ever written twice. A batch that Spark replays after a crash finds its number in the last manifest and is
not written again. Segments that every reader has passed are deleted; the last manifest stays.

A manifest names the run it belongs to, and the size and checksum of every file. The head tells a stream that never
was from one that is gone: a folder is made once, and never again where it was.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from weft.spark.storage.disk import Damaged, Disk, read_note, read_sealed, seal, size_and_sum, unseal

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
    sizes: tuple[int, ...] = ()
    sums: tuple[int, ...] = ()
    birth_ms: tuple[float, float] | None = None
    times_us: dict[str, int] = {}
    watermark_ms: int | None = None
    inputs: dict[str, int] = {}
    end: bool = False
    replaces: bool = False
    bad: int = 0
    aside: dict[str, tuple[int, int]] = {}
    run: str = ""
    committed_ms: float = 0.0


def number_of(segment: int) -> str:
    """A segment's number as files are called."""
    return f"{segment:010d}"


class Log:
    """A stream's folder, seen by whoever reads it."""

    def __init__(self, folder: str | Path, run: str = "", disk: Disk | None = None, head: Path | None = None) -> None:
        self.folder = Path(folder)
        self.run = run
        self.disk = disk or Disk()
        self.head = head
        self.manifests = self.folder / "manifests"
        self.data = self.folder / "data"
        self.readers = self.folder / "readers"

    def is_there(self) -> bool:
        """True if the stream has a folder, False if it never had a segment; Damaged where it is gone."""
        there = self.manifests.is_dir()
        committed = self.committed()
        if not there and committed is not None and committed >= 0:
            raise Damaged(self.folder, f"is gone, though it held segments up to {committed}")
        return there

    def create(self) -> Log:
        """Make the folders of a stream that never was; harmless where they exist, Damaged where they are gone."""
        self.is_there()
        for folder in (self.manifests, self.data, self.readers):
            self.disk.make(folder)
        if self.head is not None and not self.head.exists():
            self.note_head(self.next_segment() - 1)
        return self

    def committed(self) -> int | None:
        """The last segment that its writer knows to be committed, -1 before the first; None where nothing is known."""
        return None if self.head is None else read_note(self.head)

    def note_head(self, segment: int) -> None:
        """Keep elsewhere how far the stream has come."""
        if self.head is not None:
            self.disk.make(self.head.parent)
            self.disk.seal(self.head, segment, sync=False)

    def numbers(self) -> list[int]:
        """The segments whose manifests are here, in no order."""
        try:
            return [int(name) for name in os.listdir(self.manifests) if name.isdigit()]
        except FileNotFoundError:
            raise Damaged(self.manifests, "is gone") from None

    def next_segment(self) -> int:
        """The number that the next segment will get: one past the last."""
        return max(self.numbers(), default=-1) + 1

    def first_segment(self) -> int:
        """The oldest segment whose manifest is still here; 0 where there is none."""
        return min(self.numbers(), default=0)

    def manifest(self, segment: int) -> Manifest:
        """What a segment holds; FileNotFoundError where its manifest is not here (any more)."""
        path = self.manifests / number_of(segment)
        try:
            found = msgspec.json.decode(unseal(path.read_bytes(), path), type=Manifest)
        except msgspec.MsgspecError as error:
            raise Damaged(path, f"is no manifest of this version: {error}") from error
        if self.run and found.run != self.run:
            raise Damaged(path, f"belongs to another run ({found.run or 'unknown'}), not to {self.run}")
        return found

    def needed_manifest(self, segment: int) -> Manifest:
        """What a segment holds that somebody still needs; Damaged where its manifest is gone."""
        try:
            return self.manifest(segment)
        except FileNotFoundError:
            raise Damaged(self.manifests / number_of(segment), "is gone, though its records are still needed") from None

    def last(self) -> Manifest | None:
        """The newest manifest, None while the stream is empty; Damaged where later ones were committed."""
        following = self.next_segment()
        committed = self.committed()
        if committed is not None and committed >= following:
            raise Damaged(self.manifests / number_of(committed), "is gone, though it was committed")
        return self.manifest(following - 1) if following else None

    def files(self, manifest: Manifest) -> list[tuple[str, int, int]]:
        """The paths of a segment's records, each with its size and checksum."""
        folder = self.data / f"{number_of(manifest.segment)}-{manifest.epoch}"
        paths = (str(folder / name) for name in manifest.files)
        return list(zip(paths, manifest.sizes, manifest.sums, strict=True))

    def register(self, reader: str) -> None:
        """Let a reader be known before anything may be deleted; one already known keeps its place."""
        if read_note(self.readers / reader) is None:
            self.passed(reader, self.first_segment(), has_read=False)

    def forget(self, reader: str) -> None:
        """A reader that will not come back holds nothing any longer."""
        (self.readers / reader).unlink(missing_ok=True)

    def forget_but(self, fragments: Collection[str]) -> None:
        """Forget readers that belong to none of these fragments: a process that ends amid a move leaves them behind."""
        for reader in self.known():
            if reader.partition("~")[0] not in fragments:
                self.forget(reader)

    def forget_others(self, fragment: str, readers: Collection[str]) -> None:
        """Forget all readers of a fragment but these: it may have been about to read this stream in other ways."""
        for reader in self.known():
            if reader.partition("~")[0] == fragment and reader not in readers:
                self.forget(reader)

    def known(self) -> list[str]:
        """The readers that hold something."""
        found = os.listdir(self.readers) if self.readers.is_dir() else []
        return [name for name in found if not name.startswith(".")]

    def passed(self, reader: str, segment: int, has_read: bool = True) -> None:
        """A reader needs nothing before `segment` any more: it has read it or, where it has not, never will."""
        self.disk.seal(self.readers / reader, (segment, has_read), sync=False)

    def place(self, reader: str) -> int:
        """The first segment that a reader still needs; 0 where that cannot be told."""
        return int((read_note(self.readers / reader) or (0, False))[0])

    def has_read(self, reader: str) -> bool:
        """True if a reader has committed a batch with records of the stream."""
        return bool((read_note(self.readers / reader) or (0, False))[1])

    def needed(self) -> int:
        """The first segment that some reader still needs; 0 while nobody reads."""
        return min((self.place(reader) for reader in self.known()), default=0)

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

    def epoch(self) -> int:
        """The epoch that may write to the stream; 0 before the first."""
        try:
            return int(read_sealed(self.folder / "epoch"))
        except FileNotFoundError:
            return 0

    def fence(self, epoch: int) -> None:
        """From now on no writer with a lower epoch commits to the stream; a fence only rises."""
        self.create()
        if epoch > self.epoch():
            self.disk.seal(self.folder / "epoch", epoch)


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
        current = self.log.epoch()
        if current > self.epoch:
            raise Fenced(self.log.folder.name, self.epoch, current)
        self.log.disk.seal(self.log.folder / "epoch", self.epoch)

    def _sweep(self) -> None:
        """Records of segments that were never committed go; they will be written again."""
        kept = set(self.log.numbers())
        for folder in self.log.data.iterdir():
            number, _, epoch = folder.name.partition("-")
            if not number.isdigit() or not epoch.isdigit():
                continue
            if int(number) not in kept or int(epoch) != self.log.manifest(int(number)).epoch:
                self.log.disk.remove_tree(folder)
            else:
                self.found(folder, int(number))

    def found(self, folder: Path, segment: int) -> None:
        """A committed segment's folder was there at the start."""

    def written(self, batch: int) -> bool:
        """True if this writer's batch lies in the stream already."""
        return self.last is not None and self.last.writer == self.writer and self.last.batch >= batch

    @property
    def segment(self) -> int:
        """The number of the segment to come."""
        return self.last.segment + 1 if self.last else 0

    def folder(self) -> Path:
        """Where the records of the segment to come are written."""
        return self.log.data / f"{number_of(self.segment)}-{self.epoch}"

    def commit(self, manifest: Manifest) -> Manifest:
        """Link the manifest under its number: from here on the segment is there, once and for all."""
        try:
            manifest = self._commit(manifest)
        except FileNotFoundError as error:
            gone = self.log.folder if not self.log.manifests.is_dir() else (error.filename or self.log.folder)
            raise Damaged(gone, "is gone in the middle of the run") from error
        self.last = manifest
        self.log.note_head(manifest.segment)
        if manifest.segment % RETAIN_EVERY == 0:
            self.retain()
        return manifest

    def _commit(self, manifest: Manifest) -> Manifest:
        log, disk, folder = self.log, self.log.disk, self.folder()
        if not log.manifests.is_dir():
            raise FileNotFoundError(2, "no such folder", str(log.manifests))
        current = log.epoch()
        if current != self.epoch:
            raise Fenced(log.folder.name, self.epoch, current)
        files = [folder / name for name in manifest.files]
        told = [size_and_sum(file) for file in files]
        manifest = msgspec.structs.replace(
            manifest, run=log.run, sizes=tuple(size for size, _ in told), sums=tuple(crc for _, crc in told)
        )
        temporary = log.manifests / f".{number_of(manifest.segment)}-{self.epoch}"
        try:
            disk.write(temporary, seal(msgspec.json.encode(manifest)))
            disk.sync([*files, temporary], [folder, log.data] if files else ())
            disk.link(temporary, log.manifests / number_of(manifest.segment))
            disk.sync((), [log.manifests])
        except FileExistsError as error:
            raise Fenced(f"{log.folder.name}, segment {manifest.segment}", self.epoch, current) from error
        finally:
            disk.remove(temporary)
        return manifest

    def retain(self) -> None:
        """Delete what every reader has passed, but for the last manifest before it, which carries the times."""
        needed = self.log.needed()
        for segment in _below(self.log.numbers(), needed - 1):
            self.log.disk.remove(self.log.manifests / number_of(segment))
        for name in os.listdir(self.log.data):
            number = name.partition("-")[0]
            if number.isdigit() and int(number) < needed:
                self.log.disk.remove_tree(self.log.data / name)


def _below(numbers: Iterable[int], bound: int) -> list[int]:
    return [number for number in numbers if number < bound]
