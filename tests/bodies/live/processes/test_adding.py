"""Queries come to sites in processes of their own, and go, without Spark: who knows them, refuses, comes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.bodies.live.processes.test_processes import COLUMNS, FILE, WAIT_S_MAX, Agents, Desk, Engine, until
from tests.cli.cli_files import weft as command
from weft.bodies.live import steering
from weft.bodies.live.processes import agent, house
from weft.bodies.live.processes.agent import AgentProcess
from weft.model import Deployment, dataflow
from weft.model.wishes import RemoveQuery
from weft.spark.fragments.analysis import Analysis
from weft.spark.fragments.operators import BadOperator

MORE = {
    "name": "r",
    "operators": [{"name": "big", "from": "lines", "sql": "SELECT v FROM lines WHERE v > 9", "site": "core"}],
    "sink": {"from": "big", "format": "csv", "path": "more", "site": "core"},
}
BAD = {**MORE, "name": "bad", "operators": [{**MORE["operators"][0], "name": "bad"}],  # type: ignore[dict-item]
       "sink": {**MORE["sink"], "from": "bad"}}  # type: ignore[dict-item]  # fmt: skip
IN_FILE = """
  - {name: p, operators: [{name: small, from: lines, sql: SELECT v FROM lines, site: core}],
     sink: {from: small, format: csv, path: small, site: core}}
