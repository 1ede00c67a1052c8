"""A desk and agents that know one another by their ports alone, without Spark: who comes when, is lost, comes back."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

import weft.spec
from tests.bodies.drawn_moves import Fake
from tests.bodies.live.open_sockets import elsewhere, listening
from tests.bodies.live.wire.ports import Assailant, bad_frames, closed, hello, message, raw
from tests.cli.cli_files import weft as command
from tests.cli.cli_files import weft_json
from weft.bodies.live import desk as live_desk
from weft.bodies.live import steering
from weft.bodies.live.directory import finding, offering
from weft.bodies.live.processes import agent as live_agent
from weft.bodies.live.processes import roll
from weft.bodies.live.processes.agent import AgentProcess
from weft.bodies.live.processes.house import ProcessSites
from weft.bodies.live.run import Options, Run
from weft.bodies.live.site import SiteBody
from weft.bodies.live.state import STOP, CannotRun
from weft.bodies.live.transport import ROLL
from weft.bodies.live.valid import valid
from weft.bodies.live.wire.authority import make_keys
from weft.bodies.live.wire.frames import BULK, Ask, framed
from weft.bodies.live.wire.parties import A_COMMAND
from weft.bodies.live.wire.parties import site as party_of
from weft.bodies.live.wire.port import Port
from weft.model.wishes import MoveTo
from weft.plan.changing.task import Task
from weft.plan.dataflow.sharing import as_written
from weft.protocol.hosting import ConductorLimits, conductor
from weft.protocol.reporting import FragmentNow, Measured, SiteNow
from weft.spark.fragments.analysis import Analysis

FILE = """
weft: 1
sites: [{name: desk}, {name: core}]
links: [{from: desk, to: core, bandwidth_kbps: 5000}]
sources:
  - {name: lines, site: desk, format: csv, path: in, schema: "v BIGINT"}
queries:
  - name: q
    operators:
      - {name: good, from: lines, sql: "SELECT * FROM lines WHERE v >= 0", site: desk}
      - {name: small, from: good, sql: "SELECT v FROM good WHERE v < 50", site: core}
    sink: {from: small, format: csv, path: out, site: core}
"""
WAIT_S_MAX = 60.0
COLUMNS = StructType([StructField("v", LongType())])


def until(true: Callable[[], Any], why: str = "") -> Any:
    deadline = time.monotonic() + WAIT_S_MAX
    while not (found := true()):
        assert time.monotonic() < deadline, why or "it took too long"
        time.sleep(0.01)
    return found


class Engine(Fake):
    """Launches are counted, and told of as through with a first batch."""

    def measure(self, finally_: bool = False) -> Measured:
        alive = tuple(FragmentNow(name, epoch, 0, begun=True) for name, epoch in list(self.alive))
        return Measured(now=SiteNow(alive))

    def __init__(self) -> None:
        super().__init__()
        self.launched: list[tuple[str, int]] = []

    def prepare(self, task: Task, epoch: int) -> Any:
        self.launched.append((task.fragment.id, epoch))
        return super().prepare(task, epoch)


class Agents:
    """Agents in threads, each with its engine."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "weft.yaml"
        self.state = folder / "state"
        self.engines: dict[str, Engine] = {}
        self.made: dict[str, AgentProcess] = {}
        self.threads: dict[str, threading.Thread] = {}

    def deployment(self) -> Any:
        return valid(weft.spec.load(self.file))

    def start(self, site: str) -> AgentProcess:
        engine = self.engines[site] = Engine()
        analysis = Analysis({"lines": COLUMNS, "q.good": COLUMNS, "q.small": COLUMNS}, frozenset())
        spark: Any = SimpleNamespace(
            analysis=analysis, ui=None, alive=lambda: True, close=lambda: None,
            engines=lambda times, between, asked: lambda site: engine,
        )  # fmt: skip
        made = self.made[site] = AgentProcess(self.deployment(), site, self.state, lambda *given: spark)
        self.threads[site] = threading.Thread(target=made.go, daemon=True)
        self.threads[site].start()
        return made

    def over(self) -> bool:
        return not any(thread.is_alive() for thread in self.threads.values())


