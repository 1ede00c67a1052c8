"""Every site in a process of its own: a move between them; an agent, desk or broker is killed, or stands still."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live import open_sockets
from tests.bodies.live.moving import delivered, differing, expected, make
from weft.bodies.live.processes.roll import living
from weft.bodies.live.wire.authority import make_keys
from weft.spark.kafka import client
from weft.spark.kafka.broker import Broker, NoBroker, down, up
from weft.spark.kafka.jars import NoJars

pytestmark = pytest.mark.spark
RUN_S_MAX = 600.0
END_S_MAX = 120.0
STILL_S = 30.0
LOOK_S = 0.5
TWO_SITES = """
weft: 1
sites: [{name: edge}, {name: core}]
links: [{from: edge, to: core}]
sources:
  - {name: lines, site: edge, format: replay, path: lines.csv, schema: "v BIGINT",
     arrivals: {kind: constant, rate_per_s: 200}}
queries:
  - name: q
    operators:
      - {name: good, from: lines, sql: "SELECT * FROM lines WHERE v % 2 = 0", site: edge}
      - {name: small, from: good, sql: "SELECT v, v * 2 w FROM good", site: core}
    sink: {from: small, format: csv, path: out, site: core}
scenario: [{at_s: 1.5, move: q.small, to: edge}]
"""
RECORDS = 1000
WITH_STATE = """
weft: 1
sites: [{name: edge}, {name: core}]
links: [{from: edge, to: core}]
sources:
  - {name: lines, site: edge, format: replay, path: lines.csv, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: 200}}
queries:
  - name: q
    operators:
      - {name: good, from: lines, sql: "SELECT * FROM lines WHERE v % 2 = 0", site: edge}
      - {name: sums, from: good, watermark: 1 second, site: core,
         sql: "SELECT window(ts, '10 seconds') w, count(*) n, sum(v) s FROM good GROUP BY 1"}
      - {name: shown, from: sums, sql: "SELECT n, s FROM sums", site: core}
    sink: {from: shown, format: csv, path: out, site: core}
scenario: [{at_s: 1.5, move: q.sums, to: edge}]
"""
A_WINDOW = 100  # records


started: list[Started] = []


@pytest.fixture(autouse=True)
def cleared() -> Iterator[None]:
    """Ends what a test has started."""
    yield
    while started:
        started.pop().clear()


class Started:
    """`weft run --processes`, as a user would type it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / ".weft" / "weft.yaml"
        started.append(self)
        with open(folder / "out.log", "ab") as log:
            words = ["run", str(folder / "weft.yaml"), "--until-done", "--processes", "--json"]
            self.desk = subprocess.Popen([sys.executable, "-m", "weft", *words], stdout=subprocess.PIPE, stderr=log)

    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.state / "status.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def until(self, true: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + RUN_S_MAX
        while not (found := true()):
            assert self.desk.poll() is None, self.told()
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.1)
        return found

    def results(self) -> int:
        """How many results there are so far."""
        self.until(lambda: self.status().get("phase") == "running")
        return sum(query["records_out"] for query in self.status()["queries"].values())

    def pid(self, site: str) -> int:
        """The process of a site that is up."""
        return int(self.until(lambda: (one := self.status().get("sites", {}).get(site, {})).get("up") and one["pid"]))

    def end(self) -> dict[str, Any]:
        output, _ = self.desk.communicate(timeout=RUN_S_MAX)
        assert self.desk.returncode == 0, self.told()
        found: dict[str, Any] = json.loads(output)
        return found

    def clear(self) -> None:
        """Leave no process behind, however a test ended."""
        if self.desk.poll() is None:
            self.desk.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.desk.communicate(timeout=END_S_MAX)
        for pid in living(self.state).values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def told(self) -> str:
        logs = [self.folder / "out.log", self.state / "story.log", *self.state.glob("logs/sites/*/agent.log")]
        return "\n".join(path.read_text()[-1500:] for path in logs if path.exists())


