"""What a calibration concludes from batches, and where it is kept; the measuring itself is in the long check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from weft.bodies.live import calibration
from weft.bodies.live.calibrating import ALL, FRAGMENTS, PHASES, STARTING, calibrate, costs_of, deployment_in
from weft.plan.judging.batch_costs import SHIPPED
from weft.plan.judging.batch_pieces import fragments_of
from weft.plan.observing.batches import Batch
from weft.plan.policies.near import near
from weft.spark.process import is_slow
from weft.spec import validate

FIXED_MS = {
    "plain.all": 200.0, "window.all": 500.0, "fork.all": 300.0, "python.all": 260.0, "chain.head": 200.0,
    "chain.tail": 200.0, "text.all": 270.0, "once.all": 280.0, "join.all": 550.0,
}  # fmt: skip


def made_up(first_ms: float = 3000.0) -> list[Batch]:
    """Batches one after another, alone on the machine: slow ones first, then as they cost, then one of many records."""
    batches, now = [], 0.0
    for turn in range(STARTING + 6):
        for name, cost_ms in FIXED_MS.items():
            took = cost_ms + {0: first_ms, 1: first_ms / 10}.get(turn, 0.0)
            batches.append(Batch(name, now, now + took, 100, after_ms=30.0))
            now += took + 10.0
    return [*batches, Batch("plain.all", now, now + 200.0 + 0.02 * 10_000, 10_000)]


def test_costs_are_found_from_batches() -> None:
    found = costs_of(made_up(), load=0.5)
    assert (found.stateless_ms, found.stateful_ms, found.output_ms, found.python_ms) == (200.0, 500.0, 50.0, 60.0)
    assert (found.distinct_ms, found.join_ms) == (280.0, 550.0)
    assert (found.text_ms, found.after_ms) == (70.0, 30.0)
    assert found.record_ms == pytest.approx(0.01)
    assert found.first_ms == pytest.approx(3000, rel=0.1)
    assert found.cooling == pytest.approx(0.1, rel=0.1)
    assert found.look_ms == 10.0
    assert found.spread == 0.0
    assert found.cores == calibration.cores()
    assert "load average 0.5" in found.setting


def test_too_few_batches_are_no_calibration() -> None:
    with pytest.raises(ValueError, match="too busy"):
        costs_of(made_up()[: FRAGMENTS * STARTING - 1], load=30.0)


def test_every_kind_of_fragment_is_measured_alone_and_among_others(tmp_path: Path) -> None:
    from random import Random

    from weft.plan.stop import after_steps

    (tmp_path / "handed.py").write_text("def same(value): return value\n")
    deployment = deployment_in(tmp_path)
    assert not validate(deployment)[0]
    pieces = fragments_of(deployment, near(deployment, None, Random(0), after_steps(1)))
    assert {piece.id for piece in pieces} == set(FIXED_MS)
    assert len(pieces) == FRAGMENTS
    assert PHASES[0][0] == ALL
    assert is_slow(deployment, {}), "Java runs as for nearly all deployments"


def test_a_calibration_is_kept_and_one_of_another_machine_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    costs, said = calibration.known_costs()
    assert costs == SHIPPED
    assert "weft calibrate" in said
    mine = replace(SHIPPED, stateless_ms=123.0, cores=calibration.cores(), measured_at="2026-01-01 10:00")
    file = calibration.keep(mine)
    assert file == tmp_path / "weft" / "calibration.json"
    costs, said = calibration.known_costs()
    assert costs == mine
    assert str(file) in said
    calibration.keep(replace(mine, cores=calibration.cores() + 1))
    costs, said = calibration.known_costs()
    assert costs == SHIPPED
    assert "cores" in said
    file.write_text("{")
    assert calibration.known_costs()[0] == SHIPPED


@pytest.mark.long
def test_this_machine_is_calibrated() -> None:
    told: list[str] = []
    found = calibrate(told.append)
    assert found.stateful_ms > found.stateless_ms > 0
    assert found.first_ms > found.stateless_ms
    assert told
