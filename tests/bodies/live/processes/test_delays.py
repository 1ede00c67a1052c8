"""Sites in processes of their own feed delays back over their ports, and a desk that comes again finds them known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.delays import Delaying
from tests.bodies.live.processes import test_processes
from tests.bodies.live.processes.test_processes import Agents, Desk, until
from weft.bodies.live.feedback import site as feedback_site

FILE = """
weft: 1
sites: [{name: desk}, {name: core}]
links: [{from: desk, to: core}]
sources:
  - {name: lines, site: desk, format: csv, path: in, schema: "v BIGINT"}
queries:
  - name: q
    promise: {latency_ms: 5000}
    operators:
      - {name: good, from: lines, sql: "SELECT * FROM lines WHERE v >= 0", site: desk}
      - {name: small, from: good, sql: "SELECT v FROM good WHERE v < 50", site: core}
    sink: {from: small, format: csv, path: out, site: core}
control: {relief: {period_s: 3600, horizon_s: 7200}}
"""
LEFT = {"desk": {"q.good": 4000.0}, "core": {"q.small": 4000.0}}


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agents]:
    monkeypatch.setattr(test_processes, "Engine", Delaying)
    monkeypatch.setattr(feedback_site, "BEAT_S", 0.5)
    (tmp_path / "weft.yaml").write_text(FILE)
    (tmp_path / "in").mkdir()
    made = Agents(tmp_path)
    yield made
    for one in made.made.values():
        one.stop()


def left(desk: Desk) -> dict[str, Any]:
    assert desk.error is None, desk.error
    return {name: one.get("slack_ms") for name, one in desk.run.status()["sites"].items()}


def test_sites_in_processes_know_the_time_that_is_left_also_while_there_is_no_desk(agents: Agents) -> None:
    for site in ("desk", "core"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)
    until(lambda: left(desk) == LEFT, "every site tells what it knows")
    desk.lose()
    for engine in agents.engines.values():
        engine.delay_ms = 7000.0  # type: ignore[attr-defined]
    again = Desk(agents)
    until(again.runs)
    until(lambda: left(again) == {"desk": {"q.good": -2000.0}, "core": {"q.small": -2000.0}})
    again.run.stop()
    again.thread.join(60)
    until(agents.over)
