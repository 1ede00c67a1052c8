"""Queries come and go in the twin as the scenario says, and are refused in the words of the one door."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft.spec
from weft.bodies.twin import CannotRun, run

FILE = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b, delay_ms: 1}]
sources: [{name: s, site: a, format: rate, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
           arrivals: {kind: constant, rate_per_s: 100}}]
queries:
  - name: q
    operators: [{name: o, from: [s], sql: "SELECT v FROM s", cost_ms: 0.1, selectivity: 1}]
    sink: {from: o, format: parquet, path: out/q}
"""
MORE = """
queries:
  - name: p
    operators: [{name: o, from: [s], sql: "SELECT v FROM s", cost_ms: COST, selectivity: 1, site: b}]
    sink: {from: o, format: parquet, path: out/p}
"""


def told(folder: Path, scenario: str, cost: str = "0.1") -> tuple[list[tuple[str, object]], dict[str, int], list[str]]:
    (folder / "p.yaml").write_text(MORE.replace("COST", cost))
    (folder / "d.yaml").write_text(f"{FILE}scenario: [{scenario}]\n")
    found = run(weft.spec.load(folder / "d.yaml"), seconds=10, seed=1)
    out = {name: one["records_out"] for name, one in found.queries.items()}
    return [(one["state"], one["wish"]) for one in found.changes], out, found.warnings


def test_a_query_that_comes_reads_its_source_from_the_beginning(tmp_path: Path) -> None:
    changes, out, _ = told(tmp_path, "{at_s: 4, add: p.yaml}")
    assert changes == [("done", {"add": ["p"]})]
    assert out["q"] >= 999
    assert out["p"] >= 999


def test_a_query_that_goes_gives_no_more_and_may_have_been_moved(tmp_path: Path) -> None:
    changes, out, _ = told(tmp_path, "{at_s: 1, add: p.yaml}, {at_s: 2, move: p.o, to: a}, {at_s: 5, remove: p}")
    assert [state for state, _ in changes] == ["done"] * 3
    assert out["q"] >= 999
    assert 490 <= out["p"] <= 501


def test_what_cannot_be_is_told_in_the_words_of_the_door(tmp_path: Path) -> None:
    _, _, warnings = told(tmp_path, "{at_s: 1, remove: q}")
    assert "q did not go at 1 s: q is the only query: stop the run instead" in warnings
    changes, out, warnings = told(tmp_path, "{at_s: 1, add: p.yaml}", cost="20")
    assert [state for state, _ in changes] == ["refused"]
    assert out["p"] == 0
    says = "p did not come at 1 s: b has no room: 0 ms/s planned there and 2000 ms/s more"
    assert any(says in one for one in warnings)


def test_a_file_of_the_scenario_that_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(MORE.replace("COST", "0.1").replace("SELECT v", "SELECT w"))
    (tmp_path / "d.yaml").write_text(f"{FILE}scenario: [{{at_s: 1, add: p.yaml}}, {{at_s: 2, remove: x}}]\n")
    errors = [problem.at("d.yaml") for problem in weft.spec.check(tmp_path / "d.yaml").errors]
    assert any("scenario[0].add: p.yaml: line 4: queries[0].operators[0].sql: there is no column `w`" in one
               for one in errors)  # fmt: skip
    assert any("scenario[1].remove: no query is called `x`; there are: q" in one for one in errors)


def test_a_name_comes_once_in_the_twin(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="query p comes again"):
        told(tmp_path, "{at_s: 1, add: p.yaml}, {at_s: 2, remove: p}, {at_s: 3, add: p.yaml}")


PROMISED = FILE.replace("  - name: q\n", "  - name: q\n    promise: {latency_ms: 0.2}\n")


@pytest.mark.parametrize(
    ("cost", "anyway", "state"), [("1", "", "done"), ("6", "", "refused"), ("6", ", anyway: true", "done")]
)
def test_a_query_that_would_break_a_promise_that_stands_is_refused_with_the_numbers_unless_anyway(
    tmp_path: Path, cost: str, anyway: str, state: str
) -> None:
    (tmp_path / "p.yaml").write_text(MORE.replace("COST", cost).replace("site: b", "site: a"))
    (tmp_path / "d.yaml").write_text(f"{PROMISED}scenario: [{{at_s: 1, add: p.yaml{anyway}}}]\n")
    found = run(weft.spec.load(tmp_path / "d.yaml"), seconds=3, seed=1)
    assert [one["state"] for one in found.changes] == [state]
    # By hand: 0.1 ms of work at a site that is then used by 0.1 * 100 + 6 * 100 = 610 ms of a second's 1000.
    why = "q: latency 0.3 ms is above the promised 0.2 ms by 0.1 ms, 0.3 ms of it at a; latency_ms: 1 could be kept"
    assert [one["why"] for one in found.changes] == [why if state == "refused" else ""]
    assert (found.queries["p"]["records_out"] == 0) == (state == "refused")


def test_a_site_that_is_lost_before_a_query_comes_or_after_it_went_is_no_outage_of_it(tmp_path: Path) -> None:
    lost = "{at_s: 1, crash: b}, {at_s: 2, restart: b}, {at_s: 8, crash: b}"
    changes, out, _ = told(tmp_path, f"{lost}, {{at_s: 4, add: p.yaml}}, {{at_s: 6, remove: p}}")
    assert changes == [("done", {"add": ["p"]}), ("done", {"remove": "p"})]
    assert out["p"] >= 590
