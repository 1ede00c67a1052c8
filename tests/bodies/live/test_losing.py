"""A site is lost and comes back, or Spark's Java dies and nothing else: sinks hold every record once all the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.moving import FILE, SITES, delivered, differing, expected, make, seeds_asked
from tests.bodies.live.test_crashes import RUN_S_MAX, flowing, start
from weft.bodies.live.run import Options, Run

pytestmark = pytest.mark.spark
END_S_MAX = 120.0
# Every site has something to lose: a relay and a window at b, a window over windows and a join at c.
PINNED = (
    FILE.replace("{name: keep, from: [left],", "{name: keep, from: [left], site: b,")
    .replace("{name: sums, from: [good],", "{name: sums, from: [good], site: b,")
    .replace("{name: totals, from: [sums],", "{name: totals, from: [sums], site: c,")
    .replace("{name: pairs, from: [l, right],", "{name: pairs, from: [l, right], site: c,")
    .replace("{name: l, from: [left],", "{name: l, from: [left], site: a,")
)


def with_losses(seed: int, losses: int, seconds: float) -> str:
    """The file with a scenario in which sites are lost and come back, also two at once."""
    rng = random.Random(seed)
    free_s = dict.fromkeys(SITES, 0.2)
    happenings = []
    for _ in range(losses):
        site = rng.choice(SITES)
        gone_s = free_s[site] + rng.uniform(0.0, seconds)
        back_s = gone_s + rng.uniform(0.0, 1.5)
        free_s[site] = back_s + 0.1
        happenings += [(gone_s, "crash", site), (back_s, "restart", site)]
    lines = [f"  - {{at_s: {at_s:.2f}, {what}: {site}}}\n" for at_s, what, site in sorted(happenings)]
    return f"{PINNED}scenario:\n{''.join(lines)}"


class Watched(Run):
    """A run that notes which sites were lost and came back."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.lost: list[str] = []
        self.back: list[str] = []

    def crash(self, site: str) -> None:
        """Lose a site, and note it."""
        self.lost.append(site)
        super().crash(site)

    def restart(self, site: str) -> None:
        """Let a site come back, and note it."""
        self.back.append(site)
        super().restart(site)


def lose(session: Any, folder: Path, seed: int, losses: int, records: int, rate_per_s: int) -> None:
    """Run to the end through losses of sites; every sink must be exact, and all losses must have happened."""
    text = with_losses(seed, losses, records / rate_per_s / losses)
    deployment = make(folder, seed, records, rate_per_s, text=text)
    run = Watched(deployment, folder / "state", Options(until_done=True))
    run.go()
    assert differing(delivered(session, deployment), expected(session, deployment)) == {}, f"seed {seed}"
    assert len(run.lost) == losses, run.lost
    assert sorted(run.lost) == sorted(run.back)


def test_sinks_hold_every_record_once_when_sites_are_lost_and_come_back(spark: Any, tmp_path: Path) -> None:
    lose(spark, tmp_path, seed=4, losses=3, records=600, rate_per_s=150)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds_asked(7000, 7100))
def test_sinks_hold_every_record_once_whichever_sites_are_lost(seed: int, spark: Any, tmp_path: Path) -> None:
    lose(spark, tmp_path, seed, losses=8, records=1500, rate_per_s=150)


def java_below(process: subprocess.Popen[bytes]) -> int:
    """The Java process that a run has started."""
    told = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in told.splitlines()]
    (java,) = [int(pid) for pid, parent, name in rows if int(parent) == process.pid and "java" in name]
    return java


def kill_java(folder: Path, after_s: float) -> None:
    """Start a run, kill its Java alone once records flow: the run must end by itself, and say what has happened."""
    process = start(folder)
    try:
        assert flowing(folder, process), (folder / "out.log").read_text()[-2000:]
        time.sleep(after_s)
        os.kill(java_below(process), signal.SIGKILL)
        process.communicate(timeout=END_S_MAX)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = (folder / "out.log").read_text()
    assert process.returncode == 1, said[-2000:]
    assert "Spark's Java process has gone" in said
    assert "Traceback" not in said


def die_and_resume(session: Any, folder: Path, seed: int, deaths: int, records: int, rate_per_s: int) -> None:
    """Run to the end through deaths of Java; every sink must be exact."""
    deployment = make(folder, seed, records, rate_per_s)
    rng = random.Random(seed)
    for _ in range(deaths):
        kill_java(folder, rng.uniform(0, 2))
    process = start(folder)
    process.communicate(timeout=RUN_S_MAX)
    assert process.returncode == 0, (folder / "out.log").read_text()[-2000:]
    assert differing(delivered(session, deployment), expected(session, deployment)) == {}, f"seed {seed}"


def test_a_run_whose_java_dies_ends_with_a_sentence_and_goes_on_exactly(spark: Any, tmp_path: Path) -> None:
    die_and_resume(spark, tmp_path, seed=12, deaths=1, records=900, rate_per_s=100)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds_asked(8000, 8050))
def test_a_run_goes_on_exactly_after_five_deaths_of_java(seed: int, spark: Any, tmp_path: Path) -> None:
    die_and_resume(spark, tmp_path, seed, deaths=5, records=6000, rate_per_s=150)
