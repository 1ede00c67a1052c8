"""kill -9 at chosen and at random writes of runs with every kind of query, source and move: exact after resuming.

What is killed is a process of its own. What goes on from it to the end runs here, on the Spark that is warm already:
starting another each time was half of what this check took.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from tests import ROOT
from tests.bodies.live.moving import FILE, OPERATORS, SITES, delivered, differing, expected, make, seeds_asked
from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import state_folder
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
    "rename weft/data/.done-@1",
    "!rename weft/data/.done-@1",
    "remove_tree weft/data/.done-@1",
    "!remove_tree weft/data/.done-@2",
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


def deployment_in(folder: Path, seed: int, moves: int, grows: bool = True) -> Deployment:
    """Stateless, windowed and joined queries over recordings and a folder that grows; operators move about."""
    make(folder, seed, RECORDS, RATE)
    rng = random.Random(seed)
    text = FILE.replace("RATE", str(RATE))
    if grows:
        for number in range(4):
            grow(folder, number)
        text = text.replace("queries:\n", GROWN_SOURCE.lstrip("\n"), 1)
    movable = ALL if grows else OPERATORS
    text += "".join(
        f"{'scenario:' if first else ''}\n  - {{at_s: {at:.2f}, move: {rng.choice(movable)}, to: {rng.choice(SITES)}}}"
        for first, at in zip([True] + [False] * moves, sorted(rng.uniform(0, 3) for _ in range(moves)), strict=False)
    )
    (folder / "weft.yaml").write_text(text + "\n")
    return weft.spec.load(folder / "weft.yaml")


def killed(folder: Path, point: str) -> bool:
    """Run to the point, or to the end; whether it was killed. Any other end but a good one fails the test."""
    words = ["-m", "tests.bodies.live.cut_run", point, "run", str(folder / "weft.yaml"), "--until-done", "--json"]
    told = folder / "told"
    told.unlink(missing_ok=True)
    # Most of a short run is Java's start, which needs no second look at each class.
    quick = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    set_up = {"CUT_TOLD": str(told), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "JDK_JAVA_OPTIONS": quick}
    with open(folder / "err.log", "a") as err:
        done = subprocess.run(
            [sys.executable, *words], stdout=subprocess.DEVNULL, stderr=err, cwd=ROOT, env={**os.environ, **set_up},
            start_new_session=True, timeout=RUN_S_MAX, check=False,
        )  # fmt: skip
    was_killed = told.exists()
    said = (folder / "err.log").read_text()[-1500:]
    assert done.returncode == (-9 if was_killed else 0), f"{point}, status {done.returncode}: {said}"
    return was_killed


def kill_at(folder: Path, point: str, number: int) -> bool:
    """Run to the point, and let the folder grow where that still counts; whether the run was killed there."""
    was_killed = killed(folder, point)
    # Once windows are being closed for good, what comes is too late, and a run says so.
    if was_killed and (folder / "rows").exists() and not (folder / ".weft" / "weft.yaml" / "closing.json").exists():
        grow(folder, 4 + number)
    return was_killed


def differs(session: Any, folder: Path) -> dict[str, Any]:
    """Go on to the end, in this process; sinks that differ from what batch Spark gives."""
    file = folder / "weft.yaml"
    Run(weft.spec.load(file), state_folder(file, None), Options(until_done=True, file=file)).go()
    return found_wrong(session, folder)


def found_wrong(session: Any, folder: Path) -> dict[str, Any]:
    """Sinks that differ from what batch Spark gives."""
    deployment = weft.spec.load(folder / "weft.yaml")
    return differing(delivered(session, deployment), wanted(session, deployment))


_wanted: dict[str, dict[str, list[str]]] = {}


def wanted(session: Any, deployment: Deployment) -> dict[str, list[str]]:
    """What batch Spark gives, worked out once for sources that hold the same."""
    held = sha256()
    for source in deployment.sources:
        path = Path(deployment.folder) / str(source.path)
        for one in sorted(path.iterdir()) if path.is_dir() else [path]:
            held.update(f"{source.name} {one.name}".encode() + one.read_bytes())
    if held.hexdigest() not in _wanted:
        _wanted[held.hexdigest()] = expected(session, deployment)
    return _wanted[held.hexdigest()]


@pytest.mark.parametrize("point", CHOSEN)
def test_sinks_are_exact_after_a_kill_at_a_chosen_point(point: str, spark: Any, tmp_path: Path) -> None:
    deployment_in(tmp_path, 7, moves=4)
    assert kill_at(tmp_path, point, 0), f"no write was {point}"
    assert differs(spark, tmp_path) == {}, point


@pytest.mark.parametrize("seed", seeds_asked(5000, 5020))
def test_sinks_are_exact_after_ten_kills_at_random_points(seed: int, spark: Any, tmp_path: Path) -> None:
    rng = random.Random(seed)
    points = [f"{rng.choice(['', '!'])}@{rng.randrange(1, 900)}" for _ in range(10)]
    lives = 0
    while points:  # a run that comes to its end makes room for another, until all points were met
        lives += 1
        folder = tmp_path / str(lives)
        folder.mkdir()
        deployment_in(folder, seed + 1000 * lives, moves=4)
        for number in range(len(points)):
            if not kill_at(folder, points[0], number):
                break
            points.pop(0)
        else:
            assert differs(spark, folder) == {}, f"seed {seed}, life {lives}"
            return
        assert found_wrong(spark, folder) == {}, f"seed {seed}, life {lives}"
        if number == 0:  # a whole run has fewer writes than that
            points[0] = f"{points[0][: points[0].index('@')]}@{rng.randrange(1, 300)}"


@pytest.mark.parametrize("point", CHOSEN[::4])
def test_a_run_killed_at_a_chosen_point_goes_on_exactly_where_it_is_copied_to(
    point: str, spark: Any, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    deployment_in(here, 9, moves=4, grows=False)
    assert kill_at(here, point, 0), f"no write was {point}"
    shutil.copytree(here, there)
    assert differs(spark, there) == {}, f"{point}, copied"
    assert differs(spark, here) == {}, point