class Desk:
    """A desk in a thread, over agents that others start."""

    def __init__(self, agents: Agents, **options: Any) -> None:
        house = partial(ProcessSites, file=agents.file, starts=False)
        self.run = Run(weft.spec.load(agents.file), agents.state, Options(**options), house)
        self.summary: dict[str, Any] = {}
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._go, daemon=True)
        self.thread.start()

    def _go(self) -> None:
        try:
            self.summary = self.run.go()
        except BaseException as error:
            self.error = error

    def runs(self) -> bool:
        assert self.error is None, self.error
        return self.run.phase == "running"

    def lose(self) -> None:
        """Be gone as by a kill: nothing is said to anybody, and the state is free."""
        run = self.run
        assert run.parts is not None
        run.parts.desk.carrier.kill()
        run.sites.close = lambda: None  # type: ignore[method-assign,union-attr]
        run.sites.transport.stop(0)  # type: ignore[attr-defined,union-attr]
        run.parts.reports.ask = lambda *given: set()  # type: ignore[method-assign]
        run.parts.desk.stopped.set()
        run.stop()
        self.thread.join(WAIT_S_MAX)
        assert not self.thread.is_alive()


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    (tmp_path / "weft.yaml").write_text(FILE)
    (tmp_path / "in").mkdir()
    made = Agents(tmp_path)
    yield made
    for one in made.made.values():
        one.stop()
    for thread in made.threads.values():
        thread.join(WAIT_S_MAX)


def test_agents_come_before_and_after_the_desk_and_end_with_the_run(agents: Agents) -> None:
    agents.start("desk")
    desk = Desk(agents)
    until(lambda: desk.run.sites and desk.run.sites.is_up("desk"))  # type: ignore[attr-defined]
    agents.start("core")
    until(desk.runs, "both sites run their fragments")
    told = desk.run.status()["sites"]["core"]
    assert (told["up"], told["address"].startswith("127.0.0.1:"), told["spark_ui"]) == (True, True, None)
    asked = desk.run.ask(MoveTo({"q.small": "desk"}))
    until(lambda: asked.state != "asked")
    assert asked.state == "done", asked.why
    assert ("q.small", 1) in agents.engines["core"].launched
    assert len(agents.engines["desk"].launched) == 2, "there both operators are one fragment"
    desk.run.stop()
    until(agents.over, "the end of a run ends its agents")
    assert desk.error is None
    assert not roll.living(agents.state)


def test_a_desk_that_begins_anew_finds_what_runs_and_starts_nothing_twice(agents: Agents) -> None:
    for site in ("desk", "core"):
        agents.start(site)
    first = Desk(agents)
    until(first.runs)
    before = {site: list(engine.launched) for site, engine in agents.engines.items()}
    first.lose()
    assert not agents.over()
    second = Desk(agents)
    until(second.runs)
    assert {site: engine.launched for site, engine in agents.engines.items()} == before
    second.run.stop()
    until(agents.over)
    assert second.error is None


def test_an_agent_that_comes_again_is_told_anew_what_to_run(agents: Agents) -> None:
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)
    agents.made["core"].stop()
    agents.threads["core"].join(WAIT_S_MAX)
    agents.start("core")
    until(lambda: agents.engines["core"].launched, "it runs again, under a later epoch")
    assert agents.engines["core"].launched[0][1] > 1
    until(lambda: not desk.run.down)
    desk.run.stop()
    until(agents.over)
    assert desk.error is None


def test_a_site_has_one_process_and_stops_without_a_desk_when_asked(agents: Agents) -> None:
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)
    with pytest.raises(CannotRun, match="runs already, in process"):
        AgentProcess(agents.deployment(), "core", agents.state).go()
    desk.lose()
    with pytest.raises(CannotRun, match="run in processes of their own"):
        Run(weft.spec.load(agents.file), agents.state, Options()).go()
    (agents.state / STOP).touch()
    until(agents.over)


def test_with_another_file_or_to_start_over_running_sites_are_to_be_stopped_first(agents: Agents) -> None:
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)
    desk.lose()
    again = Desk(agents, fresh=True)
    until(lambda: again.error)
    assert "stop them with `weft stop` to go on with --fresh" in str(again.error)


