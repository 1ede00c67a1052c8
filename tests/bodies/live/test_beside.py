"""What came and went while a run was going on: the journal keeps it, and a run that goes on has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import weft.spec
from weft.bodies.live import journal
from weft.bodies.live.beside import Beside
from weft.bodies.live.sharing import to_run
from weft.bodies.live.state import CannotRun, State
from weft.model import Deployment, Placement, Query
from weft.model.wishes import AddQuery, RemoveQuery
from weft.plan.changing.running_plan import RunningPlan

FILE = """
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: rate, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
           arrivals: {kind: constant, rate_per_s: 1}}]
queries:
"""


def query(name: str, path: str = "", sql: str = "SELECT v FROM s") -> str:
    return (
        f'  - {{name: {name}, operators: [{{name: o, from: [s], sql: "{sql}"}}], '
        f"sink: {{from: o, format: csv, path: {path or name}}}}}\n"
    )


def read(folder: Path, *queries: str) -> Deployment:
    (folder / "d.yaml").write_text(FILE + "".join(queries))
    return weft.spec.load(folder / "d.yaml")


def named(*names: str) -> tuple[Query, ...]:
    return tuple(Query(name, (), ()) for name in names)


def test_what_persons_let_come_and_go_is_beside_the_file_and_what_the_file_asks_for_is_not() -> None:
    some = Beside().after(AddQuery(named("r", "t"), {}, by="person")).after(RemoveQuery("q", by="scenario"))
    assert some == Beside(named("r", "t"), ("q",))
    assert some.after(RemoveQuery("r", by="person")) == Beside(named("t"), ("q",)), "it never was in the file"
    assert some.after(RemoveQuery("r", by="file")) == Beside(named("t"), ("q",))
    assert some.after(RemoveQuery("x", by="file")) == some
    assert some.after(AddQuery(named("q"), {}, by="file")) == Beside(named("r", "t"))
    assert some.after(AddQuery(named("x"), {}, by="file")) == some


@pytest.fixture
def state(tmp_path: Path) -> State:
    """A state of a file with q and r: r was removed while it ran, and t came."""
    deployment = read(tmp_path, query("q"), query("r"), query("t"))
    made = State(tmp_path / "state")
    made.disk.make(made.path)
    beside = Beside((deployment.query("t"),), ("r",))
    runs = replace(deployment, queries=tuple(one for one in deployment.queries if one.name != "r"))
    plan = RunningPlan(2, runs, Placement({"q.o": "a", "t.o": "a"}), ())
    journal.write(made, plan, {}, {}, beside)
    held = journal.read(made)
    assert held is not None
    assert held.beside == beside, "with all that was written in the query"
    return made


def names(deployment: Deployment) -> list[str]:
    return [one.name for one in deployment.queries]


def test_a_run_that_goes_on_has_what_came_and_not_what_went(tmp_path: Path, state: State) -> None:
    assert names(to_run(read(tmp_path, query("q"), query("r")), state, fresh=False)) == ["q", "t"]
    assert names(to_run(read(tmp_path, query("q"), query("r")), state, fresh=True)) == ["q", "r"]


def test_once_the_file_says_the_same_it_says_it_alone(tmp_path: Path, state: State) -> None:
    held = journal.read(state)
    assert held is not None
    same = read(tmp_path, query("q"), query("t"))
    assert not held.beside.of_file(same)
    assert names(to_run(same, state, fresh=False)) == ["q", "t"]
    more = read(tmp_path, query("q"), query("x"))
    assert names(to_run(more, state, fresh=False)) == ["q", "x", "t"]


def test_what_came_and_does_not_go_with_the_file_any_more_is_refused_in_words(tmp_path: Path, state: State) -> None:
    clash = read(tmp_path, query("q"), query("x", path="t"))
    with pytest.raises(CannotRun, match=r"does not go with this file.*`weft apply` lets the file alone count"):
        to_run(clash, state, fresh=False)


def test_the_file_alone_counts_again_once_it_is_applied(tmp_path: Path, state: State) -> None:
    journal.write_alone(state)
    assert names(to_run(read(tmp_path, query("q"), query("r")), state, fresh=False)) == ["q", "r"]
    held = journal.read(state)
    assert held is not None
    assert (held.number, set(held.placement.homes)) == (2, {"q.o", "t.o"}), "the plan in force is as it was"