"""


class Learning(Engine):
    """Remembers what it was told of."""

    def __init__(self) -> None:
        super().__init__()
        self.known: list[str] = []

    def learn(self, deployment: Deployment, schemas: Any, times: Any) -> None:
        self.known = [query.name for query in deployment.queries]


class Sites(Agents):
    """Agents whose Spark takes every operator but one that is called bad."""

    takes = True

    def start(self, site: str) -> AgentProcess:
        engine = self.engines[site] = Learning()

        def tried(deployment: Deployment) -> Analysis:
            streams = [node.stream for node in dataflow(deployment).nodes]
            if any(stream.endswith(".bad") for stream in streams) and site == "core":
                raise BadOperator("bad.bad: no such function")
            return Analysis(dict.fromkeys(["lines", *streams], COLUMNS), frozenset())

        spark: Any = SimpleNamespace(
            analysis=None, ui=None, alive=lambda: True, close=lambda: None, tried=tried,
            engines=lambda times, between, asked: lambda site: engine,
        )  # fmt: skip

        def learn(deployment: Deployment, analysis: Analysis, times: Any) -> None:
            spark.analysis = analysis

        def begin(deployment: Deployment, *given: Any) -> Any:
            spark.analysis = tried(deployment)
            return spark

        spark.learn = learn
        made = self.made[site] = AgentProcess(self.deployment(), site, self.state, begin, self.takes)
        self.threads[site] = threading.Thread(target=made.go, daemon=True)
        self.threads[site].start()
        return made


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    monkeypatch.setattr(steering, "PAUSE_KNOWN_S", 0.0)  # nothing is ever committed here
    monkeypatch.setattr(agent, "ANNOUNCE_S", 0.1)  # most of these tests is waiting for what is said once a second
    (tmp_path / "weft.yaml").write_text(FILE)
    (tmp_path / "in").mkdir()
    made = Sites(tmp_path)
    for site in ("desk", "core"):
        made.start(site)
    yield made
    for one in made.made.values():
        one.stop()
    for thread in made.threads.values():
        thread.join(WAIT_S_MAX)


def ask_for(desk: Desk, plain: dict[str, Any]) -> Any:
    """Let a query come; what became of it."""
    adding = desk.run.parts.adding  # type: ignore[union-attr]
    asked = adding.add({"queries": [plain]}, (plain["name"],), "asked for", "person", anyway=True)
    return until(lambda: asked.state != "asked" and asked, "an answer")


def test_a_query_comes_to_all_sites_and_is_run_and_one_that_a_site_refuses_changes_nothing(sites: Sites) -> None:
    desk = Desk(sites)
    until(desk.runs)
    before = {site: list(engine.launched) for site, engine in sites.engines.items()}
    refused = ask_for(desk, BAD)
    assert (refused.state, "no such function" in refused.why, "core" in refused.why) == ("refused", True, True)
    assert {site: engine.launched for site, engine in sites.engines.items()} == before
    came = ask_for(desk, MORE)
    assert came.state == "done", came.why
    assert [engine.known for engine in sites.engines.values()] == [["q", "r"], ["q", "r"]]
    assert "r.big" in [name for name, _ in sites.engines["core"].launched]
    desk.run.stop()
    until(sites.over)
    assert desk.error is None


def test_who_comes_back_knows_what_came_and_what_went(sites: Sites) -> None:
    desk = Desk(sites)
    until(desk.runs)
    assert ask_for(desk, MORE).state == "done"
    again(sites, "core")
    until(lambda: ran(desk, sites, "core") == {"q.small", "r.big"}, "it is told to run both again")
    asked = desk.run.ask(RemoveQuery("q", by="person"))
    until(lambda: asked.state != "asked")
    assert asked.state == "done", asked.why
    again(sites, "core")
    until(lambda: "r.big" in [name for name, _ in sites.engines["core"].launched])
    desk.lose()
    second = Desk(sites)
    until(second.runs, "a desk that begins anew finds what came")
    assert [query.name for query in second.run.deployment.queries] == ["r"]
    second.run.stop()
    until(sites.over)
    assert second.error is None


def test_apply_brings_what_runs_to_its_file_also_in_processes(sites: Sites) -> None:
    desk = Desk(sites)
    until(desk.runs)
    sites.file.write_text(FILE + IN_FILE)
    applied = command("apply", sites.file, "--yes", "--state", str(sites.state))
    assert applied.exit_code == 0, applied.stdout + applied.stderr
    assert "p.small" in [name for name, _ in sites.engines["core"].launched]
    sites.file.write_text(FILE[: FILE.index("  - name: q")] + IN_FILE)
    applied = command("apply", sites.file, "--yes", "--state", str(sites.state))
    assert applied.exit_code == 0, applied.stdout + applied.stderr
    assert [query.name for query in desk.run.deployment.queries] == ["p"]
    desk.run.stop()
    until(sites.over)
    assert desk.error is None


def test_a_query_waits_for_a_site_that_is_away(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "UP_S_MAX", 1.0)
    desk = Desk(sites)
    until(desk.runs)
    sites.made["core"].stop()
    until(lambda: desk.run.sites is not None and desk.run.sites.lost == {"core"})
    adding = desk.run.parts.adding  # type: ignore[union-attr]
    asked = adding.add({"queries": [MORE]}, ("r",), "asked for", "person", anyway=True)
    until(lambda: sites.engines["desk"].known == ["q", "r"])  # type: ignore[attr-defined]
    assert asked.state == "asked"
    again(sites, "core")
    until(lambda: asked.state != "asked")
    assert asked.state == "done", asked.why
    desk.run.stop()
    until(sites.over)
    assert desk.error is None


def test_what_the_spark_of_a_site_that_comes_back_refuses_ends_no_run(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "UP_S_MAX", 1.0)
    desk = Desk(sites)
    until(desk.runs)
    sites.made["core"].stop()
    until(lambda: desk.run.sites is not None and desk.run.sites.lost == {"core"})
    adding = desk.run.parts.adding  # type: ignore[union-attr]
    asked = adding.add({"queries": [BAD]}, ("bad",), "asked for", "person", anyway=True)
    until(lambda: sites.engines["desk"].known == ["q", "bad"])  # type: ignore[attr-defined]
    again(sites, "core")
    until(lambda: asked.state != "asked")
    assert (asked.state, "no such function" in asked.why) == ("refused", True)
    until(lambda: "q.small" in [name for name, _ in sites.engines["core"].launched], "it goes on with what it ran")
    desk.run.stop()
    until(sites.over)
    assert desk.error is None


def ran(desk: Desk, sites: Sites, site: str) -> set[str]:
    """What the present process of a site tells that it runs."""
    held = desk.run.sites._heard.get(site)  # type: ignore[attr-defined,union-attr]
    told = held is not None and held[0].life == sites.made[site].life
    return {one.fragment for one in held[0].runs} if told else set()


def again(sites: Sites, site: str) -> None:
    """The process of a site is gone, and another comes."""
    sites.made[site].stop()
    sites.threads[site].join(WAIT_S_MAX)
    sites.start(site)


def test_a_site_that_somebody_started_by_hand_takes_only_its_files_queries_also_when_some_have_gone(
    sites: Sites,
) -> None:
    sites.takes = False
    sites.file.write_text(FILE + IN_FILE)
    again(sites, "desk")
    again(sites, "core")
    desk = Desk(sites)
    until(desk.runs)
    refused = ask_for(desk, {**MORE, "name": "s", "sink": {**MORE["sink"], "path": "others"}})  # type: ignore[dict-item]
    assert (refused.state, ": takes only the queries of its file" in refused.why) == ("refused", True)
    assert sites.engines["core"].known == []  # type: ignore[attr-defined]
    asked = desk.run.ask(RemoveQuery("q", by="person"))
    until(lambda: asked.state != "asked")
    assert asked.state == "done", asked.why
    again(sites, "core")
    until(lambda: "p.small" in [name for name, _ in sites.engines["core"].launched], "it is believed, and runs again")
    desk.run.stop()
    until(sites.over)
    assert desk.error is None


def test_what_came_while_a_site_was_away_is_not_run_by_one_that_takes_only_its_files_queries(sites: Sites) -> None:
    desk = Desk(sites)
    until(desk.runs)
    assert ask_for(desk, MORE).state == "done"
    sites.takes = False
    again(sites, "core")
    sites.threads["core"].join(WAIT_S_MAX)
    assert "--takes-queries" in sites.made["core"].reason
    assert sites.engines["core"].launched == []
    desk.run.stop()
    until(sites.over)
