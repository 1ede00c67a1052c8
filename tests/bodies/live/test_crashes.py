"""The process dies at any moment, the same command resumes, and sinks hold every record once for any reader."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.moving import delivered, differing, expected, make, seeds_asked

pytestmark = pytest.mark.spark
RUN_S_MAX = 400.0


def start(folder: Path) -> subprocess.Popen[bytes]:
    """The command a user would type, in a process group of its own so that its Java dies with it."""
    with open(folder / "out.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "weft", "run", str(folder / "weft.yaml"), "--until-done", "--json"],
            stdout=subprocess.PIPE, stderr=log, start_new_session=True,
        )  # fmt: skip


def flowing(folder: Path, process: subprocess.Popen[bytes]) -> bool:
    """Wait until records flow; False where it ended before."""
    deadline = time.monotonic() + RUN_S_MAX
    status = folder / ".weft" / "weft.yaml" / "status.json"
    before = os.stat(status).st_mtime if status.exists() else 0
    while process.poll() is None and time.monotonic() < deadline:
        if status.exists() and os.stat(status).st_mtime > before:
            return True
        time.sleep(0.1)
    return False


def kill_and_resume(folder: Path, seed: int, kills: int, records: int, rate_per_s: int, moves: int = 0) -> Any:
    """Run to the end through so many kills of the whole process group, and moves between; the deployment."""
    deployment = make(folder, seed, records, rate_per_s, moves)
    rng = random.Random(seed)
    for _ in range(kills):
        process = start(folder)
        if not flowing(folder, process):
            break
        time.sleep(rng.uniform(0, 4))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process = start(folder)
    output, _ = process.communicate(timeout=RUN_S_MAX)
    assert process.returncode == 0, (folder / "out.log").read_text()[-2000:]
    assert json.loads(output)["queries"]
    return deployment


def test_sinks_hold_every_record_once_after_moves_and_a_kill(spark: Any, tmp_path: Path) -> None:
    deployment = kill_and_resume(tmp_path, seed=11, kills=1, records=900, rate_per_s=150, moves=4)
    assert differing(delivered(spark, deployment), expected(spark, deployment)) == {}


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds_asked(2000, 2200))
def test_sinks_hold_every_record_once_after_twenty_kills(seed: int, spark: Any, tmp_path: Path) -> None:
    deployment = kill_and_resume(tmp_path, seed, kills=20, records=50_000, rate_per_s=1000)
    assert differing(delivered(spark, deployment), expected(spark, deployment)) == {}, f"seed {seed}"


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds_asked(3000, 3200))
def test_sinks_hold_every_record_once_after_twenty_moves_and_kills(seed: int, spark: Any, tmp_path: Path) -> None:
    deployment = kill_and_resume(tmp_path, seed, kills=20, records=50_000, rate_per_s=1000, moves=20)
    assert differing(delivered(spark, deployment), expected(spark, deployment)) == {}, f"seed {seed}"
