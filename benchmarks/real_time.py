"""How quickly does a query that promises milliseconds answer, from a topic to a topic?

    python -m benchmarks.real_time [--short] [--json]

A broker of its own on loopback; a producer sends records at an even rate, each with the moment when it was made; a
consumer notes when each result came. So what is measured is all of the way: client, broker, Spark, broker, client. Each
query (a filter with a projection; windows of a second) runs as `weft run FILE`, as a user would start it, in real-time
mode, which its promise chooses. What comes while Java compiles is not counted.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks._bench import Found, Setting, go, line, spread
from weft.spark.kafka import client
from weft.spark.kafka.broker import Broker, NoBroker, down, up
from weft.spark.kafka.jars import NoJars

NO_BROKER = "no Kafka broker here"
START_S_MAX, END_S_MAX = 300.0, 120.0
QUERIES = {
    "filter": ("SELECT t, v * 2 w FROM readings WHERE v % 2 = 0", "append", ""),
    "window": (
        "SELECT window(ts, '1 second') w, max(t) t, count(*) n FROM readings GROUP BY 1", "update",
        ", watermark: 1 second",
    ),
}  # fmt: skip
FILE = """
weft: 1
sites: [{{name: edge}}]
sources:
  - {{name: readings, site: edge, format: kafka, schema: "ts TIMESTAMP, t DOUBLE, v BIGINT", event_time: ts,
     options: {{kafka.bootstrap.servers: "{boot}", subscribe: {source}}}}}
queries:
  - name: quick
    promise: {{latency_ms: 200}}
    operators:
      - {{name: all, from: [readings], sql: "{sql}"{more}}}
    sink: {{from: all, format: kafka, mode: {mode}, options: {{kafka.bootstrap.servers: "{boot}", topic: {sink}}}}}
"""


class Results:
    """Reads a topic as its users would: how many milliseconds after it was made each result came."""

    def __init__(self, conf: dict[str, Any], topic: str) -> None:
        self.waits_ms: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(conf, topic), daemon=True)
        self._thread.start()

    def _read(self, conf: dict[str, Any], topic: str) -> None:
        reads = client.consumer(conf, **{"fetch.wait.max.ms": 5})
        reads.assign([client.library().TopicPartition(topic, 0, 0)])
        while not self._over.is_set():
            message = reads.poll(0.1)
            if message is not None and not message.error():
                now_s = time.time()
                self.waits_ms.append((time.monotonic(), now_s * 1000 - json.loads(message.value())["t"]))
        reads.close()

    def since(self, moment_s: float) -> list[float]:
        """What came after a moment."""
        return [wait for at_s, wait in list(self.waits_ms) if at_s > moment_s]

    def end(self) -> None:
        """Read no more."""
        self._over.set()
        self._thread.join(END_S_MAX)


class Readings:
    """Sends records at an even rate until it is ended."""

    def __init__(self, conf: dict[str, Any], topic: str, rate_per_s: float) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, args=(conf, topic, rate_per_s), daemon=True)
        self._thread.start()

    def _send(self, conf: dict[str, Any], topic: str, rate_per_s: float) -> None:
        sends, begun_s, sent = client.producer(conf), time.monotonic(), 0
        while not self._over.wait(0.001):
            while sent < (time.monotonic() - begun_s) * rate_per_s:
                now_s = time.time()
                ts = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_s)) + f".{int(now_s * 1000) % 1000:03d}Z"
                sends.produce(topic, json.dumps({"ts": ts, "t": now_s * 1000, "v": sent}).encode())
                sent += 1
            sends.poll(0)
        sends.flush(END_S_MAX)

    def end(self) -> None:
        """Send no more."""
        self._over.set()
        self._thread.join(END_S_MAX)


def waits(folder: Path, name: str, broker: Broker, setting: Setting) -> list[float]:
    """Milliseconds of every result of one run, once it was warm."""
    folder.mkdir()
    conf = {"bootstrap.servers": broker.bootstrap}
    source, sink = f"{folder.name}-source", f"{folder.name}-sink"
    client.make_topics(conf, [(source, 1), (sink, 1)])
    sql, mode, more = QUERIES[name]
    text = FILE.format(boot=broker.bootstrap, source=source, sink=sink, sql=sql, mode=mode, more=more)
    (folder / "weft.yaml").write_text(text)
    results, readings = Results(conf, sink), Readings(conf, source, setting["rate_per_s"])
    with open(folder / "run.log", "wb") as log:
        words = [sys.executable, "-m", "weft", "run", str(folder / "weft.yaml"), "--seconds", "3600"]
        run = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        begun_s = time.monotonic()
        while not results.waits_ms:
            if run.poll() is not None or time.monotonic() > begun_s + START_S_MAX:
                raise RuntimeError((folder / "run.log").read_text()[-2000:])
            time.sleep(0.1)
        time.sleep(setting["warm_s"])
        warm_s = time.monotonic()
        time.sleep(setting["seconds"])
        found = results.since(warm_s)
    finally:
        readings.end()
        results.end()
        run.terminate()
        run.wait(END_S_MAX)
    if "record by record" not in (folder / "run.log").read_text():
        raise RuntimeError("the query did not run record by record")
    return found


def measure(setting: Setting) -> Found:
    """All figures."""
    work = Path(tempfile.mkdtemp(prefix="weft-real-time-"))
    try:
        client.library()
        broker = up(work / "kafka")
        found: Found = {}
        for name in setting["queries"]:
            rounds = [waits(work / f"{name}-{at}", name, broker, setting) for at in range(setting["rounds"])]
            print(f"{name}: {sum(map(len, rounds)):,} results", file=sys.stderr, flush=True)
            cuts = [statistics.quantiles(one, n=20) for one in rounds]
            found[name] = {
                "results": spread([len(one) for one in rounds], 0),
                "p50_ms": spread([one[9] for one in cuts], 1),
                "p95_ms": spread([one[18] for one in cuts], 1),
            }
        return found
    except (NoJars, NoBroker, client.KafkaTrouble) as error:
        raise SystemExit(f"{NO_BROKER}: {error}") from error
    finally:
        down(work / "kafka")
        shutil.rmtree(work, ignore_errors=True)


def show(setting: Setting, found: Found) -> None:
    """The numbers for people."""
    for name, held in found.items():
        print(line(f"{name}, median", held["p50_ms"], "ms"), setting.aim(f"{name}.p50_ms.median"))
        print(line(f"{name}, 95 of 100 below", held["p95_ms"], "ms"))
        print(line(f"{name}, results", held["results"]))


if __name__ == "__main__":
    go("real_time", __doc__, measure, show)