class Deaf(SiteBody):
    """A site that says it is ready long before anything that is asked of it arrives."""

    deaf_s = 1.5

    def start(self) -> None:
        super().start()
        carrier = self.carrier
        carrier._transport.close(carrier.address)
        hears = threading.Timer(self.deaf_s, carrier._transport.open, (carrier.address, carrier._deliver))
        hears.daemon = True
        hears.start()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not answer within a third of a second is given up; sites are slower than that."""
    monkeypatch.setattr(conductor, "ConductorLimits", lambda: ConductorLimits(answer_ms_max=100, tries_max=3))
    monkeypatch.setattr(live_agent, "SiteBody", Deaf)


@pytest.mark.usefixtures("impatient")
def test_a_site_that_is_ready_and_slow_to_be_reached_is_waited_for(agents: Agents) -> None:
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs, "it is asked again until it answers")
    assert 'GaveUp(q.small, "site core does not answer", silent)' in (agents.state / "story.log").read_text()
    assert agents.engines["core"].launched == [("q.small", 1)], "the same start was said again"
    desk.run.stop()
    until(agents.over)
    assert desk.error is None


@pytest.mark.usefixtures("impatient")
def test_a_site_that_comes_long_after_it_was_asked_is_waited_for(agents: Agents) -> None:
    agents.start("desk")
    desk = Desk(agents)
    until(lambda: "q.small" in desk.run.down)
    agents.start("core")
    until(desk.runs)
    assert desk.run.down == {}
    desk.run.stop()
    until(agents.over)
    assert desk.error is None


@pytest.mark.usefixtures("impatient")
def test_a_site_that_is_heard_of_and_never_answers_ends_the_run(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deaf, "deaf_s", 30.0)
    monkeypatch.setattr(live_desk, "UNANSWERED_S_MAX", 1.0)
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(lambda: desk.error, "it is not waited for for ever")
    assert "does not answer" in str(desk.error)


def test_a_site_tells_of_its_machine_and_how_far_its_neighbours_are(agents: Agents) -> None:
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)

    def told() -> dict[str, Any]:
        return desk.run.status()["sites"]["core"]["machine"] or {}

    until(lambda: told().get("round_trip_ms"), "neighbours are spoken with")
    machine = told()
    assert list(machine["round_trip_ms"]) == ["desk"]
    assert 0 < machine["round_trip_ms"]["desk"] < 10_000
    assert machine["memory_mb"] >= machine["memory_free_mb"] > 0
    assert len(machine["load"]) == 3
    until(lambda: told()["sent_kbps"].get("desk"), "pings alone are bytes")
    assert told()["sent_kbps"].keys() == {"desk"}
    assert told()["free_kbps"]["desk"] == pytest.approx(5000 - told()["sent_kbps"]["desk"], abs=100)
    desk.run.stop()
    until(agents.over)
    assert desk.error is None


def test_two_sites_that_are_cut_off_from_one_another_speak_again_afterwards(agents: Agents) -> None:
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)
    far = {site: agents.made[other] for site, other in (("desk", "core"), ("core", "desk"))}

    def together() -> list[str]:
        return [site for site, one in far.items() if party_of(site) in one._port.heard()]  # type: ignore[union-attr]

    until(lambda: len(together()) == 2)
    desk.run.partition("desk", "core", 2.0)
    until(lambda: not together(), "nothing passes")
    until(lambda: desk.run.crashed == set(), "both are heard of by the desk")
    until(lambda: len(together()) == 2, "the way is there again")
    desk.run.stop()
    until(agents.over)
    assert desk.error is None


def test_processes_keep_the_directory_over_their_ports(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offering, "BEAT_S", 1.0)
    monkeypatch.setattr(finding, "FIND_S", 0.5)
    agents.file.write_text(f"{FILE}control: {{share: true}}\n")
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)

    def offers() -> dict[str, Any]:
        found = desk.run.status()["sites"]
        return {site: told and told["offers"] for site, told in ((one, found[one]["directory"]) for one in found)}

    until(lambda: offers() == {"desk": ["q.good"], "core": ["q.small"]})
    asked = desk.run.ask(MoveTo({"q.small": "desk"}))
    until(lambda: offers() == {"desk": ["q.good", "q.small"], "core": []}, "an operator that moved is found there")
    assert asked.state == "done", asked.why
    agents.made["core"].stop()
    agents.threads["core"].join(WAIT_S_MAX)
    until(lambda: offers() == {"desk": ["q.good", "q.small"], "core": None}, "nothing is known of one that has left")
    agents.start("core")
    until(lambda: offers()["core"] == [], "until it is back")
    desk.run.stop()
    until(agents.over)
    assert desk.error is None


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ("channels: {kind: mirror}", "use --processes"),
        ("scenario: [{at_s: 1, partition: [desk, core], for_s: 5}]", "share no folder"),
    ],
)
def test_what_needs_sites_apart_is_refused_where_they_share_a_process(agents: Agents, more: str, word: str) -> None:
    agents.file.write_text(f"{FILE}{more}\n")
    with pytest.raises(CannotRun, match=word):
        Run(weft.spec.load(agents.file), agents.state, Options()).go()


def test_a_run_is_asked_from_elsewhere_over_its_desks_port(
    agents: Agents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "PAUSE_KNOWN_S", 0.0)  # nothing is ever committed here
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        agents.file.write_text(f"{FILE}desk: 127.0.0.1:{free.getsockname()[1]}\nkeys: keys\n")
    make_keys(tmp_path / "keys", ["desk", "core"])
    away = tmp_path / "elsewhere" / "weft.yaml"
    (away.parent / "keys").mkdir(parents=True)
    for name in ("weft.yaml", "keys/authority.pem", "keys/command.pem", "keys/command.key"):
        shutil.copy(tmp_path / name, away.parent / name)
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)
    until((agents.state / "status.json").exists)
    told = weft_json("status", away)
    assert (told["alive"], told["pid"], told["state"]) == (True, os.getpid(), str(agents.state))
    until(lambda: all(one["up"] for one in weft_json("status", away)["sites"].values()), "both sites are heard of")
    moved = weft_json("move", away, "q.small", "desk")
    assert (moved["from"], moved["to"], moved.get("state", "done")) == ("core", "desk", "done")
    refused = weft_json("move", away, "q.small", "moon", code=2)
    assert refused["state"] == "refused"
    assert "moon" in refused["why"]
    assert "a command from elsewhere: move q.small to moon" in command("logs", away, "-n", 1_000).stdout
    assert "stopped after" in command("stop", away).stdout
    until(agents.over)
    assert desk.error is None
    assert "is not there" in command("status", away).stderr


def told_more(story: Path, why: str, before: int) -> bool:
    """Whether something is told once more."""
    return story.read_text().count(why) > before


def test_a_run_listens_on_loopback_only_and_is_not_disturbed_by_who_may_not_speak(agents: Agents) -> None:
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)
    ports: list[Port] = [desk.run.sites.transport, agents.made["core"]._port]  # type: ignore[union-attr, list-item]
    if Path("/proc/net/tcp").exists():
        found = listening({os.getpid()})
        assert {port.address for port in ports} < found
        assert elsewhere(found) == set()
        with socket.create_server(("0.0.0.0", 0)) as to_all:  # which would be seen
            assert elsewhere(listening({os.getpid()})) == {to_all.getsockname()}
    launched = {site: list(engine.launched) for site, engine in agents.engines.items()}
    keys = agents.state / "keys"
    make_keys(keys, ["desk", "core", "stranger"])
    graph = roll.digest(as_written(desk.run.deployment))
    stranger, story = party_of("stranger"), agents.state / "story.log"
    for seed, port in enumerate(ports):
        for party, said, why in (
            (stranger, hello(party_of("core"), deployment=graph), "not to weft:site:core"),
            (stranger, hello(stranger, deployment=graph) + message(ROLL, ROLL), "spoke in the name of roll"),
            (stranger, hello(stranger, deployment=graph, stream=BULK) + framed(Ask("command", b"")), "bulk bytes"),
            (A_COMMAND, hello(A_COMMAND), "a command may only ask"),
        ):
            before = story.read_text().count(why)
            with raw(port, keys, party) as other:
                other.sendall(said)
                assert closed(other)
            until(partial(told_more, story, why, before), why)
        bad_frames(port, Assailant(keys, ("stranger",), ("stranger", "desk", "core"), graph), 150, seed, lambda: None)
    assert desk.run.crashed == set()
    assert {site: engine.launched for site, engine in agents.engines.items()} == launched
    assert not list(agents.state.glob("requests/*"))
    asked = desk.run.ask(MoveTo({"q.small": "desk"}))
    until(lambda: asked.state != "asked")
    assert asked.state == "done", asked.why
    desk.run.stop()
    until(agents.over)
    assert desk.error is None
