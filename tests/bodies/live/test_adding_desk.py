"""Queries on their way into a run, without Spark: what refuses them, in which words, with nothing changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import weft.spec
from weft.bodies.live.adding import CLOSES, Adding
from weft.bodies.live.assembly import cutting
from weft.bodies.live.changes import Changes
from weft.bodies.live.facts import Facts
from weft.bodies.live.identity import identity
from weft.bodies.live.moves import Asked
from weft.bodies.live.resuming import CLOSING
from weft.bodies.live.state import CannotRun, State
from weft.model import Deployment
from weft.model.wishes import AddQuery
from weft.plan import place
from weft.plan.changing.running_plan import Rules, first_plan
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.network.paths import Paths

FILE = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b}]
sources: [{name: s, site: a, format: rate, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
           arrivals: {kind: constant, rate_per_s: 100}}]
queries:
  - name: q
    operators: [{name: o, from: [s], sql: "SELECT v FROM s", cost_ms: 0.1, selectivity: 1}]
    sink: {from: o, format: parquet, path: out/q}
"""


class House:
    """Knows whatever it is told, unless it is to say no."""

    def __init__(self) -> None:
        self.says: str | None = None
        self.lacks: str | None = None
        self.learned: list[Deployment] = []

    def try_out(self, deployment: Deployment) -> Any:
        if self.says is not None:
            raise CannotRun(self.says)
        return SimpleNamespace(deployment=deployment, facts=Facts(frozenset(), {}), lacks=self.lacks)

    def learn(self, learned: Any) -> None:
        self.learned.append(learned.deployment)


class Desk:
    """A run as queries on their way see it; what is asked for waits for ever."""

    def __init__(self, folder: Path) -> None:
        (folder / "d.yaml").write_text(FILE)
        self.deployment = weft.spec.load(folder / "d.yaml")
        self.state = State(folder / "state")
        self.state.is_of(self.state.begin(identity(self.deployment), {}, {}))
        rules = Rules(cutting(lambda _, one: weft.spec.is_stateful(one), passes_by_sql), Paths(self.deployment))
        self.changes = Changes(self.state, rules)
        self.changes.begin(first_plan(self.deployment, place(self.deployment), rules), None)
        self.sites = House()
        self.finding: Any = None
        self.notes: list[str] = []
        self.adding = Adding(self, self.deployment.control)  # type: ignore[arg-type]

    def note(self, text: str) -> None:
        self.notes.append(text)

    def know(self, deployment: Deployment) -> None:
        self.deployment = deployment

    def add(
        self, name: str = "p", sql: str = "SELECT v FROM s", path: str = "", anyway: bool = False, **more: Any
    ) -> Asked:
        operator = {"name": "o", "from": ["s"], "sql": sql, "cost_ms": 0.1, "selectivity": 1}
        sink = {"from": "o", "format": "parquet", "path": path or f"out/{name}"}
        promise = {"promise": more.pop("promise")} if "promise" in more else {}
        operator = {**operator, **more}
        plain = {"queries": [{"name": name, **promise, "operators": [operator], "sink": sink}]}
        return self.adding.add(plain, (name,), "asked for", "person", anyway)

    def until(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not true():
            assert time.monotonic() < deadline
            self.adding.look()
            time.sleep(0.01)


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    made = Desk(tmp_path)
    made.changes.hand_on = lambda asked: None
    yield made
    made.adding.stop()
    made.changes.close()


def test_a_query_that_nothing_stands_against_is_placed_known_and_its_sink_is_the_runs(desk: Desk) -> None:
    asked = desk.add(site="b")
    desk.until(lambda: asked.number > 0)
    assert (asked.state, asked.number) == ("asked", 1)
    assert isinstance(asked.wish, AddQuery)
    assert asked.wish.homes == {"p.o": "b"}
    assert [query.name for query in desk.deployment.queries] == ["q", "p"]
    assert len(desk.sites.learned) == 1
    record = desk.state.record()
    assert record is not None
    assert list(record.sinks) == ["p"]


def test_one_waits_until_the_one_before_is_over(desk: Desk) -> None:
    first, second = desk.add("p"), desk.add("r")
    desk.until(lambda: first.number > 0)
    for _ in range(20):
        desk.adding.look()
        time.sleep(0.01)
    assert second.number == 0, "it is not even looked at"
    first.end("refused", "no", 0.0)
    desk.until(lambda: second.number > 0)
    desk.add("t")
    desk.adding.leave("the run ends")
    assert [one.why for one in desk.changes.asked.values()] == ["no", "", "the run ends"]


def refused(desk: Desk, why: str, **query: Any) -> None:
    """Refused with these words, and nothing is changed."""
    before = (desk.state.record(), desk.changes.in_force, desk.deployment)
    asked = desk.add(**query)
    desk.until(lambda: asked.state != "asked")
    assert asked.state == "refused"
    assert why in asked.why
    assert (desk.state.record(), desk.changes.in_force, desk.deployment) == before
    assert desk.sites.learned == []
    assert asked.as_json()["pause_ms"] is None


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"name": "q"}, "there is a query q already"),
        ({"sql": "SELECT w FROM s"}, "queries[0].operators[0].sql: there is no column `w`"),
        ({"path": "out/q"}, "queries[0].sink.path: is also the folder of query q"),
        ({"path": "state/out"}, "state, the state folder of a run, which starting over empties"),
        ({"colour": "red"}, "queries[0].operators[0].colour: unknown key"),
        ({"site": "nowhere"}, "no site is called `nowhere`"),
        ({"cost_ms": 100, "site": "b"}, "b has no room: 0 ms/s planned there and 10000 ms/s more"),
    ],
)
def test_a_request_is_checked_like_a_file(desk: Desk, query: dict[str, Any], why: str) -> None:
    refused(desk, why, **query)