def with_a_desk_to_ask(folder: Path) -> Path:
    """Give a deployment's desk an address, and another folder what a command needs to ask it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        told = f"desk: 127.0.0.1:{free.getsockname()[1]}\nkeys: keys\n"
    with open(folder / "weft.yaml", "a", encoding="utf-8") as file:
        file.write(told)
    make_keys(folder / "keys", ["edge", "core"])
    elsewhere = folder / "elsewhere"
    (elsewhere / "keys").mkdir(parents=True, mode=0o700)
    for name in ("weft.yaml", "keys/authority.pem", "keys/command.pem", "keys/command.key"):
        shutil.copy(folder / name, elsewhere / name)
    return elsewhere


def asked_from(elsewhere: Path, command: str) -> Any:
    """What a command prints where there is nothing but the file and its key."""
    words = [sys.executable, "-m", "weft", command, str(elsewhere / "weft.yaml"), "--json"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, timeout=END_S_MAX).stdout)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["folder", "mirror"])
def test_an_operator_moves_from_one_process_to_another_and_every_record_arrives_once(kind: str, tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(f"{TWO_SITES}channels: {{kind: {kind}}}\n")
    (tmp_path / "lines.csv").write_text("".join(f"{v}\n" for v in range(RECORDS)))
    elsewhere = with_a_desk_to_ask(tmp_path)
    run = Started(tmp_path)
    edge, core = run.pid("edge"), run.pid("core")
    told = asked_from(elsewhere, "status")
    assert (told["pid"], told["state"]) == (run.desk.pid, str(run.state))
    assert {site: told["sites"][site]["pid"] for site in ("edge", "core")} == {"edge": edge, "core": core}
    assert len({edge, core, run.desk.pid}) == 3
    listened = open_sockets.listening(open_sockets.family())
    assert open_sockets.elsewhere(listened) == set(), "nobody listens but on loopback"
    summary = run.end()
    [move] = summary["moves"]
    assert (move.get("state", "done"), move["from"], move["to"]) == ("done", "core", "edge"), move
    assert summary["queries"]["q"]["records_out"] == RECORDS // 2
    rows = sorted(line for path in (tmp_path / "out").glob("*.csv") for line in path.read_text().splitlines())
    assert rows == sorted(f"{v},{v * 2}" for v in range(0, RECORDS, 2))
    for pid in (edge, core):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["folder", "mirror"])
def test_an_operator_moves_from_one_process_to_another_with_its_state(kind: str, tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(f"{WITH_STATE}channels: {{kind: {kind}}}\n")
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    moments = [begin + timedelta(milliseconds=100 * v) for v in range(RECORDS)]
    lines = [f"{moment:%Y-%m-%d %H:%M:%S.%f},{v}\n" for v, moment in enumerate(moments)]
    (tmp_path / "lines.csv").write_text("".join(lines))
    [move] = Started(tmp_path).end()["moves"]
    assert (move.get("state", "done"), move["from"], move["to"]) == ("done", "core", "edge"), move
    rows = sorted(line for path in (tmp_path / "out").glob("*.csv") for line in path.read_text().splitlines())
    windows = [range(first, first + A_WINDOW, 2) for first in range(0, RECORDS, A_WINDOW)]
    assert rows == sorted(f"{len(window)},{sum(window)}" for window in windows)


class Watched:
    """Looks at sinks as a reader would, again and again: what was seen once stays as it was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[Path, tuple[int, int]] = {}
        self.changed: list[Path] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._thread.start()

    def _look_on(self) -> None:
        while not self._over.wait(LOOK_S):
            self.look()

    def look(self) -> None:
        now = {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in self.folder.glob("*/*.parquet")}
        self.changed += [path for path, was in self.seen.items() if now.get(path) != was]
        self.seen |= now

    def end(self) -> None:
        """All that any reader saw is among what is there now, unchanged."""
        self._over.set()
        self._thread.join(END_S_MAX)
        self.look()
        assert self.changed == []


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Callable[[], Broker]]:
    """Starts the broker of this test, which may be killed; skips where there can be none."""
    folder = tmp_path / "kafka"

    def start() -> Broker:
        try:
            client.library()
            return up(folder)
        except (NoJars, NoBroker, client.KafkaTrouble) as error:
            pytest.skip(f"no Kafka broker here: {error}")

    yield start
    if folder.exists():
        down(folder)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["folder", "mirror", "kafka"])
def test_a_query_comes_to_sites_in_processes_and_another_goes_while_records_flow(
    kind: str, tmp_path: Path, broker: Callable[[], Broker]
) -> None:
    still = TWO_SITES[: TWO_SITES.index("scenario")].replace("rate_per_s: 200", "rate_per_s: 25")
    (tmp_path / "weft.yaml").write_text(still + channels(kind, a_broker_where(kind, broker)))
    (tmp_path / "lines.csv").write_text("".join(f"{v}\n" for v in range(RECORDS)))
    (tmp_path / "r.yaml").write_text(
        'queries: [{name: r, operators: [{name: o, from: lines, site: core, '
        'sql: "SELECT v FROM lines WHERE v % 3 = 0"}], '
        "sink: {from: o, format: csv, path: more, site: core}}]\n"
    )
    run = Started(tmp_path)
    run.until(lambda: run.results() > 10)
    for words in (["add", "r.yaml"], ["remove", "q"]):
        told = [sys.executable, "-m", "weft", words[0], str(tmp_path / "weft.yaml")]
        last = str(tmp_path / words[1]) if words[0] == "add" else words[1]
        done = subprocess.run([*told, last, "--json"], capture_output=True, text=True, timeout=END_S_MAX, check=False)
        assert done.returncode == 0, done.stdout + done.stderr + run.told()
    run.end()
    assert rows_in(tmp_path / "more") == sorted(f"{v}" for v in range(0, RECORDS, 3))
    went = rows_in(tmp_path / "out")
    assert 10 < len(went) == len(set(went)) < RECORDS // 2
    assert set(went) < {f"{v},{v * 2}" for v in range(0, RECORDS, 2)}


