"""How long are sites of a tree overloaded? One whose source triples in mid-run, with balancing and without.

    python -m benchmarks.balance [--short] [--json]

Two gateways below one district, all with a cap, so that what each works is bound, and measured alike. Several queries
read the source of one gateway and decode what it gives, which takes time and none of the machine's cores, as in
`benchmarks.relief`. A site is overloaded while it is used beyond the mark above which it gives operators away. Told are
the seconds for which sites were so, each site by itself, what was moved, and whether all results are what went in.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

import weft
from benchmarks._bench import Found, Setting, go, line, spread, turns
from benchmarks.relief import DECODING
from weft.bodies.live.run import Options, Run
from weft.model import Balance, Deployment

SIDES: dict[str, dict[str, Any]] = {"without": {}, "with": {"balance": {"kind": "tree", "period_s": 5}}}
RATE_PER_S = 40.0


def laid_down(folder: Path, setting: Setting, control: Mapping[str, Any]) -> Deployment:
    """A tree with its data in a folder of its own, whose queries all run where their source is."""
    folder.mkdir(parents=True)
    (folder / "decoding.py").write_text(DECODING)
    records = round(RATE_PER_S * (setting["calm_s"] + setting["times"] * setting["hot_s"]))
    (folder / "data.csv").write_text("\n".join(["n", *map(str, range(records)), ""]))
    capacity, many = setting["capacity"], setting["queries"]
    each_ms = 1000.0 * setting["used"] * capacity / RATE_PER_S / many
    decoded = {"name": "decoded", "from": "left", "call": "decoding:decoded", "args": {"each_ms": each_ms},
               "cost_ms": each_ms, "selectivity": 1}  # fmt: skip
    plain = {
        "weft": 1,
        "sites": [
            {"name": "district", "capacity": 2.0, "cap": True},
            *({"name": name, "capacity": capacity, "cap": True, "parent": "district"} for name in ("left", "right")),
        ],
        "links": [{"from": name, "to": "district", "delay_ms": 5} for name in ("left", "right")],
        "sources": [{
            "name": "left", "site": "left", "format": "replay", "path": "data.csv", "options": {"header": True},
            "schema": "n BIGINT", "arrivals": {"kind": "constant", "rate_per_s": RATE_PER_S},
        }],
        "queries": [
            {"name": f"q{at}", "operators": [decoded],
             "sink": {"from": "decoded", "format": "parquet", "path": f"out/{at}"}}
            for at in range(many)
        ],
        "control": {"place": {"policy": "near"}, **control},
        "scenario": [{"at_s": setting["calm_s"], "rate": {"left": setting["times"]}}],
        "spark": {"master": "local[8]"},  # those that sleep hold a place
    }  # fmt: skip
    file = folder / "deployment.yaml"
    file.write_text(yaml.safe_dump(plain, sort_keys=False))
    return weft.load(file)


def over(periods: Iterable[tuple[float, Mapping[str, float | None]]], high: float) -> float:
    """Seconds for which sites were used beyond a mark, of periods of so many and how far each site was used then."""
    return round(sum(long_s * sum((used or 0.0) > high for used in sites.values()) for long_s, sites in periods), 1)


def measured(deployment: Deployment) -> Found:
    """What one run to the end came to."""
    folder = Path(deployment.folder)
    summary = Run(deployment, folder / ".weft", Options(until_done=True)).go()
    lines = (folder / ".weft" / "measurements.jsonl").read_text(encoding="utf-8").splitlines()
    observed = [json.loads(one)["observed"] for one in lines]
    periods = [(one["period_s"], {name: site["utilisation"] for name, site in one["sites"].items()})
               for one in observed]  # fmt: skip
    return {
        "overloaded_s": over(periods, Balance().high),
        "latency_ms": {name: one["latency_ms"] for name, one in summary["queries"].items()},
        "flowed_s": summary["flowed_s"],
        "equal": all(_held(folder / "out" / str(at)) == _read(folder) for at in range(len(deployment.queries))),
        "changes": [{key: one[key] for key in ("at_s", "by", "state", "wish", "reason", "pause_ms")}
                    for one in summary["changes"]],
    }  # fmt: skip


def _read(folder: Path) -> Counter[int]:
    return Counter(map(int, (folder / "data.csv").read_text().split()[1:]))


def _held(folder: Path) -> Counter[int]:
    import pyarrow.dataset as ds

    files = sorted(map(str, folder.glob("*.parquet")))
    return Counter(ds.dataset(files).to_table().column("n").to_pylist() if files else [])


def measure(setting: Setting) -> Found:
    """Both sides by turns."""
    runs: dict[str, list[Found]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="weft-balance-") as place:
        for number, side, _ in turns(list(SIDES), setting["rounds"], 0):
            runs[side].append(measured(laid_down(Path(place, f"{number}-{side}"), setting, SIDES[side])))
            print(f"{side}: {_told(runs[side][-1])}", file=sys.stderr)
    without_s, with_s = (sum(one["overloaded_s"] for one in runs[side]) for side in ("without", "with"))
    moves = [float(sum(one["state"] == "done" for one in run["changes"])) for run in runs["with"]]
    return {"runs": runs, "less": round(1.0 - with_s / without_s, 3) if without_s else None, "moves": spread(moves, 0)}


def _told(run: Found) -> str:
    made = "; ".join(f"{one['at_s']:.0f} s {one['state']}: {one['reason']}" for one in run["changes"]) or "none"
    slowest_ms = max(one["p95"] for one in run["latency_ms"].values() if one)
    exact = "results as read" if run["equal"] else "results WRONG"
    return (
        f"sites overloaded for {run['overloaded_s']:.0f} s of {run['flowed_s']:.0f}, {exact}; "
        f"p95 of the slowest query {slowest_ms / 1000:.1f} s; changes: {made}"
    )


def show(setting: Setting, found: Found) -> None:
    """Both sides, and by how much less."""
    for side, held in found["runs"].items():
        for one in held:
            print(f"{side} balancing: {_told(one)}")
    print(f"overloaded less by {found['less']} ({setting.aim('less')})")
    print(line("moves by balancing", found["moves"]))


if __name__ == "__main__":
    go("balance", __doc__, measure, show)
