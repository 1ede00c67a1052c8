"""A desk and agents that share no folder: each has the file and its own key, and all else comes over their ports."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import weft.spec
from tests.bodies.live.processes.test_processes import COLUMNS, FILE, WAIT_S_MAX, Desk, Engine, until
from weft.bodies.live import journal
from weft.bodies.live.processes import copies
from weft.bodies.live.processes.agent import AgentProcess
from weft.bodies.live.processes.house import ProcessSites
from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import STOP, CannotRun, State
from weft.bodies.live.valid import valid
from weft.bodies.live.wire.authority import file_name, make_keys
from weft.bodies.live.wire.parties import THE_DESK
from weft.bodies.live.wire.parties import site as party_of
from weft.model import Channels
from weft.model.wishes import MoveTo
from weft.protocol.agents import ENDED
from weft.spark.fragments.analysis import Analysis
from weft.spark.sources.streams import read_flows
from weft.spark.storage.disk import seal, unseal

SITES = ("desk", "core")
HEADQUARTERS = "headquarters"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at, each another."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return found


def lay_out(folder: Path, text: str) -> None:
    """A folder each for the desk and the sites, with the file and the key that each needs, and no more."""
    *ports, own = free_ports(len(SITES) + 1)
    for site, port in zip(SITES, ports, strict=True):
        text = text.replace(f"{{name: {site}}}", f"{{name: {site}, address: '127.0.0.1:{port}'}}")
    text += f"desk: 127.0.0.1:{own}\nkeys: keys\nchannels: {{kind: mirror}}\n"
    make_keys(folder / "made", list(SITES))
    for name in (HEADQUARTERS, *SITES):
        (folder / name / "keys").mkdir(parents=True, mode=0o700)
        (folder / name / "weft.yaml").write_text(text)
        key = file_name(THE_DESK if name == HEADQUARTERS else party_of(name))
        for file in ("authority.pem", f"{key}.pem", f"{key}.key"):
            shutil.copy(folder / "made" / file, folder / name / "keys" / file)
    shutil.rmtree(folder / "made")


class Machines:
    """A folder each for the desk and the sites."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.folder = folder
        lay_out(folder, FILE + more)
        (folder / "desk" / "in").mkdir()
        self.file, self.state = folder / HEADQUARTERS / "weft.yaml", folder / HEADQUARTERS / "state"
        self.engines: dict[str, Engine] = {}
        self.made: dict[str, AgentProcess] = {}
        self.threads: dict[str, threading.Thread] = {}
        self.errors: dict[str, BaseException] = {}

    def start(self, site: str) -> AgentProcess:
        engine = self.engines[site] = Engine()
        analysis = Analysis({"lines": COLUMNS, "q.good": COLUMNS, "q.small": COLUMNS}, frozenset())
        spark: Any = SimpleNamespace(
            analysis=analysis, ui=None, alive=lambda: True, close=lambda: None,
            engines=lambda times, between, asked: lambda site: engine,
        )  # fmt: skip
        deployment = valid(weft.spec.check(self.folder / site / "weft.yaml", data=False).deployment, data=False)
        made = self.made[site] = AgentProcess(deployment, site, self.at(site), lambda *given: spark)

        def go() -> None:
            try:
                made.go()
            except CannotRun as error:
                self.errors[site] = error

        self.threads[site] = threading.Thread(target=go, daemon=True)
        self.threads[site].start()
        return made

    def at(self, site: str) -> Path:
        return self.folder / site / "state"

    def over(self) -> bool:
        return not any(thread.is_alive() for thread in self.threads.values())

    def kept(self, site: str) -> State:
        return State(self.at(site), channels=Channels("mirror"), site=site)


