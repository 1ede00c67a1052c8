"""`weft explore` and `weft bench`: names that are not there, violations as stories, exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_files import weft, weft_json

FOUND: dict[str, Any] = {
    "states": 3,
    "worlds": [{"name": "two sites", "states": 3, "steps": 4}],
    "violations": [],
}
BROKEN = FOUND | {
    "violations": [{"world": "two sites", "claim": "one home", "story": ["1 a Start -> Launch", "2 b Start -> Launch"]}]
}


@pytest.fixture
def explored(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the explorer was asked; it answers what is set under `gives`."""
    from weft.bodies import explorer

    asked: dict[str, Any] = {"gives": FOUND}

    def explore(name: str, as_published: bool, long: bool, told: Any) -> dict[str, Any]:
        asked.update(name=name, as_published=as_published, long=long)
        return dict(asked["gives"])

    monkeypatch.setattr(explorer, "explore", explore)
    return asked


def test_what_holds_is_said(explored: dict[str, Any]) -> None:
    from weft.bodies.explorer.registry import claims
    from weft.bodies.explorer.worlds.counting import TAKEN_AWAY

    explored["gives"] = FOUND | {"claims": claims("move")}
    said = weft("explore", "move").stdout
    assert "holds: of every state that can be reached, and of every step, it is so that\n" in said
    assert len(claims("move")) > 3
    assert TAKEN_AWAY in claims("counting"), "what is asked of steps is told, too"
    assert [claim for claim in claims("move")[:-1] if f"  {claim}\n" not in said] == []
    assert "  every wait ends\n" in said


def test_an_unknown_protocol_is_exit_2_with_those_there_are() -> None:
    result = weft("explore", "nonsense", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there are: hosting" in result.stderr


def test_a_clean_exploration_is_exit_0(explored: dict[str, Any]) -> None:
    assert weft_json("explore", "hosting", "--as-published", "--long") == FOUND
    assert explored | {"gives": None} == {"gives": None, "name": "hosting", "as_published": True, "long": True}
    assert "two sites: holds, 3 states" in weft("explore", "hosting").stdout


def test_a_violation_is_exit_1_and_tells_its_story(explored: dict[str, Any]) -> None:
    explored["gives"] = BROKEN
    assert weft_json("explore", "hosting", code=1) == BROKEN
    result = weft("explore", "hosting")
    assert result.exit_code == 1
    assert "broken in two sites: one home\n  1 a Start -> Launch\n  2 b Start -> Launch\n" in result.stdout


def test_bench_outside_a_checkout_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from weft.cli import bench

    monkeypatch.setattr(bench, "ROOT", tmp_path)
    result = weft("bench")
    assert result.exit_code == 2
    assert "come with a checkout" in result.stderr


def test_bench_runs_what_lies_in_benchmarks_and_gathers_their_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from weft.cli import bench

    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "quick.py").write_text("print('{\"ratio\": 0.5}')\n")
    (tmp_path / "benchmarks" / "broken.py").write_text("raise SystemExit(3)\n")
    for helper in ("__init__.py", "_shared.py"):
        (tmp_path / "benchmarks" / helper).write_text("")
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    assert weft_json("bench", "quick") == {"quick": {"ratio": 0.5}}
    assert weft_json("bench", code=1) == {"quick": {"ratio": 0.5}}
    assert "there are: broken, quick" in weft("bench", "none").stderr
