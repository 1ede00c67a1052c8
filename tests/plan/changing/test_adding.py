"""Queries that come to what runs: placed around it, shared among one another, and nobody is cut anew for nothing."""

from __future__ import annotations

from pathlib import Path

import weft.spec
from weft.model import Deployment, Placement
from weft.model.wishes import AddQuery, RemoveQuery, plain_wish
from weft.plan import place
from weft.plan.changing.adding import coming
from weft.plan.changing.difference import difference
from weft.plan.changing.fragments import cut
from weft.plan.changing.next_plan import next_plan
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan, first_plan
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.dataflow.sharing import with_sharing
from weft.plan.network.paths import Paths

FILE = """
weft: 1
sites: [{name: a}, {name: b, capacity: 0.1}]
links: [{from: a, to: b}]
sources: [{name: s, site: a, format: rate, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
           arrivals: {kind: constant, rate_per_s: 100}}]
queries:
  - name: q
    operators:
      - {name: keep, from: [s], site: a, sql: "SELECT * FROM s WHERE v > 0", cost_ms: 0.1, selectivity: 1}
      - {name: last, from: [keep], site: a, sql: "SELECT v FROM keep", cost_ms: 0.1, selectivity: 1}
    sink: {from: last, format: parquet, path: out/q}
"""
SAME = "SELECT v, ts FROM s WHERE v % 2 = 0"


def running(folder: Path, more: str = "") -> tuple[RunningPlan, Rules]:
    (folder / "d.yaml").write_text(FILE + more)
    deployment = with_sharing(with_ordering(weft.spec.load(folder / "d.yaml")))

    def cutting(found: Deployment, placement: Placement, relays: object) -> tuple[object, ...]:
        return cut(found, placement, lambda _, one: weft.spec.is_stateful(one), passes_by_sql, relays)  # type: ignore

    rules = Rules(cutting, Paths(deployment))  # type: ignore[arg-type]
    return first_plan(deployment, place(deployment), rules), rules


def wished(now: RunningPlan, *texts: str, by: str = "person") -> AddQuery | Impossible:
    """The wish for queries that read a stream each, `name: sql` or `name@site: sql`."""
    plain = []
    for text in texts:
        name, _, sql = text.partition(": ")
        name, _, site = name.partition("@")
        read = sql.split(" FROM ")[1].split()[0]
        operator = {"name": "o", "from": [read], "sql": sql, "cost_ms": 0.1, "selectivity": 1}
        operator |= {"site": site} if site else {}
        plain.append({"name": name, "operators": [operator],
                      "sink": {"from": "o", "format": "parquet", "path": f"out/{name}"}})  # fmt: skip
    added = weft.spec.plain_added({"queries": plain}, now.deployment)
    assert not added.errors, added.errors
    control = now.deployment.control
    return coming(now.deployment, now.placement, added.queries, control, "asked for", by)  # type: ignore[arg-type]


def granted(now: RunningPlan, wish: AddQuery | Impossible | RemoveQuery, rules: Rules) -> RunningPlan:
    assert not isinstance(wish, Impossible), wish
    then = next_plan(now, wish, rules)
    assert isinstance(then, RunningPlan), then
    return then


def test_what_comes_is_placed_around_what_runs(tmp_path: Path) -> None:
    now, rules = running(tmp_path)
    then = granted(now, wished(now, "r@b: SELECT v FROM s"), rules)
    assert then.placement.homes == {**now.placement.homes, "r.o": "b"}
    found = difference(now, then)
    assert found.olds == ()
    assert sorted(one.id for one in found.starts) == ["r.o", "s@r.o"], "it reads its source whole, by its own relay"


def test_a_name_that_is_taken_is_refused_in_the_words_of_the_door(tmp_path: Path) -> None:
    now, _ = running(tmp_path)
    query = now.deployment.query("q")
    says = Impossible("there is a query q already")
    assert coming(now.deployment, now.placement, (query,), now.deployment.control, "", "person") == says


