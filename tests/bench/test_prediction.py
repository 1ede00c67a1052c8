"""What is compared when plan and twin are set beside live: drawn files that are sound, and honest ratios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import prediction
from benchmarks._bench import load
from benchmarks._pairs import judged, pair
from benchmarks.prediction import drawn, laid_down, spread

from weft import spec
from weft.cli.placing import placed
from weft.cli.predicted import compared
from weft.spec import check


def test_drawn_deployments_are_sound_and_differ(tmp_path: Path) -> None:
    texts = [drawn(seed) for seed in range(20)]
    assert len(set(texts)) == 20
    assert drawn(7) == texts[7]
    for seed, text in enumerate(texts):
        report = check(laid_down(tmp_path, f"drawn-{seed}", text))
        assert report.deployment is not None, (text, report.errors)
    assert any("window" in text for text in texts)


def test_an_example_is_laid_down_with_its_data(tmp_path: Path) -> None:
    file = laid_down(tmp_path, "soccer")
    assert check(file).deployment is not None


def test_all_but_the_run_of_its_short_form(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The run, which starts a Spark, is left to the long check: here every query was as the twin says."""
    setting = load("prediction", short=True)

    def run_as_the_twin_says(file: Path, seconds: float) -> dict[str, Any]:
        before = placed(file, spec.load(file), None)
        names = [query.name for query in before.deployment.queries]
        said = compared(before, dict.fromkeys(names), seconds)
        return {"queries": compared(before, {name: said[name]["twin"] for name in names}, seconds), "load": [0.0, 0.0]}

    monkeypatch.setattr(prediction, "measured", run_as_the_twin_says)
    found = prediction.measure(setting)
    prediction.show(setting, found)
    assert "twin p50: " in capsys.readouterr().out
    assert found["ratios"]["twin p50"]["median"] == found["ratios"]["twin p95"]["median"] == 1.0
    assert found["ratios"]["plan p50"]["n"] == found["ratios"]["twin p50"]["n"] > 0


def test_the_spread_counts_what_lies_within_the_factor() -> None:
    def run(*ratios: float | None) -> dict[str, object]:
        told = {f"q{at}": {"ratio": {"plan": {"p50": ratio, "p95": ratio}}} for at, ratio in enumerate(ratios)}
        return {"queries": told}

    found = spread({"a": run(1.0, 1.6), "b": run(0.7, None), "c": {"error": "no"}}, "plan", "p50")
    assert found == {"n": 3, "median": 1.0, "range": [0.7, 1.6], "factor": 1.5, "within": 2}
    assert spread({"a": run(1.0, 1.6), "b": run(0.7)}, "plan", "p95")["within"] == 3
    assert spread({"c": {"error": "no"}}, "plan", "p50")["n"] == 0


def test_a_pair_differs_in_the_sites_of_operators_alone(tmp_path: Path) -> None:
    for seed in range(10):
        one, other = pair(seed, drawn)
        lines = [(a, b) for a, b in zip(one.splitlines(), other.splitlines(), strict=True) if a != b]
        assert lines
        assert all(line.startswith("        site: ") for both in lines for line in both)
        for at, text in enumerate((one, other)):
            assert check(laid_down(tmp_path, f"{seed}-{at}", text)).deployment is not None


def test_only_pairs_that_differ_are_asked_about_and_a_projection_that_knows_nothing_is_wrong() -> None:
    def run(plan: float, twin: float | None, measured: float | None) -> dict[str, object]:
        told = {"plan": plan, "twin": twin, "measured": measured}
        return {"queries": {"q": {by: None if p50 is None else {"p50": p50} for by, p50 in told.items()}}}

    near = (run(1, 9, 100), run(9, 1, 120))
    right = (run(1, 1, 100), run(9, 9, 200))
    wrong = (run(9, None, 100), run(1, 1, 200))
    unknown = (run(1, 1, None), run(9, 9, 200))
    found = judged([near, right, wrong, unknown], 0.3)
    assert (found["apart"], found["right"]) == (2, {"plan": 1, "twin": 1})
