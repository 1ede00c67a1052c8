"""A broker for trials: one command brings it up, on loopback only, and ends it by its id."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.cli_files import weft
from tests.spark.kafka import brokers
from weft.spark.kafka import client, jars
from weft.spark.kafka.broker import JARS, find


def test_a_broker_listens_on_loopback_alone_and_makes_no_topic_by_itself() -> None:
    broker = brokers.broker()
    assert broker.lives()
    listening = [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    listening += [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = {line[1] for line in listening if line[3] == "0A" and int(line[1].rpartition(":")[2], 16) == broker.port}
    assert {address.rpartition(":")[0] for address in ours} <= {"0100007F", "0000000000000000FFFF00000100007F"}
    own = brokers.topic("made", 3)
    assert client.topics(brokers.conf())[own] == 3
    with pytest.raises(client.KafkaTrouble, match="there is no topic nowhere"):
        client.present(["nowhere"], client.topics(brokers.conf()))


def test_what_is_running_is_found_and_not_started_again() -> None:
    broker = brokers.broker()
    told = json.loads(weft("kafka", "status", broker.folder, "--json").stdout)
    assert (told["up"], told["pid"], told["bootstrap"]) == (True, broker.pid, broker.bootstrap)
    again = json.loads(weft("kafka", "up", broker.folder, "--json").stdout)
    assert again["pid"] == broker.pid


def test_nobody_is_ended_where_no_broker_runs(folder: Path) -> None:
    assert "no broker runs" in weft("kafka", "down", str(folder)).stdout
    (folder / "broker.json").write_text(
        json.dumps(
            {"pid": os.getpid(), "started": 1, "bootstrap": "127.0.0.1:1", "folder": str(folder), "temporary": True}
        )
    )
    found = find(folder)
    assert found is not None
    assert not found.lives()  # a process of that number started at another time
    assert "no broker runs" in weft("kafka", "down", str(folder)).stdout


def test_without_a_network_it_says_what_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(jars.FOLDER, str(folder / "jars"))
    monkeypatch.setenv("JAVA_HOME", str(folder))
    ended = weft("kafka", "up", str(folder / "data"))
    assert ended.exit_code == 2
    assert "Java was not found" in ended.stderr
    assert jars.cached(JARS) == []


def test_a_broker_that_does_not_answer_is_told(folder: Path) -> None:
    brokers.broker()
    with pytest.raises(client.KafkaTrouble, match=r"no Kafka answers at 127\.0\.0\.1:1 within 1 s"):
        client.topics({"bootstrap.servers": "127.0.0.1:1"}, seconds=1)
