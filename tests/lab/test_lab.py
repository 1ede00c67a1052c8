"""The lab: named schemes as the source gives them, rows that tell published beside measured, a page of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import ROOT
from tests.cli.cli_files import weft, weft_json
from weft.bodies.twin import run
from weft.lab import ALL, PLANNED, ROWS, Outcome, Row, Unmeasured, page, save, told
from weft.lab.frame import Curve, draw
from weft.lab.p_lab2 import latency_ms
from weft.lab.schemes import OUTSIDE, SCHEMES, deployment
from weft.plan.dataflow.rates import ideal_rates


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_has_the_numbers_of_its_table_and_runs(name: str) -> None:
    scheme = SCHEMES[name]
    world, placement = deployment(scheme, seed=1)
    assert len([site for site in world.sites if site.name != OUTSIDE]) == scheme.hosts
    operators = [operator for query in world.queries for operator in query.operators]
    assert len(operators) == scheme.operators == len(placement.homes)
    assert len(world.sources) == scheme.sources
    joins = [operator for operator in operators if operator.window is not None]
    assert len(operators) - len(joins) == round(scheme.filters * scheme.operators)
    assert all(operator.queue is not None and operator.queue.length == 100 for operator in operators)
    result = run(world, placement, seconds=5, seed=1)
    assert sum(one["records_out"] for one in result.queries.values()) > 0


def test_hybrid_schemes_stay_within_bounds() -> None:
    for name in ("scheme-4", "scheme-5"):
        world, _ = deployment(SCHEMES[name], seed=3)
        assert max(ideal_rates(world).per_s.values()) < 100


def test_scheme_1_takes_what_arithmetic_says_when_nothing_waits() -> None:
    world, placement = deployment(SCHEMES["scheme-1"], seed=2)
    together = type(placement)(dict.fromkeys(placement.homes, "h0"))
    found = run(world, together, seconds=1.0, seed=1).queries["chain0"]
    assert found["latency_ms"]["p50"] >= 9 * 20.0


def test_longer_chains_take_longer_in_the_original_and_greedy_helps() -> None:
    assert latency_ms(1, seed=1) < latency_ms(4, seed=1)
    assert latency_ms(4, seed=1, policy="greedy") < latency_ms(4, seed=1)


def test_every_row_is_planned_and_every_planned_row_is_listed_on_the_page(tmp_path: Path) -> None:
    assert set(ROWS) <= set(PLANNED)
    catalogue = {"N": 2, "P": 5, "D": 5, "O": 3, "S": 6}
    assert {f"{letter}-lab{at}" for letter, count in catalogue.items() for at in range(1, count + 1)} <= set(PLANNED)
    assert set(ALL) == set(PLANNED)
    text = page(tmp_path, ALL, PLANNED)
    assert all(f"| {name} |" in text for name in PLANNED)
    assert all(f"## {name}: " in text for name in PLANNED)


AUTHORS = {"N": "Kotsantis 2014", "P": "Wang et al. 2008", "D": "Belkhiria 2021", "O": "Mutschler & Philippsen 2013",
           "S": "Repantis 2008"}  # fmt: skip


def test_every_row_names_its_authors_and_says_what_was_chosen_or_why_it_is_not_measured() -> None:
    for name, row in ALL.items():
        assert row.published, name
        if name != "O-logs":
            assert row.source.startswith(f"{AUTHORS[name[0]]}, section"), name
        assert row.why if isinstance(row, Unmeasured) else row.choices, name


def test_rows_are_listed_with_what_was_published_measured_and_chosen(tmp_path: Path) -> None:
    row = ROWS["D-lab2"]
    save(row, Outcome({"late": 0.125, "by_drawing": [3.0, 1.5], "of": {"one": 2.0}}, {"less is late": False}), tmp_path)
    said = weft("lab", "D-lab2", "--list", "--results", tmp_path).stdout
    assert "source: Belkhiria 2021, sections 3.3.3 and 3.4.2" in said
    assert "published: safe mode: mitigates" in said
    assert "measured: late: 0.125; by_drawing: 1.5 to 3; of: one = 2\n" in said
    assert "DID NOT HOLD: less is late" in said
    assert [f"chosen: {one}" for one in row.choices if f"chosen: {one}\n" not in said] == []
    assert [f"less than published: {one}" for one in row.shrunk if f"less than published: {one}\n" not in said] == []
    every = {one["row"]: one for one in weft_json("lab", "--list", "--results", tmp_path)}
    assert set(every) == set(PLANNED)
    assert every["D-lab2"]["met"] is False
    assert every["P-lab2"]["met"] is None
    assert every["D-lab3"]["said"][0]["what"] == "not measured"
    assert every["D-lab3"]["source"].startswith("Belkhiria 2021")


def test_lines_over_different_things_have_axes_of_their_own(tmp_path: Path) -> None:
    import matplotlib

    lines = (Curve("one", (1.0, 2.0), (1.0, 2.0), "sites"), Curve("two", (3.0, 9.0), (1.0, 2.0), "replicas"))
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw(ROWS["S-lab6"], Outcome({}, {}, lines, ("", "availability")), tmp_path / "x.svg")
    picture = (tmp_path / "x.svg").read_text()
    assert [picture.count(f">{text}<") for text in ("sites", "replicas", "availability")] == [1, 1, 2]


def test_a_result_of_another_setting_is_told_as_that(tmp_path: Path) -> None:
    row = ROWS["D-lab2"]
    found = json.loads(save(row, Outcome({}, {"a": True}), tmp_path).read_text())
    assert "older setting" not in dict(told(row, found))
    found["setting"]["steps"] = 7
    assert "measure it again" in dict(told(row, found))["older setting"]


def test_results_that_are_kept_are_of_the_settings_that_rows_have_now() -> None:
    for name, row in ROWS.items():
        found = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
        assert "older setting" not in dict(told(row, found)), name


def test_a_row_is_met_only_where_all_its_claims_hold(tmp_path: Path) -> None:
    row = Row("X", "x", "somewhere", {}, {"value": 1}, lambda progress: Outcome({}, {}))
    assert Outcome({}, {"a": True, "b": False}).met is False
    outcome = Outcome({"value": 2.0}, {"a": True})
    found = json.loads(save(row, outcome, tmp_path).read_text())
    told = (found["row"], found["published"], found["measured"], found["met"])
    assert told == ("X", {"value": 1}, {"value": 2.0}, True)