def rows_in(folder: Path) -> list[str]:
    """The lines of csv results."""
    return sorted(line for path in folder.glob("*.csv") for line in path.read_text().splitlines())


def whole(
    spark: Any,
    folder: Path,
    disturb: Callable[[Started], Started],
    moves: int = 2,
    kind: str = "folder",
    broker: Broker | None = None,
) -> None:
    """A run over three sites that is disturbed once results are there; it comes to its end, exactly.

    What lies in the sinks is right at every moment: all that was ever seen there is among the exact rows at the end.
    """
    deployment = make(folder, 7, 6000, 100, moves)
    with open(folder / "weft.yaml", "a", encoding="utf-8") as file:
        file.write(channels(kind, broker))
    run = Started(folder)
    run.until(lambda: run.results() > 100)
    watched = Watched(folder / "out")
    disturb(run).end()
    watched.end()
    assert differing(delivered(spark, deployment), expected(spark, deployment)) == {}


def channels(kind: str, broker: Broker | None) -> str:
    """What a file says of its channels."""
    reached = f", bootstrap: '{broker.bootstrap}'" if broker is not None else ""
    return f"channels: {{kind: {kind}{reached}}}\n"


def a_broker_where(kind: str, start: Callable[[], Broker]) -> Broker | None:
    return start() if kind == "kafka" else None


@pytest.mark.long
@pytest.mark.parametrize(
    ("site", "kind"), [("a", "folder"), ("b", "folder"), ("c", "folder"), ("b", "mirror"), ("b", "kafka")]
)
def test_an_agent_is_killed_and_comes_again(
    site: str, kind: str, spark: Any, tmp_path: Path, broker: Callable[[], Broker]
) -> None:
    def disturb(run: Started) -> Started:
        before = run.pid(site)
        os.kill(before, signal.SIGKILL)
        run.until(lambda: run.pid(site) != before)
        return run

    whole(spark, tmp_path, disturb, kind=kind, broker=a_broker_where(kind, broker))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["folder", "mirror", "kafka"])
def test_the_desk_is_killed_data_flows_on_and_the_next_desk_finds_what_runs(
    kind: str, spark: Any, tmp_path: Path, broker: Callable[[], Broker]
) -> None:
    def disturb(run: Started) -> Started:
        pids = {site: run.pid(site) for site in ("a", "b", "c")}
        run.desk.kill()
        run.desk.wait()
        held = sum(1 for _ in (tmp_path / "out").glob("*/part-*"))
        deadline = time.monotonic() + 60
        while sum(1 for _ in (tmp_path / "out").glob("*/part-*")) <= held + 2:
            assert time.monotonic() < deadline, "data flows while the desk is away"
            time.sleep(0.1)
        again = Started(tmp_path)
        again.until(lambda: again.status().get("at", 0) > time.time() - 2 and again.status()["phase"] == "running")
        assert {site: again.pid(site) for site in pids} == pids
        return again

    whole(spark, tmp_path, disturb, moves=0, kind=kind, broker=a_broker_where(kind, broker))


@pytest.mark.long
@pytest.mark.parametrize(
    ("who", "kind"),
    [
        ("a", "folder"),
        ("b", "folder"),
        ("c", "folder"),
        ("desk", "folder"),
        ("b", "mirror"),
        ("desk", "mirror"),
        ("b", "kafka"),
        ("broker", "kafka"),
    ],
)
def test_a_process_that_stands_still_for_a_while_disturbs_nothing(
    who: str, kind: str, spark: Any, tmp_path: Path, broker: Callable[[], Broker]
) -> None:
    found = a_broker_where(kind, broker)

    def disturb(run: Started) -> Started:
        others = {"desk": run.desk.pid, "broker": found.pid if found is not None else 0}
        pid = others[who] if who in others else run.pid(who)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STILL_S)
        os.kill(pid, signal.SIGCONT)
        return run

    whole(spark, tmp_path, disturb, kind=kind, broker=found)


@pytest.mark.long
def test_the_broker_is_killed_and_comes_again(spark: Any, tmp_path: Path, broker: Callable[[], Broker]) -> None:
    found = broker()

    def disturb(run: Started) -> Started:
        os.kill(found.pid, signal.SIGKILL)
        os.waitpid(found.pid, 0)
        time.sleep(3)
        assert broker().port == found.port
        return run

    whole(spark, tmp_path, disturb, kind="kafka", broker=found)


@pytest.mark.long
def test_two_sites_that_cannot_speak_for_a_while_lose_nothing(spark: Any, tmp_path: Path) -> None:
    """The scenario cuts them off from one another while records flow between them."""
    deployment = make(tmp_path, 7, 6000, 100)
    with open(tmp_path / "weft.yaml", "a", encoding="utf-8") as file:
        file.write("scenario: [{at_s: 10, partition: [a, b], for_s: 15}]\nchannels: {kind: mirror}\n")
    run = Started(tmp_path)
    run.end()
    assert "cut off from" in (run.state / "story.log").read_text()
    assert differing(delivered(spark, deployment), expected(spark, deployment)) == {}
