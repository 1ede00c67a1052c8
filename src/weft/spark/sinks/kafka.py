"""How does a batch get to a topic? It is committed in the sink's log first, and then handed to the broker.

What a batch holds is fixed by its commit, so a crash on the way leaves nothing to guess: it is handed over again.

- **At least once**: what the broker had taken before the crash is there twice.
- **Exact**: a batch is one transaction of Kafka's. With its records goes, as the offset of a consumer group of its own,
  the number of the batch after it. After a crash a new writer opens with the same transactional id, by which the
  broker ends what the old one had begun and refuses it from then on; the group's offset tells whether the batch that
  was on its way has arrived. A broker that has forgotten that number, or that knows a later one, is refused.
  Readers see each record once where they read committed records only (`isolation.level=read_committed`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.model import Sink
from weft.spark.channels import footers
from weft.spark.channels.channel import Fenced
from weft.spark.channels.manifest import Written
from weft.spark.channels.partitions import WHOLE
from weft.spark.kafka import client
from weft.spark.kafka.client import KafkaTrouble
from weft.spark.sinks.kind import Delivery, SinkKind
from weft.spark.storage.disk import Damaged, checked
from weft.spec.kafka import JSON_WRITTEN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELIVERED_S_MAX = 60.0  # less than a start may take: a batch that is on its way is handed over in one
ASKED_AGAIN_S = 0.1
TRANSACTION_MS = 600_000  # a large batch may take long; what a crash leaves open is ended by the next writer
RAW = ("value", "key", "headers", "partition")
PRODUCER, ARRIVED, GROUP, FAILED = "producer", "arrived", "group", "failed"


class KafkaTopic(SinkKind):
    """A topic: its batches lie in the sink's log as key and value, and are handed over when they are committed."""

    def write(self, records: DataFrame, folder: Path, sink: Sink, measured: list[str], few: bool = False) -> Written:
        """Write a batch aside, each record as what the broker will be given."""
        return footers.write_parquet(as_messages(records, sink), folder, {}, [], WHOLE, few)

    def deliver(self, delivery: Delivery) -> None:
        """Hand a committed batch over; exact sinks pass over one that has arrived."""
        if PRODUCER not in delivery.kept:
            _open(delivery)
        if not delivery.sink.exact:
            _send(delivery)
            _flush(delivery)
        elif delivery.manifest.rows and delivery.manifest.segment >= delivery.kept[ARRIVED]:
            _transact(delivery)


def topic_of(sink: Sink) -> str:
    """The topic that a sink writes to."""
    return next(value for name, value in sink.options.items() if name.lower() == "topic").strip()


def as_messages(records: DataFrame, sink: Sink) -> DataFrame:
    """What the broker is given for each record: its columns as a JSON object, or a value that is there already."""
    from pyspark.sql import functions as F

    if sink.value == "raw":
        names = {name.lower(): name for name in records.columns}
        return records.select(*(_raw(names[name], name) for name in RAW if name in names))
    options = {name: value for name, value in sink.options.items() if name.lower() in map(str.lower, JSON_WRITTEN)}
    value = F.to_json(F.struct(*(F.col(f"`{name}`") for name in records.columns)), options).cast("binary")
    if not sink.key:
        return records.select(value.alias("value"))
    parts = [F.col(f"`{name}`") for name in sink.key]
    key = parts[0].cast("string") if len(parts) == 1 else F.to_json(F.struct(*parts), options)
    return records.select(value.alias("value"), key.cast("binary").alias("key"))


def _raw(name: str, what: str) -> Any:
    from pyspark.sql import functions as F

    column = F.col(f"`{name}`")
    kind = {"value": "binary", "key": "binary", "partition": "int"}.get(what)
    return (column.cast(kind) if kind else column).alias(what)


def _sink_id(delivery: Delivery) -> str:
    """What a run's sink is called by the broker: no other run has it, and every epoch has the same."""
    return f"weft.{delivery.log.run}.{delivery.path.name}"


def _open(delivery: Delivery) -> None:
    conf = client.connection(delivery.sink.options)
    if not delivery.sink.exact:
        delivery.kept[PRODUCER] = client.producer(conf, **{"message.timeout.ms": round(DELIVERED_S_MAX * 1000)})
        return
    more = {"transactional.id": _sink_id(delivery), "transaction.timeout.ms": TRANSACTION_MS}
    sends = client.producer(conf, **more)
    _told(delivery, lambda: sends.init_transactions(DELIVERED_S_MAX))
    reads = client.consumer(conf, **{"group.id": _sink_id(delivery)})
    try:
        arrived = _arrived(delivery, reads)
        delivery.kept.update({PRODUCER: sends, ARRIVED: arrived, GROUP: reads.consumer_group_metadata()})
    finally:
        reads.close()


