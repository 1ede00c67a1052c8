"""An operator that asks for order reads through an operator that gives it; nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from weft.model import MoveAt, Order, Watermark, dataflow
from weft.plan import place
from weft.plan.changing.fragments import cut
from weft.plan.dataflow.event_times import carried_times, passes_by_sql, time_column_of
from weft.plan.dataflow.ordering import hold_notes, orders_before, with_ordering
from weft.spec import check, is_ordering, is_stateful

FILE = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b, delay_ms: 1}]
sources:
  - {name: left, site: a, format: rate, schema: "ts TIMESTAMP, k STRING", event_time: ts,
     arrivals: {kind: constant, rate_per_s: 1}}
  - {name: right, site: a, format: rate, schema: "at TIMESTAMP, k STRING", event_time: at,
     arrivals: {kind: constant, rate_per_s: 1}}
queries:
  - name: q
    operators:
      - {name: good, from: [left], sql: "SELECT * FROM left WHERE k > 'b'"}
      - {name: counted, from: [good], sql: "SELECT window(ts, '1 hour') w, count(*) c FROM good GROUP BY 1",
         order: {late_max: 0.1}, site: b}
      - {name: plain, from: [right], sql: "SELECT upper(right.k) AS k FROM right", order: true}
    sink: [{from: counted, format: parquet, path: o1}, {from: plain, format: parquet, path: o2}]
scenario: [{at_s: 5, move: q.counted, to: a}]
"""


def stateful(_query: object, operator: object) -> bool:
    return is_stateful(operator)  # type: ignore[arg-type]


