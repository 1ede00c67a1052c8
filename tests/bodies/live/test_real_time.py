"""Record by record, from topic to topic: every result is there, also after a kill, and how quickly is printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.kafka import brokers
from weft.spark.kafka import client

pytestmark = [pytest.mark.spark, pytest.mark.long]
RATE_PER_S = 1000
WARM_S, MEASURED_S, WAIT_S_MAX = 45.0, 40.0, 900.0
FILTER = ("SELECT t, v FROM readings WHERE v % 2 = 0", "append")
WINDOW = ("SELECT window(ts, '1 second') w, max(t) t, count(*) v FROM readings GROUP BY 1", "update")
FILE = """
weft: 1
sites: [{{name: edge}}]
sources:
  - {{name: readings, site: edge, format: kafka, schema: "ts TIMESTAMP, t BIGINT, v BIGINT", event_time: ts,
     options: {{kafka.bootstrap.servers: "{boot}", subscribe: {source}}}}}
queries:
  - name: quick
    promise: {{latency_ms: 200}}
    operators:
      - {{name: all, from: [readings], sql: "{sql}"{more}}}
    sink: {{from: all, format: kafka, mode: {mode}, options: {{kafka.bootstrap.servers: "{boot}", topic: {sink}}}}}
"""


class Seen:
    """Reads a topic as its users would: what came, and how long after it was made."""

    def __init__(self, topic: str) -> None:
        self.values: list[dict[str, int]] = []
        self.waits_ms: list[tuple[float, float]] = []
        self.over = threading.Event()
        self.topic = topic
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        reads = client.consumer(brokers.conf(), **{"fetch.wait.max.ms": 5})
        reads.assign([client.library().TopicPartition(self.topic, 0, 0)])
        while not self.over.is_set():
            message = reads.poll(0.1)
            if message is not None and not message.error():
                value = json.loads(message.value())
                self.values.append(value)
                self.waits_ms.append((time.monotonic(), time.time() * 1000 - value["t"]))
        reads.close()

    def figures(self, since: float) -> str:
        """How long what came since a moment was on its way, and on what machine."""
        waits = sorted(wait for at, wait in self.waits_ms if at > since)
        p50, p95 = (f"{waits[len(waits) * share // 100]:.1f}" for share in (50, 95))
        machine = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        return f"{len(waits)} results, p50 {p50} ms, p95 {p95} ms, at {RATE_PER_S} records/s; {machine}"


def wait_for(done: Callable[[], bool], run: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not done():
        assert run.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.5)


@pytest.mark.parametrize(("sql", "mode"), [FILTER, WINDOW], ids=["filter", "window"])
def test_every_result_comes_at_least_once_and_in_milliseconds(folder: Path, sql: str, mode: str) -> None:
    source, sink = brokers.topic("source"), brokers.topic("sink")
    more = ", watermark: 1 second" if mode == "update" else ""
    file, log = folder / "weft.yaml", folder / "run.log"
    file.write_text(
        FILE.format(boot=brokers.broker().bootstrap, source=source, sink=sink, sql=sql, mode=mode, more=more)
    )
    command = [sys.executable, "-m", "weft", "run", str(file), "--seconds", str(2 * WAIT_S_MAX)]

    def started() -> subprocess.Popen[bytes]:
        with open(log, "ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)

    seen, sends, sent = Seen(sink), client.producer(brokers.conf()), 0

    def send(seconds: float) -> None:
        nonlocal sent
        begun, first = time.monotonic(), sent
        while time.monotonic() < begun + seconds:
            while sent - first < (time.monotonic() - begun) * RATE_PER_S:
                moment = time.time()
                ts = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment * 1000) % 1000:03d}Z"
                sends.produce(source, json.dumps({"ts": ts, "t": int(moment * 1000), "v": sent}).encode())
                sent += 1
            sends.poll(0)
            time.sleep(0.001)

    run = started()
    try:
        send(0.1)
        wait_for(lambda: bool(seen.values), run, log)
        send(WARM_S)
        moment = time.monotonic()
        send(MEASURED_S)
        print(f"\n{mode}: {seen.figures(moment)}")
        os.kill(run.pid, signal.SIGKILL)
        run.wait(60)
        send(1.0)
        run = started()
        assert sends.flush(30) == 0
        wait_for(lambda: _complete(seen, sent, mode), run, log)
        run.send_signal(signal.SIGINT)
        run.wait(120)
    finally:
        seen.over.set()
        seen.thread.join(10)
        if run.poll() is None:
            run.kill()
            run.wait(60)
    assert "record by record" in log.read_text()


def _complete(seen: Seen, sent: int, mode: str) -> bool:
    """Whether every result is there: each record, or of every window the count of all its records."""
    values = list(seen.values)
    if mode == "append":
        return {value["v"] for value in values} == {v for v in range(sent) if v % 2 == 0}
    last: dict[str, int] = {}
    for value in values:
        start = value["w"]["start"]  # type: ignore[index]
        last[start] = max(last.get(start, 0), value["v"])
    return sum(last.values()) >= sent
