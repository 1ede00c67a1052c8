"""Relief of a live run: what a rule wishes goes through the desk, is told with its numbers, and moves what runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.drawn_moves import Fake
from tests.bodies.live.moving import delivered, differing, expected, make
from tests.bodies.live.test_advising import until
from weft.bodies.live.advising import Advising
from weft.bodies.live.assembly import cutting
from weft.bodies.live.changes import Changes
from weft.bodies.live.decision_file import DecisionFile, kept_decisions
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.meter import Meter
from weft.bodies.live.run import Options, Run
from weft.bodies.live.sites import Sites
from weft.bodies.live.state import State
from weft.bodies.live.transport import InProcess
from weft.model import (
    Advise,
    Control,
    Cost,
    Deployment,
    Link,
    Operator,
    Placement,
    Promise,
    Query,
    Relief,
    Sink,
    Site,
    Source,
)
from weft.plan.changing.running_plan import Rules, first_plan
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.network.paths import Paths

AT_A = Placement({"q.o": "a", "q.p": "a"})


def world(control: Control) -> Deployment:
    operators = (
        Operator("o", ("s",), sql="SELECT 1", cost_ms=Cost("constant", (1.5,)), selectivity=1.0),
        Operator("p", ("o",), sql="SELECT 1", cost_ms=Cost("constant", (0.1,)), selectivity=1.0),
    )
    query = Query("q", operators, (Sink("p", "console"),), Promise(latency_ms=2000))
    return Deployment(
        (Site("a"), Site("b", 2.0)), (Source("s", "a", "rate", ()),), (query,), (Link("a", "b", 1.0),), control
    )


class Counted:
    """Progress of a run whose source gives so many records a second."""

    def __init__(self) -> None:
        self.per_s = 100.0
        self._records, self._then_s = 0.0, time.monotonic()

    def records(self) -> int:
        now_s = time.monotonic()
        self._records += self.per_s * (now_s - self._then_s)
        self._then_s = now_s
        return round(self._records)

    def operators(self) -> dict[str, dict[str, Any]]:
        records = self.records()
        return {f"q.{name}": {"records_in": records, "records_out": records, "selectivity": 1.0} for name in "op"}

    def waiting(self) -> dict[str, int]:
        return {}

    def state_kb(self) -> dict[str, float]:
        return {}

    def used_s(self, site: str) -> float:
        return 0.1 * time.monotonic()


@contextmanager
def desk_of(deployment: Deployment, folder: Path) -> Iterator[tuple[Advising, Changes, Counted, Meter]]:
    """A live desk with its sites and a controller that is told what was measured, driven without Spark."""
    state = State(folder / "state")
    state.disk.make(state.path)
    fake, transport, meter = Fake(), InProcess(), Meter(deployment)
    rules = Rules(cutting(lambda _, operator: False, passes_by_sql), Paths(deployment))
    changes = Changes(state, rules)
    changes.begin(first_plan(deployment, AT_A, rules), None)
    sites = Sites(state, lambda site: fake, transport, lambda line: None)
    for site in deployment.sites:
        sites.start(site.name)
    desk = DeskBody(changes, transport, lambda line: None, lambda site, silent: False)
    desk.start()
    advising = Advising(deployment, meter, lambda: changes.placement, transport, lambda line: None)
    advising.tell_desk, changes.hand_on, advising.grant = changes.tell_desk, advising.wish, changes.ask
    advising.decisions.note = DecisionFile(state.path).write
    advising.start()
    try:
        assert desk.running.wait(20)
        yield advising, changes, Counted(), meter
    finally:
        advising.stop()
        desk.stop()
        changes.close()
        for body in sites.bodies():
            body.stop()


def look_at(advising: Advising, progress: Counted, meter: Meter) -> None:
    meter.timed["f", "s"] = progress.records()
    advising.look(time.monotonic(), progress, ())


def test_what_relief_wishes_is_carried_out_by_the_desk_and_told(tmp_path: Path) -> None:
    with desk_of(world(Control(relief=Relief(period_s=0.6))), tmp_path) as (advising, changes, progress, meter):
        ends_s = time.monotonic() + 3.0
        while time.monotonic() < ends_s:
            look_at(advising, progress, meter)
            time.sleep(0.05)
        assert changes.asked == {}, "nothing speaks for a move yet"
        progress.per_s = 1000.0
        until(lambda: [one for one in changes.asked.values() if one.state == "done"],
              lambda: look_at(advising, progress, meter))  # fmt: skip
        (asked,) = changes.asked.values()
        told = asked.as_json()
        assert (told["by"], told["state"], told["wish"]) == ("relief", "done", {"move": {"q.o": "b", "q.p": "b"}})
        assert told["reason"].startswith("q.o and q.p leave a: ")
        assert told["reason"].endswith("against a promise of 2 s; b keeps all promises; no other site does")
        assert changes.placement.homes["q.o"] == "b"
        assert changes.placement.reasons["q.o"].startswith("moved there from a by relief: q.o and q.p leave a: ")
        until(lambda: [one["state"] for one in kept_decisions(changes.state.path)] == ["done"], lambda: None)
        (entry,) = kept_decisions(changes.state.path)
        assert entry["numbers"]["slack_ms"]["q.o"] < 0


def test_where_rules_only_advise_the_desk_is_asked_for_nothing(tmp_path: Path) -> None:
    control = Control(relief=Relief(period_s=0.6), advise=Advise(period_s=1000.0))
    with desk_of(world(control), tmp_path) as (advising, changes, progress, meter):
        progress.per_s = 1000.0
        until(advising.decisions.advised, lambda: look_at(advising, progress, meter))
        assert changes.asked == {}
        assert advising.decisions.advised()[0]["by"] == "relief"
        assert changes.placement == AT_A


def test_a_wish_that_is_no_longer_possible_is_refused_with_the_reason_and_rests(tmp_path: Path) -> None:
    with desk_of(world(Control(relief=Relief(period_s=0.6))), tmp_path) as (advising, changes, progress, meter):
        progress.per_s = 1000.0
        changes.rules = Rules(changes.rules.cut, Paths(world(Control(relief=Relief()))), changes.rules.instances)
        broken = Deployment(*(getattr(world(Control()), name) for name in ("sites", "sources", "queries")), ())
        changes.rules = Rules(changes.rules.cut, Paths(broken))
        until(lambda: changes.asked, lambda: look_at(advising, progress, meter))
        (asked,) = changes.asked.values()
        assert asked.state == "refused"
        assert "no path" in asked.why
        until(lambda: [one for one in advising.decisions.entries() if one["state"] == "declined"],
              lambda: look_at(advising, progress, meter))  # fmt: skip
        refused, declined = advising.decisions.entries()
        assert (refused["state"], refused["why"]) == ("refused", asked.why)
        assert "rests" in declined["why"]


def test_decisions_are_read_back_and_what_is_garbled_is_left_out(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path)
    file.write({"number": 1, "at_s": 5.0, "state": "asked"})
    file.write({"number": 2, "at_s": 9.0, "state": "declined"})
    with open(file.path, "a", encoding="utf-8") as handle:
        handle.write('{"number": 3, "at\n[]\n')
    file.write({"number": 1, "at_s": 5.0, "state": "done"})
    assert [(one["number"], one["state"]) for one in kept_decisions(tmp_path)] == [(1, "done"), (2, "declined")]
    assert kept_decisions(tmp_path / "nowhere") == []


FILE = """
weft: 1
sites: [{name: a, capacity: 0.02}, {name: b, capacity: 2}]
links: [{from: a, to: b}]
sources:
  - {name: left, site: a, format: replay, path: left.csv, schema: "ts TIMESTAMP, k STRING, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: RATE}}
queries:
  - name: q
    promise: {latency_ms: 60000}
    operators:
      - {name: dear, from: [left], call: "dear:dear", cost_ms: 0.1, selectivity: 1}
      - {name: sums, from: [dear], watermark: 30 seconds, cost_ms: 0.001, selectivity: 0.3,
         sql: "SELECT window(ts, '1 minute') w, k, sum(v) s, count(*) n FROM dear GROUP BY 1, 2"}
    sink: {from: sums, format: parquet, path: out/sums}
control: {place: {policy: near}, relief: {period_s: 2, horizon_s: 60}}
scenario:
  - {at_s: 8, rate: {left: 3}}
"""
DEAR = """
import time


def dear(frame):
    def work(parts):
        for part in parts:
            ends_s = time.perf_counter() + 0.001 * len(part)
            while time.perf_counter() < ends_s:
                pass
            yield part

    return frame.mapInPandas(work, frame.schema)
"""


@pytest.mark.spark
def test_on_spark_an_operator_leaves_a_site_that_is_asked_too_much_and_results_equal_batch(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "dear.py").write_text(DEAR)
    deployment = make(tmp_path, 1, 6000, 100, text=FILE)
    summary = Run(deployment, tmp_path / ".weft", Options(until_done=True)).go()
    done = [one for one in summary["changes"] if one["state"] == "done"]
    assert done, f"{summary['changes']}, {summary['decisions']}"
    # By measured costs: on a busy machine the window may be found too dear to stay behind alone.
    assert (done[0]["by"], done[0]["wish"]["move"]["q.dear"]) == ("relief", "b")
    assert done[0]["reason"].startswith(("q.dear leaves a: ", "q.dear and q.sums leave a: "))
    assert len(done) == 1, "what has moved rests, and stays"
    assert summary["placement"]["q"]["dear"] == ["b"]
    told = json.loads((tmp_path / ".weft" / "status.json").read_text())
    assert told["changes"] == summary["changes"]
    assert kept_decisions(tmp_path / ".weft")[0]["state"] == "done"
    assert differing(delivered(spark, deployment), expected(spark, deployment)) == {}