class ApartDesk(Desk):
    """A desk that starts none of its sites."""

    def __init__(self, machines: Machines, **options: Any) -> None:
        house = partial(ProcessSites, file=machines.file)
        deployment = weft.spec.check(machines.file, data=False).deployment
        self.run = Run(deployment, machines.state, Options(apart=True, **options), house)  # type: ignore[arg-type]
        self.summary: dict[str, Any] = {}
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._go, daemon=True)
        self.thread.start()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    made = Machines(tmp_path)
    yield made
    for one in made.made.values():
        one.stop()
    for thread in made.threads.values():
        thread.join(WAIT_S_MAX)


def test_sites_that_share_no_folder_come_in_any_order_move_operators_and_end_with_the_run(machines: Machines) -> None:
    machines.start("core")
    desk = ApartDesk(machines)
    until(lambda: desk.run.sites and desk.run.sites.is_up("core"))  # type: ignore[attr-defined]
    machines.start("desk")
    until(desk.runs, "both sites run their fragments")
    assert not (machines.state / "agents").exists()
    assert not (machines.folder / HEADQUARTERS / "out").exists()
    assert list((machines.folder / "core").glob(".out.weft/owner.json")), "the sink is claimed where it stands"
    assert not list((machines.folder / "desk").glob(".out.weft"))
    told = desk.run.status()["sites"]
    assert {site: one["up"] for site, one in told.items()} == dict.fromkeys(SITES, True)
    asked = desk.run.ask(MoveTo({"q.small": "desk"}))
    until(lambda: asked.state != "asked")
    assert asked.state == "done", asked.why
    plan = journal.read(desk.run.state)
    assert plan is not None
    until(lambda: (held := journal.read(machines.kept("core"))) is not None and held.number == plan.number)
    assert read_flows(machines.kept("desk").folders.flows)["starts"]
    desk.run.stop()
    until(machines.over, "the end of a run ends its agents")
    assert desk.error is None
    assert machines.errors == {}


def test_a_run_is_gone_on_with_and_a_desk_that_was_lost_finds_what_runs(machines: Machines) -> None:
    for site in SITES:
        machines.start(site)
    first = ApartDesk(machines)
    until(first.runs)
    before = {site: list(engine.launched) for site, engine in machines.engines.items()}
    first.lose()
    assert not machines.over()
    second = ApartDesk(machines)
    until(second.runs)
    assert {site: engine.launched for site, engine in machines.engines.items()} == before
    second.run.stop()
    until(machines.over)
    for site in reversed(SITES):
        machines.start(site)
    third = ApartDesk(machines)
    until(third.runs)
    assert all(engine.launched for engine in machines.engines.values()), "their folders are of this run"
    third.run.stop()
    until(machines.over)
    assert [one.error for one in (first, second, third)] == [None] * 3
    assert machines.errors == {}


def test_queries_do_not_come_to_a_run_whose_sites_may_hold_what_they_left(machines: Machines) -> None:
    for site in SITES:
        machines.start(site)
    first = ApartDesk(machines)
    until(first.runs)
    adding = first.run.parts.adding  # type: ignore[union-attr]
    plain = {"name": "r", "operators": [{"name": "all", "from": "lines", "sql": "SELECT v FROM lines", "site": "desk"}],
             "sink": {"from": "all", "format": "csv", "path": "other", "site": "core"}}  # fmt: skip
    asked = adding.add({"queries": [plain]}, ("r",), "asked for", "person", anyway=True)
    until(lambda: asked.state != "asked")
    assert (asked.state, "share no folder take only the queries of their files" in asked.why) == ("refused", True)
    first.run.stop()
    until(machines.over)
    more = "  - {name: r, operators: [{name: all, from: lines, sql: SELECT v FROM lines, site: desk}],"
    more += " sink: {from: all, format: csv, path: other, site: core}}\n"
    machines.file.write_text(machines.file.read_text().replace("desk: 127", f"{more}desk: 127"))
    second = ApartDesk(machines)
    until(lambda: second.error)
    assert "goes on without r" in str(second.error)


