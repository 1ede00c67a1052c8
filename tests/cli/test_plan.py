"""`weft plan`: the contract's JSON, a table for people, and clear refusals."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.cli.cli_files import GOOD, changed, weft, weft_json, written
from weft.bodies.live.state import State, state_folder
from weft.plan.observing.history import Span


def test_a_plan_has_the_contracts_keys(tmp_path: Path) -> None:
    found = weft_json("plan", written(tmp_path))
    assert set(found) == {
        "placement", "shared", "projected", "potential", "objective", "warnings", "reasons", "fragments", "hops",
        "terms", "model", "placed_by", "batch_costs", "real_time", "notes",
    }  # fmt: skip
    assert found["placement"] == {"hourly_use": {"valid": ["gw-1"], "hourly": ["district"]}}
    near = "beside its input readings; as fast on district, where 80 kbps more would travel"
    assert found["reasons"] == {"hourly_use": {"valid": near, "hourly": "pinned"}}
    assert found["shared"] == []
    assert set(found["projected"]["hourly_use"]) == {
        "latency_ms", "availability", "admitted", "reason", "mean_ms", "p50_ms", "p95_ms", "model", "lost",
    }  # fmt: skip
    assert set(found["potential"]) == {"load", "correlation", "network", "total"}
    assert [set(piece) for piece in found["fragments"]] == [
        {"id", "site", "operators", "stateful", "reads", "writes"},
        {"id", "site", "operators", "stateful", "reads", "writes"},
    ]  # fmt: skip


def test_an_ideal_plan_projects_what_its_queries_may_expect(tmp_path: Path) -> None:
    found = weft_json("plan", written(tmp_path), "--ideal")
    # valid: 200/s of 1 ms on gw-1; hourly: 100/s of the assumed 0.1 ms on capacity 2.
    latency_ms = 1 / (1 - 0.2) + 20 + 0.05 / (1 - 0.005)
    projected = found["projected"]["hourly_use"]
    assert projected["latency_ms"] == projected["mean_ms"] == pytest.approx(latency_ms)
    assert projected["availability"] == pytest.approx(0.9)
    assert (projected["admitted"], projected["reason"]) == (True, "keeps its promised latency and availability")
    assert found["objective"] == {"name": "latency", "value": pytest.approx(latency_ms)}
    assert found["potential"]["load"] == pytest.approx(0.2 / 0.8 + 0.005)
    assert found["potential"]["network"] == 20.0
    assert any("hourly_use.hourly: cost_ms 0.1" in text for text in found["warnings"])


def test_fragments_say_what_they_read_and_write(tmp_path: Path) -> None:
    first, second = weft_json("plan", written(tmp_path))["fragments"]
    assert (first["id"], first["reads"], first["writes"]) == ("hourly_use.valid", ["readings"], ["hourly_use.valid"])
    assert (second["stateful"], second["reads"], second["writes"]) == (
        "hourly", ["hourly_use.valid"], ["sink hourly_use"],
    )  # fmt: skip


def test_a_query_that_reads_another_is_shown_with_what_it_reads(tmp_path: Path) -> None:
    more = """\
  - name: high
    operators:
      - {name: over, from: hourly_use.valid, sql: SELECT meter FROM hourly_use.valid, cost_ms: 1, site: district}
    sink: {from: over, format: parquet, path: out/high}
