"""A deployment to ask about: a tree of two sites, a windowed query, and data that is never read here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

GOOD = """\
weft: 1
sites:
  - {name: gw-1, parent: district, quota: 0.8, failure_probability: 0.1}
  - {name: district, capacity: 2.0}
links:
  - {from: gw-1, to: district, delay_ms: 20}
sources:
  - name: readings
    site: gw-1
    format: csv
    path: data/readings.csv
    schema: "ts TIMESTAMP, meter STRING, kwh DOUBLE"
    event_time: ts
    arrivals: {kind: poisson, rate_per_s: 200}
queries:
  - name: hourly_use
    promise: {latency_ms: 5000, availability: 0.5}
    operators:
      - {name: valid, from: [readings], sql: SELECT * FROM readings WHERE kwh >= 0, cost_ms: 1, selectivity: 0.5}
      - name: hourly
        from: [valid]
        sql: SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM valid GROUP BY 1, 2
        watermark: 10 minutes
        site: district
    sink: {from: hourly, format: parquet, path: out/hourly}
"""


STATE = ".weft/deployment.yaml"
"""Where the run of the file keeps its state, from its folder."""


def written(folder: Path, text: str | bytes = GOOD) -> Path:
    """A deployment file in a folder with its data."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "data" / "readings.csv").write_text("2024-01-01T00:00:00Z,m1,1.5\n")
    file = folder / "deployment.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def changed(old: str, new: str) -> str:
    """The good text with one thing changed."""
    assert old in GOOD, old
    return GOOD.replace(old, new, 1)


def weft(*words: object) -> Result:
    """A command in this process."""
    from weft.cli.app import app

    return CliRunner().invoke(app, [str(word) for word in words])


def weft_json(*words: object, code: int = 0) -> Any:
    """What a command prints with --json: one document and nothing else."""
    result = weft(*words, "--json")
    assert result.exit_code == code, result.stderr
    return json.loads(result.stdout)


def weft_outside(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "weft", *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **more)


def in_force(folder: Path, file: Path, *wishes: Any) -> None:
    """A journal, as a run leaves it: the plan with everything at gw-1, changed as is wished."""
    from weft.bodies.live import journal
    from weft.bodies.live.assembly import cutting
    from weft.bodies.live.state import State
    from weft.model import Placement
    from weft.plan.changing.next_plan import next_plan
    from weft.plan.changing.running_plan import Rules, RunningPlan, first_plan
    from weft.plan.dataflow.event_times import passes_by_sql
    from weft.plan.network.paths import Paths
    from weft.spec import is_stateful, load

    deployment = load(file)
    homes = {"hourly_use.valid": "gw-1", "hourly_use.hourly": "district"}
    rules = Rules(cutting(lambda _, operator: is_stateful(operator), passes_by_sql), Paths(deployment))
    plan = first_plan(deployment, Placement(homes, reasons=dict.fromkeys(homes, "planned there")), rules)
    for wish in wishes:
        then = next_plan(plan, wish, rules)
        assert isinstance(then, RunningPlan), then
        plan = then
    (folder / STATE).mkdir(parents=True, exist_ok=True)
    journal.write(State(folder / STATE), plan, {}, {})
