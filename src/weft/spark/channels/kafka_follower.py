"""What does a topic of manifests say so far? All who open a stream in one process share one follower of its topic.

A topic of one partition has one order for all. A follower takes what was added since it last looked and counts by the
one rule (`protocol/stream_rule.py`), so that everybody counts the same segments, whatever a writer that was fenced off
has added. What readers have passed is cut off from the front at a segment that counts: who finds a topic cut off takes
its first entry for counted, and goes on from there.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from weft.protocol.stream_rule import Counted, FenceEntry, SegmentEntry, count
from weft.spark.channels.manifest import Manifest
from weft.spark.kafka import client
from weft.spark.kafka.client import KafkaTrouble

READ_S_MAX = 30.0
LARGEST = 32 << 20  # bytes of a message: a blob of many records
READING = {"fetch.wait.max.ms": 20, "fetch.message.max.bytes": LARGEST, "fetch.max.bytes": 2 * LARGEST}
READING |= {
    "receive.message.max.bytes": 2 * LARGEST + 4096,
    "enable.partition.eof": False,
    "fetch.error.backoff.ms": 20,
}
# Who follows a topic from message to message is answered as soon as there is one: asking again now and then is enough.
# With twenty idle followers that asked every 20 ms a broker used half a core.
FOLLOWING = READING | {"fetch.wait.max.ms": 500}
_T = TypeVar("_T")


class LogEntry(msgspec.Struct, omit_defaults=True):
    """One message of a topic of manifests: a fence, or a segment."""

    fence: int | None = None
    manifest: Manifest | None = None


@dataclass(slots=True)
class Held:
    """What was counted so far: the rule's state, and manifests by number with their offsets."""

    counted: Counted = Counted()
    at: int = 0
    first: int | None = None  # the offset of the first message that is still there
    manifests: dict[int, tuple[int, Manifest]] = field(default_factory=dict)

    def take(self, offset: int, entry: LogEntry) -> bool:
        """Whether an entry counts; what was cut off before it is taken to have led up to it."""
        cut_off, self.at = self.at == 0 and offset > 0, offset + 1
        if entry.fence is not None:
            self.counted, counts = count(self.counted, FenceEntry(entry.fence))
            return counts
        manifest = entry.manifest
        if manifest is None:
            return False
        if cut_off:
            self.counted = Counted(manifest.epoch, manifest.segment)
        self.counted, counts = count(self.counted, SegmentEntry(manifest.epoch, manifest.segment))
        if counts:
            self.manifests[manifest.segment] = (offset, manifest)
        return counts