def _arrived(delivery: Delivery, reads: Any) -> int:
    """How many batches have arrived, by the broker's own book; Damaged where that cannot be."""
    place = client.library().TopicPartition(topic_of(delivery.sink), 0)
    told = _told(delivery, lambda: reads.committed([place], DELIVERED_S_MAX))[0].offset
    number, log = delivery.manifest.segment, delivery.log.folder
    if told in (number + 1, _after_the_one_before(delivery)):
        return max(0, int(told))
    if told < 0:
        what = f"batch {number} is on its way, and the broker no longer knows whether it has arrived in {place.topic}"
        raise Damaged(log, what, "`--fresh` starts over; kafka's offsets.retention.minutes says how long it knows")
    raise Damaged(log, f"is of another time than {place.topic}: {told} batches have arrived there, not {number}")


def _after_the_one_before(delivery: Delivery) -> int:
    """The number that the broker was told with the last batch before this one that held records; -1 before any."""
    for number in range(delivery.manifest.segment - 1, -1, -1):
        if delivery.log.manifest(number).rows:
            return number + 1
    return client.library().OFFSET_INVALID  # type: ignore[no-any-return]


def _transact(delivery: Delivery) -> None:
    """Hand a batch over with the number after it, both or neither."""
    kafka, sends = client.library(), delivery.kept[PRODUCER]
    number = delivery.manifest.segment + 1
    _told(delivery, sends.begin_transaction)
    try:
        _send(delivery)
        place = kafka.TopicPartition(topic_of(delivery.sink), 0, number)
        group = delivery.kept[GROUP]
        _told(delivery, lambda: sends.send_offsets_to_transaction([place], group, DELIVERED_S_MAX))
        _told(delivery, lambda: sends.commit_transaction(DELIVERED_S_MAX))
    except BaseException:
        delivery.kept.clear()  # the next writer, or the next batch, begins with what the broker knows
        raise
    delivery.kept[ARRIVED] = number


def _told(delivery: Delivery, asked: Any) -> Any:
    """What the broker answers; Fenced where another has the sink, KafkaTrouble where it does not answer."""
    kafka, deadline = client.library(), time.monotonic() + DELIVERED_S_MAX
    while True:
        try:
            return asked()
        except kafka.KafkaException as error:
            held = error.args[0]
            if held.code() in (kafka.KafkaError._FENCED, kafka.KafkaError.INVALID_PRODUCER_EPOCH):
                raise Fenced(_sink_id(delivery), delivery.manifest.epoch, delivery.log.epoch()) from error
            # A broker that has just come up does not know yet who keeps the book: that passes, and is not called so.
            passing = (kafka.KafkaError.NOT_COORDINATOR, kafka.KafkaError.COORDINATOR_NOT_AVAILABLE)
            if not (held.retriable() or held.code() in passing) or time.monotonic() > deadline:
                raise KafkaTrouble(f"topic {topic_of(delivery.sink)}: {held.str()}") from error
            time.sleep(ASKED_AGAIN_S)


def _send(delivery: Delivery) -> None:
    """Give all records of a batch to the client, and take what it has heard of earlier ones."""
    kafka, sends, topic = client.library(), delivery.kept[PRODUCER], topic_of(delivery.sink)
    failed: list[str] = []
    delivery.kept[FAILED] = failed

    def heard(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error.str())

    for message in _messages(delivery):
        while True:
            try:
                sends.produce(topic, on_delivery=heard, **message)
                break
            except BufferError:  # the client holds as much as it may: wait until some of it has left
                sends.poll(1.0)
            except kafka.KafkaException as error:
                raise KafkaTrouble(f"topic {topic}: {error.args[0].str()}") from error
        if failed:
            break
    sends.poll(0)
    if failed:
        raise KafkaTrouble(f"topic {topic}: {failed[0]}")


def _flush(delivery: Delivery) -> None:
    left = delivery.kept[PRODUCER].flush(DELIVERED_S_MAX + 5)
    failed = delivery.kept[FAILED]
    if left or failed:
        delivery.kept.clear()
        why = failed[0] if failed else f"{left} records were not taken within {DELIVERED_S_MAX:.0f} s"
        raise KafkaTrouble(f"topic {topic_of(delivery.sink)}: {why}")


def _messages(delivery: Delivery) -> Iterator[dict[str, Any]]:
    """A batch's records as the client takes them, in their order; Damaged where a file is not what was written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    manifest = delivery.manifest
    for name, size, crc in zip(manifest.files, manifest.sizes, manifest.sums, strict=True):
        file = pq.ParquetFile(pa.BufferReader(checked(delivery.folder / name, size, crc)))
        for batch in file.iter_batches(batch_size=10_000):
            columns = [batch.column(one).to_pylist() for one in batch.schema.names]
            for row in zip(*columns, strict=True):
                message = dict(zip(batch.schema.names, row, strict=True))
                if message.get("partition") is None:
                    message.pop("partition", None)
                if "headers" in message:
                    message["headers"] = [(one["key"], one["value"]) for one in message["headers"] or ()]
                yield message
