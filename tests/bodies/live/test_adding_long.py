"""Twenty queries come and go at random while records flow, with a kill -9 in the middle: nothing lost or doubled."""

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

import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]
RECORDS, RATE, CHANGES, SEED = 24_000, 60, 20, 5
FILE = f"""
weft: 1
sites: [{{name: a}}, {{name: b}}]
links: [{{from: a, to: b}}]
sources:
  - {{name: s, site: a, format: replay, path: s.csv, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
     arrivals: {{kind: constant, rate_per_s: {RATE}}}}}
queries:
  - name: q
    operators: [{{name: odd, from: [s], site: b, sql: "SELECT v FROM s WHERE v % 2 = 1"}}]
    sink: {{from: odd, format: parquet, path: out/q}}
"""
FILTER = "SELECT v FROM s WHERE v % {} = 0"
WINDOW = "SELECT window(ts, '{} minutes') w, count(*) n FROM s GROUP BY 1"


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "weft", words[0], str(folder / "weft.yaml"), *words[1:]],
        capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    return done


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    log = open(folder / "run.log", "ab")  # noqa: SIM115
    return subprocess.Popen(
        [sys.executable, "-m", "weft", "run", str(folder / "weft.yaml"), *words], stdout=log, stderr=log
    )


def until_it_flows(folder: Path, run: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while True:
        assert run.poll() is None, (folder / "run.log").read_text()[-2000:]
        found = json.loads(command(folder, "status", "--json").stdout or "{}")
        if found.get("phase") == "running":
            return
        assert time.monotonic() < deadline
        time.sleep(1)


def one_change(folder: Path, rng: random.Random, here: dict[str, str], gone: dict[str, str], number: int) -> float:
    """Let a query come or go; the longest pause of the others."""
    if here and (len(here) >= 4 or rng.random() < 0.4):
        name = rng.choice(sorted(here))
        done = command(folder, "remove", name, "--json")
        gone[name] = here.pop(name)
    else:
        name = f"n{number}"
        windowed = rng.random() < 0.5
        sql = WINDOW.format(rng.randint(1, 9)) if windowed else FILTER.format(rng.randint(3, 20))
        mark = ", watermark: 5 seconds" if windowed else ""
        site = rng.choice("ab")
        (folder / f"{name}.yaml").write_text(
            f'queries:\n  - name: {name}\n    operators: [{{name: o, from: [s], site: {site}, sql: "{sql}"{mark}}}]\n'
            f"    sink: {{from: o, format: parquet, path: out/{name}}}\n"
        )
        done = command(folder, "add", str(folder / f"{name}.yaml"), "--json")
        here[name] = sql
    assert done.returncode == 0, done.stdout + done.stderr
    return float(json.loads(done.stdout)["pause_ms"] or 0.0)


def test_twenty_queries_come_and_go_with_a_kill_in_the_middle_and_all_is_exact(spark: Any, tmp_path: Path) -> None:
    lines = [f"2024-01-01T{v // 3600:02d}:{v // 60 % 60:02d}:{v % 60:02d}Z,{v}\n" for v in range(RECORDS)]
    (tmp_path / "s.csv").write_text("".join(lines))
    (tmp_path / "weft.yaml").write_text(FILE)
    rng = random.Random(SEED)
    here: dict[str, str] = {}
    gone: dict[str, str] = {}
    run = started(tmp_path)
    pauses = []
    while_they_flow = 0
    try:
        until_it_flows(tmp_path, run)
        for number in range(CHANGES):
            pauses.append(one_change(tmp_path, rng, here, gone, number))
            while_they_flow += given(tmp_path, "q") < RECORDS // 2
            if number == CHANGES // 2:
                os.kill(run.pid, signal.SIGKILL)
                run.wait()
                run = started(tmp_path)
                until_it_flows(tmp_path, run)
        assert command(tmp_path, "stop").returncode == 0
        run.wait(120)
        run = started(tmp_path, "--until-done")
        assert run.wait(900) == 0, (tmp_path / "run.log").read_text()[-3000:]
    finally:
        run.kill()
        run.wait()
    print(f"{CHANGES} changes, {while_they_flow} while records flowed, {len(here)} stayed, {len(gone)} went; pauses of "
          f"others in ms: {' '.join(f'{pause:.0f}' for pause in sorted(pauses))}")  # fmt: skip
    assert while_they_flow > CHANGES // 2, "more than those before the kill"
    spark.read.csv(str(tmp_path / "s.csv"), schema="ts TIMESTAMP, v BIGINT").createOrReplaceTempView("s")
    for name, sql in {"q": "SELECT v FROM s WHERE v % 2 = 1", **here}.items():
        assert rows(spark, tmp_path, name) == sorted(spark.sql(sql).collect()), name
    for name, sql in gone.items():
        found = rows(spark, tmp_path, name)
        whole = spark.sql(sql).collect()
        assert len(set(found)) == len(found), f"{name} gave some twice"
        assert set(found) <= set(whole), f"{name} gave what is not so"


def given(folder: Path, name: str) -> int:
    """How many results a query has given."""
    return sum(pq.read_metadata(path).num_rows for path in (folder / "out" / name).glob("part-*"))


def rows(session: Any, folder: Path, name: str) -> list[Any]:
    files = [str(path) for path in (folder / "out" / name).glob("part-*")]
    return sorted(session.read.parquet(*files).collect()) if files else []
