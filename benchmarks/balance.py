"""How long are sites overloaded? An example in a tree whose source triples in mid-run, with balancing and without.

    python -m benchmarks.balance [--short] [--json]

The example is laid down as for `benchmarks.relief`, but all its sites have a cap, so that what each works is measured
alike. A site is overloaded while it is used beyond the mark above which it would give operators away. Told are the
seconds for which sites were so, each site by itself, what was moved, and whether all results are those of batch Spark.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._bench import Found, Setting, go, line, spark, spread, turns
from benchmarks.relief import CASES, batch, delivered, laid_down, measured
from weft.model import Balance, Deployment

SIDES: dict[str, dict[str, Any]] = {"without": {}, "with": {"balance": {"kind": "tree", "period_s": 5}}}


def overloaded_s(deployment: Deployment, high: float) -> float:
    """Seconds for which sites were used beyond a mark, each site by itself, by what the run measured."""
    lines = Path(deployment.folder, ".weft", "measurements.jsonl").read_text(encoding="utf-8").splitlines()
    observed = [json.loads(one)["observed"] for one in lines]
    return over(((one["period_s"], {name: site["utilisation"] for name, site in one["sites"].items()})
                 for one in observed), high)  # fmt: skip


def over(periods: Any, high: float) -> float:
    """The same of periods of so many seconds and how far each site was used in them."""
    return round(sum(long_s * sum((used or 0.0) > high for used in sites.values()) for long_s, sites in periods), 1)


def measure(setting: Setting) -> Found:
    """Both sides by turns."""
    name, runs, laid = setting["example"], {side: [] for side in SIDES}, []  # type: tuple[str, Any, Any]
    with tempfile.TemporaryDirectory(prefix="weft-balance-") as place:
        for number, side, _ in turns(list(SIDES), setting["rounds"], 0):
            folder = Path(place, f"{number}-{side}")
            laid.append(laid_down(folder, name, setting, SIDES[side], capped=True))
            run = measured(laid[-1], CASES[name].query)
            run["overloaded_s"] = overloaded_s(laid[-1], Balance().high)
            runs[side].append(run)
            print(f"{side}: {_told(run)}", file=sys.stderr)
        with spark(Path(place, "logs")) as session:
            equal = [delivered(one) == batch(session, one) for one in laid]
    without, with_ = (sum(one["overloaded_s"] for one in runs[side]) for side in ("without", "with"))
    moves = [float(sum(one["by"] == "balance" and one["state"] == "done" for one in run["changes"]))
             for run in runs["with"]]  # fmt: skip
    return {
        "runs": runs, "less": round(1.0 - with_ / without, 3) if without else None, "moves": spread(moves, 0),
        "equal": equal,
    }  # fmt: skip


def _told(run: Found) -> str:
    made = "; ".join(f"{one['at_s']:.0f} s {one['state']}: {one['reason']}" for one in run["changes"]) or "none"
    latency = run["latency_ms"] or {}
    quantiles = ", ".join(f"{key} {latency[key] / 1000:.1f} s" for key in ("p50", "p95") if key in latency)
    return f"sites overloaded for {run['overloaded_s']:.0f} s of {run['flowed_s']:.0f}; {quantiles}; changes: {made}"


def show(setting: Setting, found: Found) -> None:
    """Both sides, and by how much less."""
    for side, held in found["runs"].items():
        for one in held:
            print(f"{side} balancing: {_told(one)}")
    print(f"overloaded less by {found['less']} ({setting.aim('less')})")
    print(line("moves by balancing", found["moves"]))
    print(f"{sum(found['equal'])} of {len(found['equal'])} runs gave the results of batch Spark")


if __name__ == "__main__":
    go("balance", __doc__, measure, show)
