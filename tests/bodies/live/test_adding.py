"""Queries come and go while records flow: all that runs is exact, and a run that goes on remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft.spec
from weft.bodies.live import journal
from weft.bodies.live.adding import plain_of
from weft.bodies.live.applying import between, make
from weft.bodies.live.moves import Asked
from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import CannotRun, State
from weft.model.wishes import RemoveQuery
from weft.plan.dataflow.sharing import as_written

pytestmark = pytest.mark.spark
RECORDS = 2500
FILE = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b}]
sources:
  - {name: s, site: a, format: replay, path: s.csv, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: 100}}
queries:
  - name: q
    operators:
      - {name: keep, from: [s], site: a, sql: "SELECT * FROM s WHERE v % 3 <> 0"}
      - {name: odd, from: [keep], site: b, sql: "SELECT v FROM keep WHERE v % 2 = 1"}
    sink: {from: odd, format: parquet, path: out/q}
  - name: gone
    operators: [{name: o, from: [s], sql: "SELECT v FROM s"}]
    sink: {from: o, format: parquet, path: out/gone}
"""
SQL = {
    "tens": "SELECT v FROM s WHERE v % 10 = 0",
    "minutes": "SELECT window(ts, '1 minute') w, sum(v) n FROM s GROUP BY 1",
    "fives": "SELECT v FROM s WHERE v % 5 = 0",
}


def added(name: str) -> str:
    """A file with a query more."""
    mark = ", watermark: 5 seconds" if name == "minutes" else ""
    return (
        f'queries:\n  - name: {name}\n    operators: [{{name: o, from: [s], site: b, sql: "{SQL[name]}"{mark}}}]\n'
        f"    sink: {{from: o, format: parquet, path: out/{name}}}\n"
    )


def begun(folder: Path) -> None:
    """A deployment with its records, and files of queries."""
    lines = [f"2024-01-01T00:{v // 60:02d}:{v % 60:02d}Z,{v}\n" for v in range(RECORDS)]
    (folder / "s.csv").write_text("".join(lines))
    (folder / "weft.yaml").write_text(FILE)
    for name in SQL:
        (folder / f"{name}.yaml").write_text(added(name))


def comes(run: Run, folder: Path, name: str) -> Asked:
    """The query of a file comes."""
    report = weft.spec.check_added(folder / f"{name}.yaml", as_written(run.deployment))
    assert not report.errors
    return run.add(*plain_of(report.queries))


class Steps:
    """Asks for one change after another while a run goes on, each when the one before is over."""

    def __init__(self, folder: Path, *steps: str) -> None:
        self.folder, self.steps, self.asked = folder, list(steps), []  # type: ignore[var-annotated]

    def watch(self, run: Run) -> None:
        if run.phase != "running" or (self.asked and self.asked[-1].state == "asked") or not self.steps:
            return
        verb, _, name = self.steps.pop(0).partition(" ")
        if verb == "stop":
            run.stop()
        else:
            asked = comes(run, self.folder, name) if verb == "add" else run.ask(RemoveQuery(name, by="person"))
            self.asked.append(asked)


def results(session: Any, folder: Path, name: str) -> list[Any]:
    files = [str(path) for path in (folder / "out" / name).glob("part-*")]
    return sorted(session.read.parquet(*files).collect()) if files else []


def in_batch(session: Any, folder: Path, sql: str) -> list[Any]:
    session.read.csv(str(folder / "s.csv"), schema="ts TIMESTAMP, v BIGINT").createOrReplaceTempView("s")
    return sorted(session.sql(sql).collect())


def test_three_queries_come_and_two_go_while_records_flow_and_all_is_exact(spark: Any, tmp_path: Path) -> None:
    begun(tmp_path)
    steps = Steps(tmp_path, "add tens", "add minutes", "remove gone", "add fives", "remove fives")
    run = Run(weft.spec.load(tmp_path / "weft.yaml"), tmp_path / "state", Options(until_done=True))
    summary = run.go(steps.watch)
    assert [(one.state, one.why) for one in steps.asked] == [("done", "")] * 5
    assert not steps.steps
    assert sorted(summary["queries"]) == ["minutes", "q", "tens"]
    assert results(spark, tmp_path, "q") == in_batch(spark, tmp_path, "SELECT v FROM s WHERE v % 3 <> 0 AND v % 2 = 1")
    for name in ("tens", "minutes"):
        assert results(spark, tmp_path, name) == in_batch(spark, tmp_path, SQL[name]), name
    for name, sql in (("gone", "SELECT v FROM s"), ("fives", SQL["fives"])):
        found = results(spark, tmp_path, name)
        assert found == in_batch(spark, tmp_path, sql)[: len(found)], f"{name} gave each once before it went"
    changes = summary["changes"]
    assert [one["wish"] for one in changes][:2] == [{"add": ["tens"]}, {"add": ["minutes"]}]
    assert all(one["by"] == "person" and one["pause_ms"] == 0.0 for one in changes), "nobody else had to wait"
    held = journal.read(run.state)
    assert held is not None
    assert ([one.name for one in held.beside.added], held.beside.removed) == (["tens", "minutes"], ("gone",))


