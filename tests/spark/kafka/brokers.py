"""A broker for tests: started once for all that ask, ended with them; without one they are skipped with the reason."""

from __future__ import annotations

import atexit
import json
import os
import secrets
from functools import lru_cache
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any

import pytest

from weft.spark.kafka import client
from weft.spark.kafka.broker import Broker, NoBroker, down, up
from weft.spark.kafka.jars import NoJars
from weft.spark.storage import temporary

PREFIX, OWNER = "weft-tests-kafka-", "owner.json"


@lru_cache(maxsize=1)
def _started(process: int) -> Broker | str:
    _sweep()
    folder = Path(mkdtemp(prefix=PREFIX))
    (folder / OWNER).write_text(json.dumps([process, temporary.started(process)]))
    try:
        client.library()
        broker = up(folder)
    except (NoJars, NoBroker, client.KafkaTrouble) as error:
        return str(error)
    atexit.register(_end, folder, process)
    return broker


def _sweep() -> None:
    """End the brokers of test processes that were killed, and so could not."""
    for owner in Path(gettempdir()).glob(f"{PREFIX}*/{OWNER}"):
        try:
            process, began = json.loads(owner.read_text())
        except (OSError, ValueError):
            continue
        if began is not None and temporary.started(process) != began:
            down(owner.parent)
            temporary.remove(owner.parent)


def _end(folder: Path, process: int) -> None:
    if os.getpid() == process:
        down(folder)
        temporary.remove(folder)


def broker() -> Broker:
    """The broker of this test process; skips where there can be none."""
    found = _started(os.getpid())
    if isinstance(found, str):
        pytest.skip(f"no Kafka broker here: {found}")
    return found


def topic(name: str = "t", partitions: int = 1) -> str:
    """A new topic that nobody else has."""
    own = f"{name}-{secrets.token_hex(4)}"
    client.make_topics(conf(), [(own, partitions)])
    return own


def conf() -> dict[str, Any]:
    """How clients reach the broker."""
    return {"bootstrap.servers": broker().bootstrap}


def fill(name: str, values: list[bytes], partition: int = 0, **more: Any) -> None:
    """Put records into a topic."""
    sends = client.producer(conf())
    for value in values:
        sends.produce(name, value, partition=partition, **more)
        sends.poll(0)
    assert sends.flush(30) == 0


def held(name: str, partitions: int = 1, committed: bool = True) -> list[Any]:
    """All messages of a topic, partition by partition; those of transactions only where these were committed."""
    kafka = client.library()
    level = "read_committed" if committed else "read_uncommitted"
    reads = client.consumer(conf(), **{"isolation.level": level, "enable.partition.eof": True})
    found = []
    for partition in range(partitions):
        reads.assign([kafka.TopicPartition(name, partition, 0)])
        while True:
            message = reads.poll(30)
            assert message is not None, f"{name} does not answer"
            if message.error():
                assert message.error().code() == kafka.KafkaError._PARTITION_EOF, message.error()
                break
            found.append(message)
    reads.close()
    return found