def test_ordering_is_an_operator_in_front_that_replaces_the_watermark(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(FILE)
    report = check(tmp_path / "file.yaml")
    assert report.deployment is not None, report.errors
    ordered = with_ordering(report.deployment)
    assert with_ordering(ordered) == ordered
    query = ordered.query("q")
    assert [one.name for one in query.operators] == ["good", "counted_order", "counted", "plain_order", "plain"]
    guard, counted = query.operator("counted_order"), query.operator("counted")
    assert is_ordering(guard)
    assert (guard.order, guard.site) == (Order(late_max=0.1, time="ts"), "b")
    assert counted.from_ == ("counted_order",)
    assert counted.sql == "SELECT window(ts, '1 hour') w, count(*) c FROM `counted_order` AS `good` GROUP BY 1"
    assert counted.watermarks == (Watermark("0 seconds"),)
    assert query.operator("plain").sql == "SELECT upper(right.k) AS k FROM `plain_order` AS `right`"
    # What orders goes along when the move is made: it is not asked for by itself.
    assert ordered.scenario == (MoveAt(5.0, "q.counted", "a"),)


def test_people_are_told_that_what_is_projected_is_without_the_hold(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(FILE)
    report = check(tmp_path / "file.yaml")
    assert report.deployment is not None, report.errors
    assert [line.partition(":")[0] for line in hold_notes(report.deployment)] == ["q"]
    assert hold_notes(replace(report.deployment, queries=())) == []


def test_a_fragment_still_has_one_stateful_operator_and_time_comes_from_what_was_let_go(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(FILE)
    ordered = with_ordering(check(tmp_path / "file.yaml").deployment)  # type: ignore[arg-type]
    fragments = cut(ordered, place(ordered), stateful, passes_by_sql)
    trunks = {fragment.id: (fragment.trunk, fragment.stateful) for fragment in fragments if fragment.trunk}
    assert trunks["q.counted_order"][1] == "counted_order"
    assert trunks["q.counted"] == (("counted",), "counted")
    assert trunks["q.plain_order"] == (("plain_order", "plain"), "plain_order")
    times = carried_times(ordered, stateful, passes_by_sql)
    assert times.origin("q.counted_order", "ts") == "measured"


def test_an_order_by_what_is_no_time_is_told(tmp_path: Path) -> None:
    for text, field, says in (
        ("order: {late_max: 0.1, time: k}", "queries[0].operators[1].order.time", "`k` is STRING"),
        ("order: {time: when}", "queries[0].operators[1].order.time", "`good` has no column `when`"),
        ("order: {held_max: 0}", "queries[0].operators[1].order.held_max", "at least 1"),
    ):
        (tmp_path / "file.yaml").write_text(FILE.replace("order: {late_max: 0.1}", text))
        errors = check(tmp_path / "file.yaml").errors
        assert [(one.field, says in one.message) for one in errors] == [(field, True)], errors


def test_control_orders_what_keeps_state_and_nothing_else(tmp_path: Path) -> None:
    text = FILE.replace("order: {late_max: 0.1}, ", "").replace(", order: true", "")
    (tmp_path / "file.yaml").write_text(text + "control: {order: {lambda: 1}}\n")
    report = check(tmp_path / "file.yaml")
    assert report.deployment is not None, report.errors
    names = [one.name for one in with_ordering(report.deployment).query("q").operators]
    assert names == ["good", "counted_order", "counted", "plain"]


def test_who_ordered_before_is_known_for_every_way(tmp_path: Path) -> None:
    text = FILE.replace(
        '      - {name: plain, from: [right], sql: "SELECT upper(right.k) AS k FROM right", order: true}\n',
        '      - {name: plain, from: [right], sql: "SELECT upper(right.k) AS k, at FROM right", order: true}\n'
        '      - {name: both, from: [good, plain], sql: "SELECT ts FROM good UNION ALL SELECT at FROM plain"}\n'
        '      - {name: last, from: [both], sql: "SELECT ts FROM both", order: {time: ts}}\n',
    )
    (tmp_path / "file.yaml").write_text(text.replace("path: o2}", "path: o2}, {from: last, format: parquet, path: o3}"))
    report = check(tmp_path / "file.yaml")
    assert report.deployment is not None, report.errors
    flow = dataflow(with_ordering(report.deployment))
    assert orders_before(flow, "q.plain_order") == (None,)
    assert orders_before(flow, "q.last_order") == (None, "q.plain_order")
    assert orders_before(flow, "q.last") == ("q.last_order",)


def test_what_orders_a_stream_of_another_query_has_a_name_of_its_own(tmp_path: Path) -> None:
    other = """
  - name: other
    operators:
      - {name: both, from: [q.good, right], sql: "SELECT g.k, r.k AS rk FROM q.good g JOIN right r ON g.k = r.k",
         order: true}
    sink: {from: both, format: parquet, path: o9}
"""
    (tmp_path / "file.yaml").write_text(FILE.replace("\nscenario:", f"{other}scenario:"))
    report = check(tmp_path / "file.yaml")
    assert report.deployment is not None, report.errors
    ordered = with_ordering(report.deployment)
    query = ordered.query("other")
    assert [operator.name for operator in query.operators] == ["both_order_q_good", "both_order_right", "both"]
    assert query.operator("both_order_q_good").from_ == ("q.good",)
    assert "FROM `both_order_q_good` g JOIN" in (query.operator("both").sql or "")
    assert orders_before(dataflow(ordered), "other.both") == ("other.both_order_q_good", "other.both_order_right")


HANDED_ON = """
weft: 1
sites: [{name: a}]
sources:
  - {name: s, site: a, format: rate, schema: "ts TIMESTAMP, k STRING", event_time: ts,
     arrivals: {kind: constant, rate_per_s: 1}}
queries:
  - name: q
    operators:
      - {name: kept, from: [s], sql: "SELECT ts, k FROM s"}
      - {name: renamed, from: [s], sql: "SELECT ts AS at, k FROM s"}
      - {name: both, from: [kept, s], sql: "SELECT kept.ts, s.k FROM kept JOIN s ON kept.k = s.k", watermark: 1 minute}
      - {name: of_kept, from: [kept], sql: "SELECT k, count(*) AS c FROM kept GROUP BY k"}
      - {name: of_renamed, from: [renamed], sql: "SELECT k, count(*) AS c FROM renamed GROUP BY k"}
    sink:
      - {from: both, format: console}
      - {from: of_kept, format: console, mode: update}
      - {from: of_renamed, format: console, mode: update}
control: {order: true}
"""


def test_what_has_lost_its_event_time_is_not_ordered_by_a_column_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(HANDED_ON)
    report = check(tmp_path / "file.yaml")
    assert report.deployment is not None, report.errors
    query = with_ordering(report.deployment).query("q")
    ordered = {one.from_[0]: one.order.time for one in query.operators if is_ordering(one) and one.order is not None}
    assert ordered == {"kept": "ts", "s": "ts"}, "the column ts of the stream renamed is called at"
    assert query.operator("of_renamed").from_ == ("renamed",)


def test_the_plan_finds_the_event_time_that_the_check_finds_behind_ordering_too(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(HANDED_ON)
    deployment = check(tmp_path / "file.yaml").deployment
    assert deployment is not None
    before = {name: time_column_of(deployment, deployment.query("q"), name) for name in ("kept", "renamed", "both")}
    assert before == {"kept": "ts", "renamed": None, "both": "ts"}
    ordered = with_ordering(deployment)
    query = ordered.query("q")
    assert [time_column_of(ordered, query, name) for name in query.operator("of_kept").from_] == ["ts"]
