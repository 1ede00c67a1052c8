"""What is a channel? The interface that all who write, read, fence and retain streams speak to.

- A **writer** commits batches under an epoch. A batch that it has committed is known by its number and never written
  again; a **fence** keeps writers with a lower epoch from committing.
- A **reader** is registered under a name, reads from a position to a position, as often as it likes, and says which
  position it has passed. What all registered readers have passed may be removed, nothing else.
- A **position** is opaque: only the channel knows what it counts (`position.py`).
- A stream may have several **partitions** by key; a reader may take some of them (`partitions.py`).

Sinks are written to in the same way and read by nobody: they are a `Destination` only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.partitions import WHOLE, Partitioning
from weft.spark.channels.position import Position
from weft.spark.storage.disk import Damaged, Disk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Fenced(RuntimeError):
    """Another writer has taken over the stream; whoever sees this must stop writing."""

    def __init__(self, what: str, epoch: int, fence: int) -> None:
        self.fence = fence
        super().__init__(f"{what}: epoch {epoch} is fenced by {fence}")


class Removed(Damaged):
    """A commit that somebody asks for is no longer there."""


class Writer(ABC):
    """The one that may commit batches to a stream or sink under its epoch."""

    epoch: int
    writer: str
    last: Manifest | None

    def written(self, batch: int) -> bool:
        """True if this writer's batch was committed already."""
        return self.last is not None and self.last.writer == self.writer and self.last.batch >= batch

    @property
    def segment(self) -> int:
        """The number of the commit to come."""
        return self.last.segment + 1 if self.last else 0

    @abstractmethod
    def write(self, records: DataFrame, measured: list[str], few: bool = False) -> Written:
        """Write a batch, known to be of `few` records or not; nobody sees it before it is committed."""

    @abstractmethod
    def take(self, written: Written) -> Written:
        """Let a batch that was written aside be the next to commit."""

    @abstractmethod
    def discard(self, written: Written) -> None:
        """Throw away what was written and is not to be committed."""

    @abstractmethod
    def commit(self, manifest: Manifest) -> Manifest:
        """Commit what was written under its number: from here on it is there, once and for all; Fenced where not."""


class Destination(ABC):
    """What a fragment writes to."""

    name: str

    @property
    @abstractmethod
    def place_of_records(self) -> str:
        """Where its records are, for people who look for them."""

    @abstractmethod
    def is_there(self) -> bool:
        """True if it was ever made, False if not; Damaged where it was and is gone."""

    @abstractmethod
    def last(self) -> Manifest | None:
        """The newest commit, None before the first; Damaged where later ones were committed."""

    @abstractmethod
    def epoch(self) -> int:
        """The epoch that may commit; 0 before the first."""

    @abstractmethod
    def fence(self, epoch: int) -> None:
        """From now on no writer with a lower epoch commits; a fence only rises."""

    @abstractmethod
    def open_writer(self, epoch: int, writer: str) -> Writer:
        """Claim it for an epoch; Fenced where a later one has it."""

    @property
    def can_write_aside(self) -> bool:
        """True if a batch can be written before it is known whether it will ever be committed."""
        return True

    @abstractmethod
    def write_aside(self, records: DataFrame, run: int, measured: list[str], few: bool = False) -> Written:
        """Write the first batch of a run whose turn has not come."""

    @abstractmethod
    def forget_aside(self, run: int | None = None) -> None:
        """Throw away what a run, or any, has written aside."""

    @abstractmethod
    def inspect(self, needed: Position | None) -> None:
        """Damaged where a commit, or the records of one that somebody needs from a position on, are gone or cut off."""