def test_a_run_that_goes_on_with_its_old_file_remembers_what_came_and_went(spark: Any, tmp_path: Path) -> None:
    begun(tmp_path)
    steps = Steps(tmp_path, "add tens", "remove gone", "stop")
    file = weft.spec.load(tmp_path / "weft.yaml")
    Run(file, tmp_path / "state", Options(seconds=60)).go(steps.watch)
    assert [one.state for one in steps.asked] == ["done", "done"]
    run = Run(file, tmp_path / "state", Options(until_done=True))
    summary = run.go()
    assert sorted(summary["queries"]) == ["q", "tens"]
    assert any("query tens came while it ran and goes on" in note for note in run.notes)
    assert any("query gone of the file was removed while it ran and stays away" in note for note in run.notes)
    assert not any("the file has changed" in note for note in run.notes)
    assert results(spark, tmp_path, "tens") == in_batch(spark, tmp_path, SQL["tens"])
    assert results(spark, tmp_path, "q") == in_batch(spark, tmp_path, "SELECT v FROM s WHERE v % 3 <> 0 AND v % 2 = 1")


def test_a_changed_operator_without_state_goes_on_from_where_it_was(spark: Any, tmp_path: Path) -> None:
    begun(tmp_path)
    state = State(tmp_path / "state")
    steps = Steps(tmp_path, "add tens", "stop")
    Run(weft.spec.load(tmp_path / "weft.yaml"), state.path, Options(seconds=60)).go(steps.watch)
    (tmp_path / "weft.yaml").write_text(FILE.replace("v % 2 = 1", "v % 2 = 0"))
    changed = weft.spec.load(tmp_path / "weft.yaml")
    with pytest.raises(CannotRun, match="sql was"):
        Run(changed, state.path, Options(seconds=1)).go()
    found = between(state, changed, runs=False)
    assert ([one.what for one in found.changed], found.why_not()) == (["operator q.odd"], [])
    assert (found.removed, found.kept) == (("tens",), ("gone",))
    make(state, changed, found)
    summary = Run(changed, state.path, Options(until_done=True)).go()
    assert sorted(summary["queries"]) == ["gone", "q"], "the file alone counts now"
    kept = [row.v for row in results(spark, tmp_path, "q")]
    odd, even = [v for v in kept if v % 2], [v for v in kept if v % 2 == 0]
    assert odd == [v for v in range(RECORDS) if v % 3 and v % 2][: len(odd)], "the old one, up to where it was"
    whole = [v for v in range(RECORDS) if v % 3 and v % 2 == 0]
    assert even == whole[len(whole) - len(even) :]
    assert even
    assert not odd or odd[-1] < even[0], "then the new one"
    assert results(spark, tmp_path, "gone") == in_batch(spark, tmp_path, "SELECT v FROM s")


def test_the_scenario_lets_queries_come_and_go(spark: Any, tmp_path: Path) -> None:
    begun(tmp_path)
    story = "scenario:\n  - {at_s: 1, add: fives.yaml}\n  - {at_s: 2, remove: gone}\n"
    (tmp_path / "weft.yaml").write_text(FILE + story)
    file = weft.spec.load(tmp_path / "weft.yaml")
    summary = Run(file, tmp_path / "state", Options(until_done=True)).go()
    told = [(one["by"], one["wish"], one["state"]) for one in summary["changes"]]
    assert sorted(told, key=str) == [
        ("scenario", {"add": ["fives"]}, "done"), ("scenario", {"remove": "gone"}, "done"),
    ]  # fmt: skip
    assert results(spark, tmp_path, "fives") == in_batch(spark, tmp_path, SQL["fives"])
