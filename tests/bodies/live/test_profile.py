"""How much can an operator take? What is concluded from what was offered and done, and a trial on Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bodies.live.test_measurements import FILE, SLOW
from weft.bodies.live.profile import WARMING_STEPS, Trial, rising


def worked_off(capacity_per_s: float, batch_s: float, rates: tuple[float, ...], step_s: float) -> tuple[Trial, float]:
    """A trial of a server that takes all that waits in one batch, at its pace, and never less than `batch_s` for it."""
    trial = Trial(rates, step_s)
    offered = [0.0]
    for rate in rates:
        offered.append(offered[-1] + rate * step_s)

    def born(at_s: float) -> float:
        at = min(int(at_s / step_s), len(rates))
        return offered[at] + (at_s - at * step_s) * (rates[at] if at < len(rates) else rates[-1])

    now_s, done = 0.0, 0
    while not trial.is_over(now_s):
        waiting = int(born(now_s)) - done
        now_s += max(batch_s, waiting / capacity_per_s)
        done += waiting
        trial.saw(now_s, done)
    return trial, now_s


def test_rates_double_after_a_warm_up_and_end_at_the_greatest() -> None:
    rates = rising(1000)
    assert rates[: WARMING_STEPS + 1] == (25.0,) * (WARMING_STEPS + 1)
    assert rates[WARMING_STEPS + 1 :] == (50.0, 100.0, 200.0, 400.0, 800.0, 1000.0)


@pytest.mark.parametrize("capacity_per_s", [150.0, 480.0, 3_000.0, 20_000.0])
def test_the_pace_at_the_limit_is_the_capacity(capacity_per_s: float) -> None:
    trial, at_s = worked_off(capacity_per_s, 0.3, rising(1e5), 4.0)
    found = trial.capacity_per_s(at_s)
    assert found == pytest.approx(capacity_per_s, rel=0.1)
    lost = min(step.offered_per_s for step in trial.steps(at_s) if not step.follows)
    assert capacity_per_s < lost <= 4 * capacity_per_s


def test_one_that_always_keeps_up_has_no_known_capacity() -> None:
    trial, at_s = worked_off(1e9, 0.3, rising(5000), 4.0)
    assert trial.capacity_per_s(at_s) is None
    assert all(step.follows for step in trial.steps(at_s))


@pytest.mark.spark
@pytest.mark.long
def test_an_operator_of_known_pace_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "slow_rules.py").write_text(SLOW)
    (tmp_path / "weft.yaml").write_text(FILE)
    command = [sys.executable, "-m", "weft", "profile", str(tmp_path / "weft.yaml"), "q.slow", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)["operators"]["q.slow"]
    # Ten milliseconds a record in one task: at most 100 records/s, less what each batch costs by itself.
    assert 75 <= found["capacity_per_s"] <= 101
    assert found["cost_ms"] == pytest.approx(10.0, rel=0.15)
    assert not (tmp_path / ".weft").exists()