def test_an_agent_that_is_lost_and_comes_again_is_told_anew_what_to_run(machines: Machines) -> None:
    for site in SITES:
        machines.start(site)
    desk = ApartDesk(machines)
    until(desk.runs)
    (machines.at("core") / STOP).touch()  # `weft stop` on its machine
    machines.threads["core"].join(WAIT_S_MAX)
    assert not machines.threads["core"].is_alive()
    machines.start("core")
    until(lambda: machines.engines["core"].launched, "it runs again, under a later epoch")
    assert machines.engines["core"].launched[0][1] > 1
    until(lambda: not desk.run.down)
    desk.run.stop()
    until(machines.over)
    assert desk.error is None


@pytest.mark.parametrize("runs_on", [False, True])
def test_a_site_whose_folder_is_of_another_run_is_refused_by_name(machines: Machines, runs_on: bool) -> None:
    for site in SITES:
        machines.start(site)
    first = ApartDesk(machines)
    until(first.runs)
    if runs_on:
        first.lose()
    else:
        first.run.stop()
        until(machines.over)
        for site in SITES:
            machines.start(site)
    again = ApartDesk(machines, fresh=True)
    until(lambda: again.error)
    assert "holds an earlier run of this site" in str(again.error)
    until(machines.over)
    again.thread.join(WAIT_S_MAX)
    heard = again.run.sites._heard.values()  # type: ignore[union-attr]
    assert {here.phase for here, _ in heard} == {ENDED}, "none was waited for until it was silent"


def test_what_a_plan_says_is_here_before_a_fragment_starts_by_it(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "mark_of", lambda state: "always the same")
    for site in SITES:
        machines.start(site)
    desk = ApartDesk(machines)
    until(desk.runs)
    for site in SITES:
        held = journal.read(machines.kept(site))
        assert held is not None
        assert held.number == journal.read(desk.run.state).number  # type: ignore[union-attr]
    desk.run.stop()
    until(machines.over)
    assert desk.error is None


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("keys: keys\n", "", "`keys`"),
        ("kind: mirror", "kind: folder", "kind: mirror"),
        ("path: out, site: core", "path: out", "`site` of the sink of q"),
        ("scenario: []", "scenario: [{at_s: 1, crash: core}]", "cannot kill"),
        ("scenario: []", "control: {share: true}", "control.share"),
    ],
)
def test_what_sites_apart_cannot_run_is_refused_at_once(tmp_path: Path, old: str, new: str, word: str) -> None:
    machines = Machines(tmp_path, "scenario: []\n")
    machines.file.write_text(machines.file.read_text().replace(old, new))
    deployment = weft.spec.check(machines.file, data=False).deployment
    assert deployment is not None
    with pytest.raises(CannotRun, match=word):
        Run(deployment, machines.state, Options(apart=True), partial(ProcessSites, file=machines.file)).go()


@pytest.mark.parametrize("foreign", ["query", "name"])
def test_a_plan_brings_a_site_no_query_of_another_file_and_no_name_that_leads_elsewhere(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, foreign: str
) -> None:
    def forged(path: Path) -> bytes | None:
        found = path.read_bytes() if path.exists() else None
        if path.name != journal.FILE or found is None:
            return found
        held = msgspec.json.decode(unseal(found, path))
        if foreign == "query":
            held["shared"] = {"stands": {"q.good": "q.other"}, "operators": {}}
        else:
            held["fragments"][0]["id"] = "../../elsewhere"
        return seal(msgspec.json.encode(held))

    for site in SITES:
        machines.start(site)
    first = ApartDesk(machines)
    until(first.runs)
    first.run.stop()
    until(machines.over)
    kept = journal.read(machines.kept("core"))
    monkeypatch.setattr(copies, "_given", forged)
    for site in SITES:
        machines.start(site)
    desk = ApartDesk(machines)
    until(lambda: desk.error)
    assert "the desk's plan" in str(desk.error)
    until(machines.over)
    assert journal.read(machines.kept("core")) == kept