"""
    file = written(tmp_path, GOOD + more)
    found = weft_json("plan", file, "--ideal", "--plot", tmp_path / "plan.png")
    pieces = {piece["id"]: piece for piece in found["fragments"]}
    assert pieces["high.over"]["reads"] == ["hourly_use.valid"]
    assert (tmp_path / "plan.png").stat().st_size > 0
    # The filter stays at the source, 20 ms away: what the other query does to a record counts for the reader.
    busy, busy_here = (100 * 1 + 100 * 0.1) / 2000, 200 / 1000
    assert found["placement"]["hourly_use"]["valid"] == ["gw-1"]
    assert found["projected"]["high"]["latency_ms"] == pytest.approx(1 / (1 - busy_here) + 20 + 0.5 / (1 - busy))
    assert found["projected"]["high"]["availability"] == pytest.approx(0.9)
    told = weft("explain", file).output
    assert "high.over" in told
    assert "pinned" in told
    assert weft_json("twin", file, "--seconds", 3)["queries"]["high"]["records_in"] > 100


def test_the_objective_may_be_the_potential(tmp_path: Path) -> None:
    found = weft_json("plan", written(tmp_path, GOOD + "control: {place: {objective: potential}}\n"))
    assert found["objective"] == {"name": "potential", "value": found["potential"]["total"]}


def test_an_overloaded_site_is_null_and_said(tmp_path: Path) -> None:
    found = weft_json("plan", written(tmp_path, changed("cost_ms: 1,", "cost_ms: 9, site: gw-1,")), "--ideal")
    assert found["projected"]["hourly_use"] == {
        "latency_ms": None, "availability": pytest.approx(0.9), "admitted": False, "reason": "site gw-1 is overloaded",
        "mean_ms": None, "p50_ms": None, "p95_ms": None, "model": "ideal", "lost": 0.0,
    }  # fmt: skip
    assert found["objective"]["value"] is None


def test_people_get_operator_site_load_and_reason(tmp_path: Path) -> None:
    result = weft("plan", written(tmp_path))
    assert result.exit_code == 0
    rows = [line.split(None, 3) for line in result.stdout.splitlines()]
    assert ["operator", "site", "load", "reason"] in rows
    assert any(row[:3] == ["valid", "gw-1", "200.0"] and "beside its input readings; as fast" in row[3] for row in rows)
    assert "admitted, keeps its promised latency and availability" in result.stdout
    assert "warning: operator hourly_use.hourly" in result.stderr
    assert not set("│┃━\x1b") & set(result.stdout)


def test_a_policy_that_is_not_there_is_exit_2_with_those_that_are(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert weft("plan", file, "--policy", "near", "--seed", 3).exit_code == 0
    for policy in ("dpp", "nonsense", ""):
        result = weft("plan", file, "--policy", policy, "--json")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "there are: near" in result.stderr


def test_where_nothing_fits_it_is_exit_2_with_the_reason(tmp_path: Path) -> None:
    above = changed("    site: gw-1\n", "    site: district\n")
    file = written(tmp_path, above.replace("        site: district", "        site: gw-1"))
    result = weft("plan", file, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "hourly_use.valid fits nowhere" in result.stderr
    assert "tree rule" in result.stderr


def test_compare_shows_every_planner_best_first_with_the_twins_word(tmp_path: Path) -> None:
    file = written(tmp_path)
    found = weft_json("plan", file, "--compare", "--seconds", 2)
    assert {row["policy"] for row in found["policies"]} >= {"near", "refine", "greedy", "exact", "random"}
    values = [row["objective"] for row in found["policies"]]
    assert values == sorted(values)
    by_name = {row["policy"]: row for row in found["policies"]}
    counted = [row["hops"]["latency_ms"] for row in found["policies"]]
    exact, refine = (by_name[name]["hops"]["latency_ms"] for name in ("exact", "refine"))
    assert exact == min(counted)
    assert exact <= refine <= exact * 1.3, "as fast as can be told apart, with less traffic"
    assert by_name["near"]["twin"]["hourly_use"] is None or by_name["near"]["twin"]["hourly_use"] > 0
    table = weft("plan", file, "--compare", "--seconds", 0).stdout
    assert "refine *" in table
    assert "twin" not in table.splitlines()[1]


@pytest.mark.parametrize("model", [(), ("--ideal",)])
def test_compare_has_the_figures_of_a_plan_by_each_policy(tmp_path: Path, model: tuple[str, ...]) -> None:
    rising = "arrivals: {kind: trace, rates_per_s: [20, 400], period_s: 30}"
    steady = "arrivals: {kind: poisson, rate_per_s: 200}"
    file = written(tmp_path, changed(steady, rising) + "control: {place: {series: true}}\n")
    rows = weft_json("plan", file, "--compare", "--seconds", 0, *model)["policies"]
    for row in rows:
        alone = weft_json("plan", file, "--policy", row["policy"], *model)
        assert row["objective"] == alone["objective"]["value"], row["policy"]
        assert (row["placement"], row["hops"]) == (alone["placement"], alone["hops"]), row["policy"]
        for what, key in (("projected", "latency_ms"), ("mean", "mean_ms"), ("p50", "p50_ms"), ("p95", "p95_ms")):
            assert row[what] == {query: one[key] for query, one in alone["projected"].items()}, row["policy"]


def test_compare_puts_planners_that_break_a_promise_last(tmp_path: Path) -> None:
    # On gw-1, beside its input, the filter takes 1.25 of 21.3 ms; on the district 0.6 of 20.6.
    file = written(tmp_path, changed("latency_ms: 5000", "latency_ms: 21") + "control: {place: {hop_ms: 0}}\n")
    rows = weft_json("plan", file, "--compare", "--ideal", "--seconds", 0)["policies"]
    broken = [row["broken"] for row in rows]
    assert broken == sorted(broken)
    assert broken[-1] == ["hourly_use"]
    by_name = {row["policy"]: row for row in rows}
    assert (by_name["refine"]["broken"], by_name["near"]["broken"]) == ([], ["hourly_use"])
    lines = weft("plan", file, "--compare", "--ideal", "--seconds", 0).stdout.splitlines()
    assert lines[1].split()[-2:] == ["breaks", "s"]
    assert lines[-1].split()[-2] == "hourly_use"


def test_a_picture_shows_the_links_that_streams_take(tmp_path: Path) -> None:
    from weft.cli.picture import legs
    from weft.model import Placement
    from weft.spec import load

    text = GOOD.replace("  - {name: district, capacity: 2.0}\n", "  - {name: district}\n  - {name: middle}\n")
    text = text.replace("parent: district, ", "").replace("to: district, delay_ms: 20}", "to: middle, delay_ms: 20}\n"
                        "  - {from: middle, to: district, delay_ms: 5}")  # fmt: skip
    homes = {"hourly_use.valid": "gw-1", "hourly_use.hourly": "district"}
    found = legs(load(written(tmp_path, text)), Placement(homes))
    assert found == {"hourly_use": [("gw-1", "middle"), ("middle", "district")]}


def test_a_plan_may_be_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    assert weft("plan", written(tmp_path), "--plot", picture).exit_code == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert weft("plan", written(tmp_path), "--plot", tmp_path / "plan.nonsense").exit_code == 2


def test_a_plan_by_series_takes_the_rates_that_the_last_run_measured_over_time(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + "control: {place: {series: true}}\n")
    state = State(state_folder(file, None))
    state.path.mkdir(parents=True)
    assert weft_json("plan", file)["warnings"] == weft_json("plan", written(tmp_path))["warnings"]
    file = written(tmp_path, GOOD + "control: {place: {series: true}}\n")
    spans = [Span(5.0 * at, 5.0 * at + 5, 5.0, {"readings": 100.0 + 50 * (at % 2)}) for at in range(10)]
    state.note("rates.json", msgspec.to_builtins(spans))
    found = weft_json("plan", file)
    assert "source readings: its rate over the last 50 s, as measured" in found["warnings"]
    assert found["placement"]["hourly_use"]["hourly"] == ["district"]