class Bounds:
    """Asks how far topics reach, over a connection of its own: one that waits for messages answers later."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._asks = client.consumer(conf)

    def of(self, place: Any) -> tuple[int, int]:
        """The first offset that is still there, and the one to come."""
        kafka = client.library()
        try:
            answer = self._asks.get_watermark_offsets(place, READ_S_MAX)
        except kafka.KafkaException as error:
            raise KafkaTrouble(f"topic {place.topic}: {error.args[0].str()}") from error
        if answer is None:
            raise KafkaTrouble(f"topic {place.topic}: no answer within {READ_S_MAX:.0f} s")
        return int(answer[0]), int(answer[1])


class Follower:
    """Follows one topic of manifests in this process."""

    def __init__(self, conf: Mapping[str, Any], topic: str) -> None:
        self.topic, self.conf = topic, conf
        self.held = Held()
        self._place = client.library().TopicPartition(topic, 0, 0)
        self._reads = client.consumer(conf, **FOLLOWING)
        self._begun = False
        self._lock = threading.RLock()

    def look(self, upto: int | None = None) -> Held:
        """Take in all that the topic holds now, or all up to an offset that it is known to hold."""
        with self._lock:
            if upto is not None and self._begun:
                if self.held.at <= upto:
                    self._take(upto + 1)
                return self.held
            low, high = shared(Bounds, self.conf).of(self._place)
            if not self._begun or self.held.at < low:
                # New here, or more was cut off than was seen: what counts before the first message is told by it.
                self.held = Held()
                self._reads.assign([client.library().TopicPartition(self.topic, 0, low)])
                self._begun = True
            self.held.first = low
            for number in [one for one, (offset, _) in self.held.manifests.items() if offset < low]:
                del self.held.manifests[number]
            if max(self.held.at, low) < high:
                self._take(high)
            return self.held

    def _take(self, end: int) -> None:
        for message in taken(self._reads, self.topic, end):
            self.held.take(message.offset(), msgspec.json.decode(message.value(), type=LogEntry))


def taken(reads: Any, topic: str, end: int) -> Iterator[Any]:
    """Messages from where a consumer stands up to an offset; KafkaTrouble where they do not come in time."""
    deadline = time.monotonic() + READ_S_MAX
    while True:
        message = reads.poll(min(1.0, READ_S_MAX))
        if message is None or message.error():
            if message is not None and message.error().fatal():
                raise KafkaTrouble(f"topic {topic}: {message.error().str()}")
            if time.monotonic() > deadline:
                raise KafkaTrouble(f"topic {topic} gives nothing before offset {end} within {READ_S_MAX:.0f} s")
            continue
        yield message
        deadline = time.monotonic() + READ_S_MAX
        if message.offset() + 1 >= end:
            return


class Book:
    """A topic that keeps the last value of every key: where readers have come to, how streams are split."""

    def __init__(self, conf: Mapping[str, Any], topic: str) -> None:
        self.topic, self.conf = topic, conf
        self.values: dict[str, Any] = {}
        self._at = 0
        self._place = client.library().TopicPartition(topic, 0, 0)
        self._reads = client.consumer(conf, **FOLLOWING)
        self._lock = threading.RLock()

    def look(self) -> dict[str, Any]:
        """All keys that were not taken back, with their last values."""
        with self._lock:
            low, high = shared(Bounds, self.conf).of(self._place)
            if self._at == 0:
                self._reads.assign([client.library().TopicPartition(self.topic, 0, low)])
            # Of a topic that keeps last values only, the last message is always there.
            if max(self._at, low) < high:
                for message in taken(self._reads, self.topic, high):
                    self._at = message.offset() + 1
                    self._take(message.key().decode(), message.value())
            return dict(self.values)

    def _take(self, key: str, value: bytes | None) -> None:
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = msgspec.json.decode(value)


class Blobs:
    """Reads single messages of a topic by their offsets; those that follow one another come without asking again."""

    def __init__(self, conf: Mapping[str, Any], topic: str) -> None:
        self.topic = topic
        self._reads = client.consumer(conf, **READING)
        self._next: int | None = None
        self._lock = threading.Lock()

    def read(self, offset: int) -> bytes:
        """The content of a message; KafkaTrouble where it is gone or does not come."""
        with self._lock:
            if self._next != offset:
                self._reads.assign([client.library().TopicPartition(self.topic, 0, offset)])
            self._next = None
            message = next(taken(self._reads, self.topic, offset + 1))
            if message.offset() != offset:
                raise KafkaTrouble(f"topic {self.topic}: offset {offset} is gone, the first is {message.offset()}")
            self._next = offset + 1
            return bytes(message.value())


class Sender:
    """Puts messages into topics and says where each came to lie."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._sends = client.producer(conf, **{"message.max.bytes": LARGEST, "message.timeout.ms": 60_000})
        self._lock = threading.Lock()

    def send(self, topic: str, values: list[bytes | None], key: str | None = None) -> list[int]:
        """The offsets of messages, in their order, once the broker has them; KafkaTrouble where it has not."""
        found: dict[int, int] = {}
        failed: list[str] = []

        def heard(number: int) -> Callable[[Any, Any], None]:
            def hear(error: Any, message: Any) -> None:
                if error is not None:
                    failed.append(error.str())
                else:
                    found[number] = message.offset()

            return hear

        with self._lock:
            for number, value in enumerate(values):
                while True:
                    try:
                        self._sends.produce(topic, value, key, partition=0, on_delivery=heard(number))
                        break
                    except BufferError:
                        self._sends.poll(1.0)
            left = self._sends.flush(70)
        if failed or left:
            raise KafkaTrouble(f"topic {topic}: {failed[0] if failed else 'the broker does not take it in time'}")
        return [found[number] for number in range(len(values))]


_shared: dict[tuple[Any, ...], Any] = {}
_shared_lock = threading.RLock()


def shared(kind: Callable[..., _T], conf: Mapping[str, Any], *more: str) -> _T:
    """The one of its kind in this process; a fork makes its own, since a client's threads do not come along."""
    key = (os.getpid(), kind, tuple(sorted(conf.items())), *more)
    with _shared_lock:
        if key not in _shared:
            _shared[key] = kind(conf, *more)
        return _shared[key]  # type: ignore[no-any-return]
