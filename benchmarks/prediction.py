"""Do plan and twin predict live? Projected p50 and p95 over measured ones, for the examples and drawn deployments.

    python -m benchmarks.prediction [--short] [--json]

Each deployment is run by `weft run --fresh --twin` in a state of its own, so plan and twin know nothing of it but its
file and what `weft calibrate` measured right before on this machine. What is measured begins when every fragment has
ended three batches. Examples are laid down beside their data in a temporary folder, their sources as long as they are;
where a run ends before three batches of all fragments there is nothing to compare, and that is said. Drawn deployments
have one to three queries of one to four operators over one to three sites, some of them windows. The machine's load is
printed with every run: what keeps it busy beside Spark changes between calibration and run. After that pairs of
placements of drawn deployments are run, and compared with the order in which plan and twin put them (`_pairs.py`).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._bench import Found, Setting, go
from benchmarks._pairs import judged, pair

ROOT = Path(__file__).resolve().parent.parent
SOURCE = """\
  - name: {name}
    site: {site}
    format: rate
    schema: timestamp TIMESTAMP, value BIGINT
    event_time: timestamp
    arrivals: {{kind: constant, rate_per_s: {rate}}}"""
OPERATOR = """\
      - name: {name}
        from: {from_}
        site: {site}
        sql: SELECT {sql}
        selectivity: {share}"""
FILTER = "timestamp, value FROM {from_} WHERE value % {keep} = 0"
WINDOW = "window(timestamp, '1 second') AS w, count(*) AS n FROM {from_} GROUP BY 1"
LAST = "w, n FROM {from_} WHERE n > 0"


def drawn(seed: int) -> str:
    """A deployment file, drawn."""
    rng = Random(seed)
    sites = [f"s{number}" for number in range(rng.randint(1, 3))]
    lines = ["weft: 1", "sites: [" + ", ".join(f"{{name: {name}}}" for name in sites) + "]"]
    if len(sites) > 1:
        pairs = [(one, other) for at, one in enumerate(sites) for other in sites[at + 1 :]]
        lines.append("links: [" + ", ".join(f"{{from: {one}, to: {other}}}" for one, other in pairs) + "]")
    lines += ["sources:", SOURCE.format(name="records", site=sites[0], rate=rng.choice((50, 200, 500)))]
    lines.append("queries:")
    for number in range(rng.randint(1, 3)):
        lines += _query(rng, f"q{number}", sites)
    return "\n".join(lines) + "\n"


def _query(rng: Random, name: str, sites: list[str]) -> list[str]:
    lines, before, windowed = [f"  - name: {name}", "    operators:"], "records", False
    for at in range(rng.randint(1, 4)):
        keep = rng.choice((1, 2))
        sql, share = (LAST, 1.0) if windowed else (FILTER, 1 / keep)
        if not windowed and rng.random() < 1 / 3:
            sql, share, windowed = WINDOW, 0.01, True
        text = sql.format(from_=before, keep=keep)
        lines.append(OPERATOR.format(name=f"o{at}", from_=before, site=rng.choice(sites), sql=text, share=share))
        if sql is WINDOW:
            lines.append("        watermark: 1 second")
        before = f"o{at}"
    return [*lines, f"    sink: {{from: {before}, format: parquet, path: out/{name}}}"]


def laid_down(folder: Path, name: str, text: str | None = None) -> Path:
    """A deployment file in a folder of its own: drawn, or an example with its data."""
    there = folder / name
    if text is not None:
        there.mkdir(parents=True)
        (there / "deployment.yaml").write_text(text)
        return there / "deployment.yaml"
    shutil.copytree(ROOT / "examples" / name, there, ignore=shutil.ignore_patterns("out", ".weft", ".out*"))
    if not (there / "data").exists():
        subprocess.run([sys.executable, str(there / "generate.py")], check=True, stdout=subprocess.DEVNULL)
    return there / "deployment.yaml"


def measured(file: Path, seconds: float) -> dict[str, Any]:
    """What a run predicted and measured, by query."""
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", "weft", "run", str(file), "--seconds", str(seconds), "--fresh", "--yes", "--twin"]
    done = subprocess.run([*command, "--json"], check=False, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:], "load": [load, os.getloadavg()[0]]}
    found = json.loads(done.stdout)
    return {"queries": found["predicted"], "load": [load, os.getloadavg()[0]]}


def spread(results: dict[str, Any], by: str, quantile: str) -> dict[str, Any]:
    """Ratios of all queries: how many, the middle, the range, and how many lie within the factor aimed at."""
    ratios = sorted(
        one["ratio"][by][quantile]
        for run in results.values()
        for one in run.get("queries", {}).values()
        if one["ratio"][by][quantile]
    )
    factor = 1.5 if quantile == "p50" else 2.0
    if not ratios:
        return {"n": 0, "median": None, "range": None, "factor": factor, "within": 0}
    within = sum(abs(math.log(ratio)) <= math.log(factor) for ratio in ratios)
    return {
        "n": len(ratios), "median": round(statistics.median(ratios), 3), "range": [ratios[0], ratios[-1]],
        "factor": factor, "within": within,
    }  # fmt: skip


def compare(files: dict[str, Path], seconds: float, say: Any = print) -> dict[str, Any]:
    """Runs every file, tells each, and gives all with the spread of ratios."""
    results = {}
    for name, file in files.items():
        results[name] = one = measured(file, seconds)
        loads = ", ".join(f"{value:.1f}" for value in one["load"])
        say(f"{name} (load {loads})" + (f": {one['error']}" if "error" in one else ""))
        for query, told in one.get("queries", {}).items():
            parts = [f"{by} {key} {told['ratio'][by][key]}" for by in ("plan", "twin") for key in ("p50", "p95")]
            say(f"  {query}: {', '.join(parts)}; measured {told['measured']}")
    summary = {f"{by} {key}": spread(results, by, key) for by in ("plan", "twin") for key in ("p50", "p95")}
    for name, told in summary.items():
        say(
            f"{name}: {told['within']} of {told['n']} within {told['factor']}, median {told['median']}, {told['range']}"
        )
    return {"runs": results, "ratios": summary, "seconds": seconds}


def measure(setting: Setting) -> Found:
    """Calibrate, where asked for, run everything, and compare."""
    if setting["calibrate"]:
        subprocess.run([sys.executable, "-m", "weft", "calibrate"], check=True, stdout=sys.stderr, cwd=ROOT)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = {name: laid_down(folder, name) for name in setting["examples"]}
        for seed in range(setting["seed"], setting["seed"] + setting["drawn"]):
            files[f"drawn-{seed}"] = laid_down(folder, f"drawn-{seed}", drawn(seed))
        found = compare(files, setting["seconds"], say)
        return {**found, "placements": in_pairs(folder, setting)}


def say(text: str) -> None:
    """What a run told, while others go on."""
    print(text, file=sys.stderr)


def in_pairs(folder: Path, setting: Setting) -> Found:
    """Two placements of each of so many drawn deployments, run one after the other."""
    runs = []
    for seed in range(setting["seed"], setting["seed"] + setting["pairs"]):
        both = {f"pair-{seed}{at}": text for at, text in zip("ab", pair(seed, drawn), strict=True)}
        files = {name: laid_down(folder, name, text) for name, text in both.items()}
        one, other = compare(files, setting["pair_seconds"], say)["runs"].values()
        runs.append((one, other))
    return judged(runs, setting["differ"])


def show(setting: Setting, found: Found) -> None:
    """How many figures were within their factor, and by how much all of them were off."""
    for name, told in found["ratios"].items():
        within = f"{told['within']} of {told['n']} within {told['factor']}"
        print(f"{name}: {within}, median {told['median']}, {told['range']}")
    pairs = found["placements"]
    for by, right in pairs["right"].items():
        print(f"order of two placements by {by}: right in {right} of {pairs['apart']} pairs that differ")


if __name__ == "__main__":
    go("prediction", __doc__, measure, show)
