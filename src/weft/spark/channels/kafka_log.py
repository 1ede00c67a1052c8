"""The channel over Kafka: a log as in folders, whose segments are blobs of one topic and manifests of another.

    PREFIX RUN.NAME.m           manifests and fences, one message each, in the order that one partition gives
    PREFIX RUN.NAME.d           blobs: Arrow streams of records; what no manifest names is nothing
    PREFIX RUN.readers          of every reader of the run the first segment that it still needs; how streams are split
    STATE/streams/NAME/topics   that this stream lies in a broker, and where
    STATE/heads/NAME            the last segment that was committed, kept elsewhere

A position is a segment's number, as in folders. Whether a segment counts is the one rule's to say
(`protocol/stream_rule.py`): a commit is a message, and its writer reads the topic up to it to see that it counts. A
blob lies at an offset that the broker tells when it has it; a manifest names offset, size and checksum. What every
reader has passed is cut off from both topics. What a broker acknowledges is its own to keep (`acks=all`).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from weft.spark.channels import rooms
from weft.spark.channels.channel import Channel, Fenced, Removed, Writer
from weft.spark.channels.kafka_follower import LARGEST, Blobs, Book, Follower, Held, LogEntry, Sender, shared
from weft.spark.channels.kafka_names import BOOTSTRAP, PREFIX, PREFIX_DEFAULT, connection, safe
from weft.spark.channels.kafka_writing import to_blobs, write_aside, write_blobs
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.partitions import WHOLE, Partitioning
from weft.spark.channels.position import Position
from weft.spark.kafka import client
from weft.spark.storage.disk import Damaged, Disk, read_note, read_sealed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AHEAD, TOPICS = "ahead", "topics"
RETAIN_EVERY = 8
KEPT = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete", "max.message.bytes": str(LARGEST)}
LAST_VALUES = {"cleanup.policy": "compact"}
Blob = tuple[str, int, int, int]
"""A blob: its topic, its offset, its size and its checksum."""


class KafkaLog(Channel):
    """A stream in two topics of a broker."""

    def __init__(
        self, state: Path, name: str, run: str, disk: Disk, settings: Mapping[str, str], head: Path | None = None
    ) -> None:
        self.state, self.name, self.run, self.disk, self.settings = state, name, run, disk, dict(settings)
        self.folder = state / rooms.STREAMS / name
        self.head = head
        self.conf = connection(settings)
        base = settings.get(PREFIX, PREFIX_DEFAULT) + safe(run or "run")
        self.manifests, self.data, self.readers = f"{base}.{safe(name)}.m", f"{base}.{safe(name)}.d", f"{base}.readers"

    @classmethod
    def of_stream(cls, state: Path, name: str, run: str, disk: Disk, settings: Mapping[str, str] | None = None) -> Self:
        """The topics of a stream of a run."""
        return cls(state, name, run, disk, settings or {}, state / rooms.HEADS / name)

    @classmethod
    def of_options(cls, options: dict[str, str]) -> Self:
        """The topics that a reader in another process was told of."""
        told = {key: options[key] for key in options if key in (BOOTSTRAP, PREFIX) or key.startswith(client.PREFIX)}
        return cls(Path(options["state"]), options["stream"], options.get("run", ""), Disk(fsync=False), told)

    @classmethod
    def names(cls, state: Path) -> list[str]:
        """The streams that lie in a broker, by what this machine has noted of them."""
        folder = state / rooms.STREAMS
        return sorted(path.parent.name for path in folder.glob(f"*/{TOPICS}")) if folder.is_dir() else []

    def options(self) -> dict[str, str]:
        """What a reader in another process must be told to open it."""
        return {**self.settings, "state": str(self.state), "stream": self.name, "run": self.run}

    @property
    def place_of_records(self) -> str:
        """The topics, for people who look for them."""
        return f"topic {self.data} at {self.conf['bootstrap.servers']}"

    # ---- what there is

    def is_there(self) -> bool:
        """True if its topics were made, False if never; Damaged where they were and are gone."""
        noted = (self.folder / TOPICS).exists()
        committed = self.committed()
        if not noted and (committed is None or committed < 0):
            return False
        known = client.topics(self.conf)
        there = self.manifests in known and self.data in known
        if not there and (noted or (committed is not None and committed >= 0)):
            gone = self.manifests if self.manifests not in known else self.data
            raise Damaged(self.folder, f"its topic {gone} is gone", "`--fresh` starts over")
        return there

    def create(self, partitioning: Partitioning = WHOLE) -> Self:
        """Make the topics of a stream that never was; harmless where they are, Damaged where they are gone."""
        if not (self.folder / TOPICS).exists():
            client.make_topics(self.conf, [(self.manifests, 1), (self.data, 1)], KEPT)
            client.make_topics(self.conf, [(self.readers, 1)], LAST_VALUES)
            self.disk.make(self.folder)
            self.disk.seal(self.folder / TOPICS, self.options())
            if self.head is not None and not self.head.exists():
                self._note_head(self._held().counted.following - 1)
        if partitioning != WHOLE and partitioning != self.partitioning():
            if self._held().counted.following:
                raise ValueError(f"stream {self.name} has {self.partitioning()}, and cannot have {partitioning}")
            shared(Sender, self.conf).send(self.readers, [msgspec.json.encode(partitioning)], self._split_key)
        return self

    def partitioning(self) -> Partitioning:
        """How the stream is split by key."""
        told = shared(Book, self.conf, self.readers).look().get(self._split_key)
        return WHOLE if told is None else msgspec.convert(told, Partitioning)

    @property
    def _split_key(self) -> str:
        """Where the book says how the stream is split: no reader is called so."""
        return f"{self.name}\tsplit"

    def committed(self) -> int | None:
        """The last segment that its writer knows to be committed; None where nothing is known."""
        return None if self.head is None else read_note(self.head)

    def _note_head(self, segment: int) -> None:
        if self.head is not None:
            self.disk.make(self.head.parent)
            self.disk.seal(self.head, segment, sync=False)

    def _held(self, upto: int | None = None) -> Held:
        """What the topic of manifests says now."""
        return shared(Follower, self.conf, self.manifests).look(upto)

    def _add(self, entry: LogEntry) -> tuple[int, Held]:
        """Add an entry to the topic of manifests; where it lies, and what counts up to it."""
        offset = shared(Sender, self.conf).send(self.manifests, [msgspec.json.encode(entry)])[0]
        return offset, self._held(offset)

    def last(self) -> Manifest | None:
        """The newest manifest, None while the stream is empty; Damaged where later ones were committed."""
        committed = self.committed()
        held = self._held()
        following = held.counted.following
        if committed is not None and committed >= following:
            raise Damaged(self.folder, f"segment {committed} is gone from {self.manifests}, though it was committed")
        return self._mine(held.manifests[following - 1][1]) if following else None

    def _mine(self, manifest: Manifest) -> Manifest:
        if self.run and manifest.run != self.run:
            raise Damaged(self.folder, f"{self.manifests} belongs to another run ({manifest.run or 'unknown'})")
        return manifest

    def epoch(self) -> int:
        """The epoch that may commit; 0 before the first."""
        return self._held().counted.epoch if (self.folder / TOPICS).exists() else 0

    def fence(self, epoch: int) -> None:
        """From now on no writer with a lower epoch commits; a fence only rises."""
        self.create()
        if epoch > self.epoch():
            self._add(LogEntry(fence=epoch))

    # ---- reading

    def end(self) -> Position:
        """The number of the segment to come."""
        return self._held().counted.following

    def reach(self, start: Position, commits_max: int) -> Position:
        """The segment to come, or so many after a position, whichever is nearer; never before the position."""
        first = _segment(start)
        return max(first, min(self._held().counted.following, first + commits_max))

    def upto(self, position: Position) -> Manifest | None:
        """What the segment before a position holds; None at the beginning, Removed where it is gone."""
        segment = _segment(position)
        return self._needed(self._held(), segment - 1) if segment else None

    def commits(self, start: Position, end: Position) -> Iterator[tuple[Position, Manifest]]:
        """The segments between two positions, each with the position after it; Removed where one is gone."""
        held = self._held()
        for segment in range(_segment(start), _segment(end)):
            yield segment + 1, self._needed(held, segment)

    def _needed(self, held: Held, segment: int) -> Manifest:
        if segment not in held.manifests:
            what = f"segment {segment} is gone from {self.manifests}, though its records are still needed"
            raise Removed(self.folder, what)
        return self._mine(held.manifests[segment][1])

    def pieces(self, manifests: Iterable[Manifest], partitions: Collection[int] | None = None) -> list[Blob]:
        """The blobs of some segments, of some partitions or of all."""
        found = []
        for manifest in manifests:
            parts = manifest.parts or (0,) * len(manifest.files)
            blobs = zip(manifest.files, manifest.sizes, manifest.sums, parts, strict=True)
            taken = [blob for blob in blobs if partitions is None or blob[3] in partitions]
            found += [(self.data, int(offset), size, crc) for offset, size, crc, _ in taken]
        return found

    def read(self, piece: Any, columns: list[str]) -> Any:
        """The records of a blob as an Arrow table; Damaged where it is not what was written."""
        import pyarrow as pa

        topic, offset, size, crc = piece
        content = shared(Blobs, self.conf, topic).read(offset)
        if len(content) != size or zlib.crc32(content) != crc:
            raise Damaged(self.folder, f"offset {offset} of {topic} holds other content than was written")
        return pa.ipc.open_stream(content).read_all().select(columns)

    def beyond(self, position: Position) -> tuple[int, int]:
        """Commits and records that lie from a position on; none while the broker does not answer."""
        try:
            return super().beyond(position)
        except client.KafkaTrouble:
            return 0, 0

    def rows_before(self, position: Position) -> int | None:
        """Records that lie before a position; None where nobody can tell now."""
        try:
            return super().rows_before(position)
        except client.KafkaTrouble:
            return None

    # ---- readers and retention

    def _places(self) -> dict[str, tuple[int, bool]]:
        """Of every registered reader of the stream: the first segment it needs, and whether it has read."""
        if not (self.folder / TOPICS).exists() and self.head is not None:
            return {}
        prefix = f"{self.name}\n"
        book = shared(Book, self.conf, self.readers).look()
        return {key.removeprefix(prefix): tuple(told) for key, told in book.items() if key.startswith(prefix)}

    def known(self) -> list[str]:
        """The readers that hold something."""
        return list(self._places())

    def register(self, reader: str) -> None:
        """Let a reader be known before anything may be removed; one already known keeps its place."""
        if reader not in self._places():
            held = self._held()
            self.passed(reader, min(held.manifests, default=0), has_read=False)

    def forget(self, reader: str) -> None:
        """A reader that will not come back holds nothing any longer."""
        if reader in self._places():
            shared(Sender, self.conf).send(self.readers, [None], f"{self.name}\n{reader}")

    def passed(self, reader: str, position: Position, has_read: bool = True) -> None:
        """A reader needs nothing before a segment any more: it has read it or, where it has not, never will."""
        told = msgspec.json.encode((_segment(position), has_read))
        shared(Sender, self.conf).send(self.readers, [told], f"{self.name}\n{reader}")

    def place(self, reader: str) -> Position:
        """The first segment that a reader still needs; 0 where that cannot be told."""
        return self._places().get(reader, (0, False))[0]

    def has_read(self, reader: str) -> bool:
        """True if a reader has committed a batch with records of the stream."""
        return self._places().get(reader, (0, False))[1]

    def retain(self) -> None:
        """Cut off what every reader has passed, but for the last manifest before it, which carries the times."""
        needed = min((place for place, _ in self._places().values()), default=0)
        held = self._held()
        kept = held.manifests.get(needed - 1)
        if kept is None or (held.first is not None and kept[0] <= held.first):
            return
        passed = [manifest for number, (_, manifest) in held.manifests.items() if number < needed]
        # Only what counts and was passed goes: what is just being written lies after all of it.
        blobs = max((int(offset) for manifest in passed for offset in manifest.files), default=-1)
        cuts = {self.manifests: kept[0]} | ({self.data: blobs + 1} if blobs >= 0 else {})
        client.cut_off(self.conf, cuts)

    # ---- writing

    def open_writer(self, epoch: int, writer: str) -> Writer:
        """Claim the stream for an epoch; Fenced where a later one has it."""
        return KafkaLogWriter(self, epoch, writer)

    def write_aside(self, records: DataFrame, run: int, measured: list[str], few: bool = False) -> Written:
        """Write the first batch of a run whose turn has not come, on this machine: the broker gets it with its turn."""
        folder = self.folder / AHEAD / str(run)
        self.disk.remove_tree(folder)
        return write_aside(records, folder, measured, self.partitioning(), few)

    def forget_aside(self, run: int | None = None) -> None:
        """Throw away what a run, or any, has written aside."""
        self.disk.remove_tree(self.folder / AHEAD if run is None else self.folder / AHEAD / str(run))

    def put(self, blobs: list[bytes]) -> list[str]:
        """Hand blobs to the broker; where each lies, with its size and checksum."""
        offsets = shared(Sender, self.conf).send(self.data, list(blobs))
        return [f"{at}:{len(blob)}:{zlib.crc32(blob)}" for at, blob in zip(offsets, blobs, strict=True)]

    # ---- whether it is whole

    def lacks(self, position: Position) -> Path | None:
        """What is missing of a stream that was read up to a segment; None where nothing is."""
        following = self._held().counted.following if self.is_there() else 0
        return self.folder / self.manifests if following < _segment(position) else None

    def inspect(self, needed: Position | None) -> None:
        """Damaged where a manifest, or a blob that somebody needs from a segment on, is gone."""
        last = self.last() if self.is_there() else None
        if last is None:
            return
        held = self._held()
        wanted = None if needed is None else _segment(needed)
        first = min(held.manifests) if wanted is None else max(0, min(wanted, last.segment) - 1)
        for segment in range(first, last.segment + 1):
            self._needed(held, segment)
        offsets = [int(at) for one, (_, manifest) in held.manifests.items() if wanted is not None and one >= wanted
                   for at in manifest.files]  # fmt: skip
        if offsets:
            low = client.beginnings(self.conf, [(self.data, 0)])[self.data, 0]
            high = client.ends(self.conf, [(self.data, 0)])[self.data, 0]
            if min(offsets) < low or max(offsets) >= high:
                gone = min(offsets) if min(offsets) < low else max(offsets)
                raise Damaged(self.folder, f"offset {gone} of {self.data} is gone, though it was not read yet")


class KafkaLogWriter(Writer):
    """The one that may commit segments to a stream under its epoch."""

    def __init__(self, log: KafkaLog, epoch: int, writer: str) -> None:
        self.log, self.epoch, self.writer = log.create(), epoch, writer
        if log.epoch() < epoch:
            log.fence(epoch)
        current = log.epoch()
        if current > epoch:
            raise Fenced(log.name, epoch, current)
        self.last = log.last()

    def write(self, records: DataFrame, measured: list[str], few: bool = False) -> Written:
        """Write a batch as blobs that no manifest names yet."""
        folder = self.log.folder / "out"
        self.log.disk.remove_tree(folder)
        try:
            return write_blobs(records, folder, measured, self.log.partitioning(), few, self.log.put)
        finally:
            self.log.disk.remove_tree(folder)

    def take(self, written: Written) -> Written:
        """Hand a batch that was written aside to the broker."""
        try:
            return to_blobs(written, self.log.put)
        finally:
            self.discard(written)

    def discard(self, written: Written) -> None:
        """What no manifest names is nothing; a folder of this machine goes."""
        if written.folder is not None:
            self.log.disk.remove_tree(written.folder)

    def commit(self, manifest: Manifest) -> Manifest:
        """Add the manifest to the topic, and see that it counts; Fenced where it does not."""
        told = [[int(one) for one in file.split(":")] for file in manifest.files]
        manifest = msgspec.structs.replace(
            manifest,
            run=self.log.run,
            files=tuple(str(at) for at, _, _ in told),
            sizes=tuple(size for _, size, _ in told),
            sums=tuple(crc for _, _, crc in told),
        )
        offset, held = self.log._add(LogEntry(manifest=manifest))
        counted = held.manifests.get(manifest.segment)
        if counted is None or counted[0] != offset:
            raise Fenced(f"{self.log.name}, segment {manifest.segment}", self.epoch, held.counted.epoch)
        self.last = manifest
        self.log._note_head(manifest.segment)
        if manifest.segment % RETAIN_EVERY == 0:
            self.log.retain()
        return manifest


def remove(state: Path) -> list[str]:
    """Remove the topics that this machine has noted of a state's streams; the names of those that are left."""
    left = []
    for name in KafkaLog.names(state):
        try:
            told = read_sealed(state / rooms.STREAMS / name / TOPICS)
            log = KafkaLog.of_options(told)
            client.remove_topics(log.conf, [log.manifests, log.data, log.readers])
        except (client.KafkaTrouble, Damaged, KeyError, TypeError) as error:
            left.append(f"{name}: {error}")
    return left


def _segment(position: Position) -> int:
    assert isinstance(position, int), f"{position} is no position of a channel over Kafka"
    return position