class Channel(Destination):
    """A stream's durable record of commits."""

    @classmethod
    @abstractmethod
    def of_stream(cls, state: Path, name: str, run: str, disk: Disk) -> Self:
        """The channel of a stream of a run, whether it was made already or not."""

    @classmethod
    @abstractmethod
    def of_options(cls, options: dict[str, str]) -> Self:
        """The channel that a reader in another process was told of."""

    @classmethod
    @abstractmethod
    def names(cls, state: Path) -> list[str]:
        """The streams that were ever made in a state folder."""

    @abstractmethod
    def options(self) -> dict[str, str]:
        """What a reader in another process must be told to open it."""

    @abstractmethod
    def create(self, partitioning: Partitioning = WHOLE) -> Self:
        """Make a stream that never was; harmless where it exists, Damaged where it is gone."""

    @abstractmethod
    def end(self) -> Position:
        """Where the next commit will lie."""

    @abstractmethod
    def reach(self, start: Position, commits_max: int) -> Position:
        """The end, or so many commits after a position, whichever is nearer; never before the position."""

    @abstractmethod
    def upto(self, position: Position) -> Manifest | None:
        """What the last commit before a position says; None at the beginning, Removed where it is gone."""

    @abstractmethod
    def commits(self, start: Position, end: Position) -> Iterator[tuple[Position, Manifest]]:
        """What was committed between two positions, each with the position after it; Removed where one is gone."""

    @abstractmethod
    def pieces(self, manifests: Iterable[Manifest], partitions: Collection[int] | None = None) -> list[Any]:
        """What tasks read of some commits, of some partitions or of all: values that can be sent to another process."""

    @abstractmethod
    def read(self, piece: Any, columns: list[str]) -> Any:
        """The records of a piece as an Arrow table; Damaged where they are not what was written."""

    @abstractmethod
    def known(self) -> list[str]:
        """The readers that are registered."""

    @abstractmethod
    def register(self, reader: str) -> None:
        """Let a reader be known before anything may be removed; one already known keeps its place."""

    @abstractmethod
    def forget(self, reader: str) -> None:
        """A reader that will not come back holds nothing any longer."""

    @abstractmethod
    def passed(self, reader: str, position: Position, has_read: bool = True) -> None:
        """A reader needs nothing before a position any more: it has read it or, where it has not, never will."""

    @abstractmethod
    def place(self, reader: str) -> Position:
        """What a reader still needs lies from here on; the beginning where that cannot be told."""

    @abstractmethod
    def has_read(self, reader: str) -> bool:
        """True if a reader has committed a batch with records of the stream."""

    @abstractmethod
    def retain(self) -> None:
        """Remove what every registered reader has passed; nothing while none is registered."""

    @abstractmethod
    def lacks(self, position: Position) -> Path | None:
        """What is missing of a stream that somebody has read up to a position; None where nothing is."""

    def beyond(self, position: Position) -> tuple[int, int]:
        """Commits and records that lie from a position on; none where what told of it was removed since."""
        try:
            last, before = self.last(), self.upto(position)
        except Removed:  # retention or a restart was quicker; the next look will tell
            return 0, 0
        if last is None or before is None:
            return (0, 0) if last is None else (last.segment + 1, last.rows_total)
        return max(0, last.segment - before.segment), max(0, last.rows_total - before.rows_total)

    def rows_before(self, position: Position) -> int | None:
        """Records that lie before a position; None where what told of it was removed since."""
        try:
            before = self.upto(position)
        except Removed:
            return None
        return 0 if before is None else before.rows_total

    def arrived(self, start: Position, reach: Position, now_ms: float, delay_ms: float, kbps: float) -> Position:
        """How far commits have come over a link: each when its delay is over and its bytes have passed, in turn."""
        there, free_ms = start, 0.0
        for after, manifest in self.commits(start, reach):
            passing_ms = 8 * manifest.bytes / kbps if kbps else 0.0
            free_ms = max(free_ms, manifest.committed_ms) + passing_ms
            if free_ms + delay_ms > now_ms:
                return there
            there = after
        return there

    def forget_but(self, fragments: Collection[str]) -> None:
        """Forget readers that belong to none of these fragments: a process that ends amid a move leaves them behind."""
        for reader in self.known():
            if fragment_of(reader) not in fragments:
                self.forget(reader)

    def forget_others(self, fragment: str, readers: Collection[str]) -> None:
        """Forget all readers of a fragment but these: it may have been about to read this stream in other ways."""
        for reader in self.known():
            if fragment_of(reader) == fragment and reader not in readers:
                self.forget(reader)


READER_CHARS_MAX = 225


def reader_name(fragment: str, entry: str) -> str:
    """What a fragment's way in is called where it is registered."""
    name = f"{fragment}~{entry}"
    # It is the name of a file, and for a moment part of a longer one.
    return name if len(name) <= READER_CHARS_MAX else f"{fragment}~{sha1(entry.encode()).hexdigest()[:8]}"


def fragment_of(reader: str) -> str:
    """The fragment that a registered reader belongs to."""
    return reader.partition("~")[0]