def test_what_spark_says_no_to_and_what_streams_lack_is_told(desk: Desk) -> None:
    desk.sites.says = "operator p.o: Spark knows no function summ"
    refused(desk, "Spark knows no function summ")
    desk.sites.says, desk.sites.lacks = None, "it would need to know how far ts of q.o has come"
    refused(desk, "how far ts of q.o has come")


def test_a_folder_that_cannot_be_written_and_a_run_that_closes_its_windows_take_nobody(desk: Desk) -> None:
    (Path(desk.deployment.folder) / "taken").write_text("a file")
    refused(desk, "sink of p:", path="taken/p")
    desk.state.write(CLOSING, {"files": {}})
    refused(desk, CLOSES)


def test_a_query_whose_promise_cannot_be_kept_is_refused_by_how_much_where_and_what_could_be(desk: Desk) -> None:
    refused(desk, "p: latency ", promise={"latency_ms": 1})
    said = list(desk.changes.asked.values())[-1].why
    assert "is above the promised 1 ms by " in said
    assert "its longest batches are those of p.o at a" in said
    assert said.endswith("could be kept")


def test_a_query_whose_promise_breaks_comes_anyway_and_that_is_told(desk: Desk) -> None:
    asked = desk.add(promise={"latency_ms": 1}, anyway=True)
    desk.until(lambda: asked.number > 0)
    assert asked.state == "asked"
    assert asked.wish.reason.startswith("asked for; anyway: p: latency ")


def test_a_query_that_accepts_less_comes_at_the_best_level_that_can_be_kept(desk: Desk) -> None:
    levels = [{"latency_ms": 2, "weight": 0.9}, {"latency_ms": 60_000, "weight": 0.5}]
    asked = desk.add(promise={"latency_ms": 1, "levels": levels})
    desk.until(lambda: asked.number > 0)
    assert asked.state == "asked"
    assert "p keeps its promised latency at the level of 60000 ms (worth 0.5)" in asked.wish.reason


def test_what_a_site_offers_already_is_told_with_the_query_that_comes(desk: Desk) -> None:
    desk.finding = SimpleNamespace(where=lambda: {"q.o": ("a",)})
    same, other = desk.add("p"), desk.add("r", sql="SELECT v + 1 v FROM s")
    desk.until(lambda: same.number > 0)
    told = "p.o is offered by a already, as q.o (`from: q.o` would read that from where it stands)"
    assert same.wish.reason == f"asked for; {told}"
    same.end("done", "", 0.0)
    desk.until(lambda: other.number > 0)
    assert other.wish.reason == "asked for"
