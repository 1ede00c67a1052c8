"""kill -9 at chosen and at random writes of runs with every kind of query, source and move: exact after resuming."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from tests import ROOT
from tests.bodies.live.moving import FILE, OPERATORS, SITES, delivered, differing, expected, make, seeds_asked
from weft.model import Deployment

pytestmark = [pytest.mark.spark, pytest.mark.long]
RUN_S_MAX = 300.0
RECORDS, RATE = 900, 300
GROWN_SOURCE = """
  - {name: rows, site: c, format: csv, path: rows, schema: "ts TIMESTAMP, k STRING, v BIGINT", event_time: ts,
     options: {maxFilesPerTrigger: 2}}
queries:
  - name: grown
    operators:
      - {name: some, from: [rows], sql: "SELECT * FROM rows WHERE v % 5 <> 0"}
      - {name: tally, from: [some], watermark: 60 seconds,
         sql: "SELECT window(ts, '1 minute') w, k, sum(v) s FROM some GROUP BY 1, 2"}
    sink:
      - {from: some, format: parquet, path: out/some}
      - {from: tally, format: parquet, path: out/tally}
"""
# A run that starts and is killed is mostly Java's start: a collector without threads of its own costs the least.
JAVA = "spark: {conf: {spark.driver.extraJavaOptions: -XX:+UseSerialGC}}\n"
ALL = (*OPERATORS, "grown.some", "grown.tally")

# Where a process may end: before or after (!) a write, the so manyth of its kind.
CHOSEN = (
    "rename run.json$@1",
    "!rename run.json$@1",
    "link owner.json$@1",
    "!link owner.json$@2",
    "!link owner.json$@5",
    "link recordings/left/manifests/0@1",
    "!link recordings/left/manifests/0@1",
    "!link recordings/right/manifests/0@1",
    "rename flows.json$@1",
    "rename plan.json$@1",
    "!rename plan.json$@1",
    "rename epochs.json$@1",
    "!rename epochs.json$@3",
    "rename epochs/.*json$@1",
    "!rename epochs/.*json$@4",
    "rename carried-1.json$@1",
    "!rename carried-1.json$@1",
    "rename ledger-0.json$@1",
    "!rename ledger-0.json$@1",
    "!rename ledger-0.json$@4",
    "rename ledger-0.json$@9",
    "!rename ledger-0.json$@15",
    "link streams/.*manifests/0@1",
    "!link streams/.*manifests/0@1",
    "!link streams/.*manifests/0@4",
    "link streams/.*manifests/0@7",
    "sync streams/.*manifests@5",
    "link weft/manifests/0@1",
    "!link weft/manifests/0@1",
    "!link weft/manifests/0@3",
    "link weft/manifests/0@4",
    "link out/[a-z]*/part-@1",
    "!link out/[a-z]*/part-@1",
    "link out/[a-z]*/part-@2",
    "!link out/[a-z]*/part-@5",
    "remove_tree weft/data/0@1",
    "!remove_tree weft/data/0@2",
    "!rename heads/@12",
    "rename ledger-1.json$@1",
    "!rename ledger-1.json$@1",
    "!rename plan.json$@2",
    "rename plan.json$@2",
    "rename gate-1.json$@1",
    "!rename gate-1.json$@1",
    "!rename finished.json$@1",
    "rename finished.json$@1",
)


def grow(folder: Path, number: int) -> None:
    """One more file for the folder that grows; it appears whole."""
    rng = random.Random(number)
    moment = 1_700_000_000.0 + 60 * number
    lines = []
    for _ in range(40):
        moment += rng.uniform(0.0, 1.5)
        stamp = datetime.fromtimestamp(moment - rng.uniform(0, 29), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
        lines.append(f"{stamp}Z,k{rng.randrange(5)},{rng.randrange(100)}\n")
    (folder / "rows").mkdir(exist_ok=True)
    (folder / f".row-{number}").write_text("".join(lines))
    # Spark reads files by their time of change: made at one instant, their order would be chance.
    os.utime(folder / f".row-{number}", (moment, moment))
    os.rename(folder / f".row-{number}", folder / "rows" / f"{number:04d}.csv")


def deployment_in(folder: Path, seed: int, moves: int) -> Deployment:
    """Stateless, windowed and joined queries over recordings and a folder that grows; operators move about."""
    make(folder, seed, RECORDS, RATE)
    for number in range(4):
        grow(folder, number)
    rng = random.Random(seed)
    text = FILE.replace("RATE", str(RATE)).replace("queries:\n", GROWN_SOURCE.lstrip("\n"), 1)
    text = text.replace("sources:\n", JAVA + "sources:\n", 1)
    text += "".join(
        f"{'scenario:' if first else ''}\n  - {{at_s: {at:.2f}, move: {rng.choice(ALL)}, to: {rng.choice(SITES)}}}"
        for first, at in zip([True] + [False] * moves, sorted(rng.uniform(0, 3) for _ in range(moves)), strict=False)
    )
    (folder / "weft.yaml").write_text(text + "\n")
    return weft.spec.load(folder / "weft.yaml")


def start(folder: Path, point: str | None) -> int:
    """Run to the end or to the point; how the process ended."""
    words = [str(folder / "weft.yaml"), "--until-done", "--json"]
    how = ["-m", "weft", "run"] if point is None else ["-m", "tests.bodies.live.cut_run", point, "run"]
    # Most of a short run is Java's compiler and the loading of classes, which need no second look at each.
    quick = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
    quick += " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    told = {"CUT_TOLD": str(folder / "told"), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "JDK_JAVA_OPTIONS": quick}
    environment = {**os.environ, **told}
    with open(folder / "err.log", "a") as err:
        done = subprocess.run(
            [sys.executable, *how, *words], stdout=subprocess.DEVNULL, stderr=err, cwd=ROOT, env=environment,
            start_new_session=True, timeout=RUN_S_MAX, check=False,
        )  # fmt: skip
    return done.returncode


def through(session: Any, folder: Path, seed: int, points: list[str]) -> dict[str, Any]:
    """Run through kills at these points to the end; sinks that differ from what batch Spark gives."""
    deployment = deployment_in(folder, seed, moves=4)
    for number, point in enumerate(points):
        code = start(folder, point)
        if code == 0:
            break
        assert code == -9, f"{point}: {(folder / 'err.log').read_text()[-1500:]}"
        # Once windows are being closed for good, what comes is too late, and a run says so.
        if not (folder / ".weft" / "weft.yaml" / "closing.json").exists():
            grow(folder, 4 + number)
    code = start(folder, None)
    assert code == 0, f"{points}: {(folder / 'err.log').read_text()[-1500:]}"
    return differing(delivered(session, deployment), expected(session, deployment))


@pytest.mark.parametrize("point", CHOSEN)
def test_sinks_are_exact_after_a_kill_at_a_chosen_point(point: str, spark: Any, tmp_path: Path) -> None:
    assert through(spark, tmp_path, 7, [point]) == {}, point


@pytest.mark.parametrize("seed", seeds_asked(5000, 5020))
def test_sinks_are_exact_after_ten_kills_at_random_points(seed: int, spark: Any, tmp_path: Path) -> None:
    rng = random.Random(seed)
    points = [f"{rng.choice(['', '!'])}@{rng.randrange(1, 900)}" for _ in range(10)]
    assert through(spark, tmp_path, seed, points) == {}, f"seed {seed}: {points}"
