"""Sites in processes of their own balance over their ports, and go on where one was lost; without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bodies.live.balanced import Flow, Measuring
from tests.bodies.live.processes import test_processes
from tests.bodies.live.processes.test_processes import Agents, Desk, until
from weft.bodies.live.decision_file import kept_decisions

FILE = """
weft: 1
sites: [{name: core}, {name: desk, parent: core}, {name: side, parent: core}]
links: [{from: desk, to: core}, {from: side, to: core}]
sources:
  - {name: lines, site: desk, format: csv, path: in, schema: "v BIGINT"}
queries:
  - name: q
    operators:
      - {name: good, from: lines, sql: "SELECT * FROM lines WHERE v >= 0", cost_ms: 5.5}
      - {name: small, from: good, sql: "SELECT v FROM good WHERE v < 50", cost_ms: 1.5}
    sink: {from: small, format: csv, path: out}
control: {place: {policy: near}, balance: {kind: tree, low: 0.05, period_s: 1}}
"""


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agents]:
    flow = Flow(per_s=0.0)
    monkeypatch.setattr(test_processes, "Engine", lambda: Measuring(flow))
    (tmp_path / "weft.yaml").write_text(FILE)
    (tmp_path / "in").mkdir()
    made = Agents(tmp_path)
    made.flow = flow  # type: ignore[attr-defined]
    yield made
    for one in made.made.values():
        one.stop()


def test_an_overloaded_site_gives_an_operator_to_its_parent_in_another_process(agents: Agents) -> None:
    for site in ("core", "desk", "side"):
        agents.start(site)
    desk = Desk(agents)
    until(desk.runs)
    changes = desk.run.changes
    assert changes is not None
    assert changes.placement.homes == {"q.good": "desk", "q.small": "desk"}
    agents.flow.per_s = 100.0  # type: ignore[attr-defined]
    until(lambda: [one for one in changes.moves if one.state == "done"])
    (move,) = changes.moves
    assert (move.operator, move.start, move.to) == ("small", "desk", "core")
    assert re.fullmatch(r"desk was at \d+ %, above 60 %|core was at 0 %, below 5 %", move.reason), "who looks first"
    until(lambda: [one["state"] for one in kept_decisions(agents.state)] == ["done"])
    assert {path.name for path in (agents.state / "balance").iterdir()} == {"core.json", "desk.json", "side.json"}
    desk.run.stop()
    desk.thread.join(60)
    assert [(one["by"], one["state"]) for one in desk.summary["changes"]] == [("balance", "done")]
    assert [one["state"] for one in desk.summary["decisions"]] == ["done"]
    until(agents.over)