def test_a_site_without_room_refuses_a_person_with_the_numbers(tmp_path: Path) -> None:
    now, rules = running(tmp_path)
    wish = wished(now, "r@b: SELECT v FROM s WHERE v > 1")
    assert isinstance(wish, AddQuery)
    heavy = weft.spec.plain_added(
        {"queries": [{"name": "r", "operators": [{"name": "o", "from": ["s"], "sql": "SELECT v FROM s", "site": "b",
                                                  "cost_ms": 5, "selectivity": 1}],
                      "sink": {"from": "o", "format": "parquet", "path": "out/r"}}]},
        now.deployment,
    ).queries  # fmt: skip
    full = next_plan(now, AddQuery(heavy, {"r.o": "b"}, by="person"), rules)
    assert full == Impossible(
        "b has no room: 0 ms/s planned there and 500 ms/s more, of 100 ms/s (capacity 0.1 x quota 1)"
    )


def test_only_a_query_whose_inside_is_read_is_cut_anew(tmp_path: Path) -> None:
    now, rules = running(tmp_path)
    then = granted(now, wished(now, "r@b: SELECT v FROM s WHERE v > 1"), rules)
    last = granted(then, wished(then, "t: SELECT v FROM q.keep WHERE v > 2"), rules)
    assert [one.id for one in difference(then, last).olds] == ["q.keep"]
    again = granted(last, wished(last, "u: SELECT v FROM q.keep WHERE v > 3"), rules)
    assert difference(last, again).olds == (), "its stream is given out already"


def test_queries_that_come_together_share_and_the_plan_knows_them_as_written(tmp_path: Path) -> None:
    now, rules = running(tmp_path, "control: {share: true}\n")
    wish = wished(now, f"r: {SAME}", "t: select v, ts FROM s x where x.v % 2 = 0")
    assert isinstance(wish, AddQuery)
    assert plain_wish(wish) == {"add": ["r", "t"]}
    then = granted(now, wish, rules)
    assert then.deployment.sharing is not None
    assert dict(then.deployment.sharing.stands) == {"t.o": "r.o"}
    assert [query.name for query in then.deployment.sharing.written] == ["q", "r", "t"]
    assert then.deployment.sharing.written[2].operators[0].from_ == ("s",)
    left = granted(then, RemoveQuery("r", by="person"), rules)
    assert "r.o" in left.placement.homes, "what t uses of it stays"
    assert next_plan(left, RemoveQuery("r", by="person"), rules) == Impossible("there is no query r; there are: q, t")


def test_the_only_query_stays(tmp_path: Path) -> None:
    now, rules = running(tmp_path)
    assert next_plan(now, RemoveQuery("q", by="person"), rules) == Impossible(
        "q is the only query: stop the run instead"
    )


def test_who_gives_a_stream_is_cut_anew_for_columns_that_did_not_travel_and_only_for_those(tmp_path: Path) -> None:
    away = """
  - name: p
    operators:
      - {name: keep, from: [s], site: a, sql: "SELECT * FROM s WHERE v > 1", cost_ms: 0.1, selectivity: 1}
      - {name: last, from: [keep], site: b, sql: "SELECT v FROM keep", cost_ms: 0.1, selectivity: 1}
    sink: {from: last, format: parquet, path: out/p}
control: {share: true}
"""
    now, rules = running(tmp_path, away)
    assert next(one for one in now.fragments if one.id == "p.keep").empty == (("p.keep", "ts"),)
    then = granted(now, wished(now, "r@b: SELECT v FROM p.keep"), rules)
    assert difference(now, then).ends == ()
    then = granted(now, wished(now, "r@b: SELECT v, ts FROM p.keep"), rules)
    assert [old.id for old, _ in difference(now, then).ends][:1] == ["p.keep"]
    assert next(one for one in then.fragments if one.id == "p.keep").empty == ()
    # Who needed it leaves again: what travels for nobody costs no pause.
    less = granted(then, RemoveQuery("r", by="person"), rules)
    assert next(one for one in less.fragments if one.id == "p.keep").empty == ()
    moved = granted(less, wished(less, "t@b: SELECT v FROM p.keep"), rules)
    assert difference(less, moved).ends == ()
