"""Does relief act before a promise breaks? Rises drawn from seeds, each at a site of its own, several in one run.

    python -m benchmarks.ramps [--short] [--json]

Each site has a cap and a source that comes to give more than the site can do; beside it stands one that is free. A
promise breaks when the first result is overdue: its record was born so long ago as was promised. Told are that moment,
when relief asked for its move, how long the move's pause was, and for how many seconds records gave results too late.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

import weft
from benchmarks._bench import Found, Setting, go
from benchmarks.relief import DECODING, broken_seconds
from weft.bodies.live.run import Options, Run
from weft.model import Deployment
from weft.spark.storage.disk import read_sealed

STEPS = 16  # in which a source rises


class Ramp(NamedTuple):
    """One rise: records a second before and after, when it begins, how long it takes, and what was promised.

    `used` is the share of what its site can do before, `ends` that after.
    """

    rate_per_s: float
    used: float
    ends: float
    start_s: float
    lasts_s: float
    promise_s: float

    def rises(self) -> dict[float, float]:
        """When its source gives how many times as much as at first."""
        more = self.ends / self.used - 1.0
        return {
            round(self.start_s + self.lasts_s * part, 3): round(1.0 + more * part, 4)
            for part in ((step + 1) / STEPS for step in range(STEPS))
        }

    def overdue_s(self, seconds: float) -> float | None:
        """When the first result would be overdue without relief, for a site that is asked so: work piles up there."""
        piled_s, times, rises = 0.0, 1.0, self.rises()
        for second in range(math.ceil(seconds)):
            times = max([times, *(factor for at_s, factor in rises.items() if at_s <= second)])
            piled_s = max(0.0, piled_s + times * self.used - 1.0)
            if piled_s > self.promise_s:
                return second + self.promise_s
        return None


def drawn(seed: int, setting: Setting) -> Ramp:
    """The rise of a seed."""
    rng = Random(seed)
    used = rng.uniform(0.3, 0.6)
    return Ramp(
        rng.uniform(5.0, 15.0), used, max(setting["ends_min"], used * rng.uniform(2.0, 4.0)),
        setting["calm_s"] * rng.uniform(0.7, 1.3), rng.uniform(*setting["lasts_s"]), rng.choice(setting["promises_s"]),
    )  # fmt: skip


def laid_down(folder: Path, ramps: dict[int, Ramp], setting: Setting) -> Deployment:
    """All rises in one deployment, each with a site that is free beside its own."""
    folder.mkdir()
    (folder / "decoding.py").write_text(DECODING)
    capacity, hub = setting["capacity"], f"spare-{next(iter(ramps))}"
    plain: dict[str, Any] = {
        "weft": 1, "sites": [], "links": [], "sources": [], "queries": [], "spark": {"master": "local[16]"},
        "control": {"place": {"policy": "near"}, "relief": {"period_s": 5, "horizon_s": 60}},
        "scenario": [],
    }  # fmt: skip
    for seed, ramp in ramps.items():
        gate, spare, each_ms = f"gate-{seed}", f"spare-{seed}", 1000.0 * ramp.used * capacity / ramp.rate_per_s
        plain["sites"] += [{"name": gate, "capacity": capacity, "cap": True}, {"name": spare, "capacity": 2.0}]
        plain["links"].append({"from": gate, "to": spare, "delay_ms": 5, "bandwidth_kbps": 100000})
        if spare != hub:
            plain["links"].append({"from": hub, "to": spare, "delay_ms": 20, "bandwidth_kbps": 100000})
        arrivals = {"kind": "constant", "rate_per_s": ramp.rate_per_s}
        plain["scenario"] += [{"at_s": at_s, "rate": {f"s{seed}": times}} for at_s, times in ramp.rises().items()]
        plain["sources"].append(
            {"name": f"s{seed}", "site": gate, "format": "rate", "schema": "n BIGINT", "arrivals": arrivals}
        )
        decoded = {"name": "decoded", "from": f"s{seed}", "call": "decoding:decoded", "args": {"each_ms": each_ms},
                   "cost_ms": each_ms, "selectivity": 1}  # fmt: skip
        plain["queries"].append({
            "name": f"q{seed}", "promise": {"latency_ms": 1000 * ramp.promise_s, "quantile": 0.95},
            "operators": [decoded], "sink": {"from": "decoded", "format": "parquet", "path": f"out/{seed}"},
        })  # fmt: skip
    plain["scenario"].sort(key=lambda one: one["at_s"])
    file = folder / "deployment.yaml"
    file.write_text(yaml.safe_dump(plain, sort_keys=False))
    return weft.load(file)


def measured(deployment: Deployment, ramps: dict[int, Ramp], setting: Setting) -> dict[str, Found]:
    """What became of each rise of one run."""
    state = Path(deployment.folder) / ".weft"
    run = Run(deployment, state, Options(seconds=setting["seconds"]))
    changes = run.go()["changes"]
    began_ms = read_sealed(state / "flows.json")["starts"][0][1]
    found = {}
    for seed, ramp in ramps.items():
        query = deployment.query(f"q{seed}")
        own = [one for one in changes if one["by"] == "relief" and f"q{seed}.decoded" in one["wish"].get("move", {})]
        done = [one for one in own if one["state"] == "done"]
        seconds = broken_seconds(run.meter.births(query), began_ms, query.promise)
        late = [second for second in seconds if second >= ramp.start_s]
        overdue_s = late[0] + ramp.promise_s if late else None
        acted_s = done[0]["at_s"] if done else None
        found[str(seed)] = {
            **ramp._asdict(),
            "overdue_without_s": ramp.overdue_s(setting["seconds"]),
            "acted_s": acted_s,
            "overdue_s": overdue_s,
            "before": acted_s is not None and (overdue_s is None or acted_s < overdue_s),
            "broken_s": len(late),
            "broken_at_start_s": len(seconds) - len(late),
            "moves": len(done),
            "pause_ms": done[0]["pause_ms"] if done else None,
        }
        print(f"ramp {seed}: {_told(found[str(seed)])}", file=sys.stderr)
    return found


def measure(setting: Setting) -> Found:
    """All rises, several in one run."""
    seeds, at_once = list(range(setting["first"], setting["first"] + setting["ramps"])), setting["at_once"]
    ramps: dict[str, Found] = {}
    with tempfile.TemporaryDirectory(prefix="weft-ramps-") as place:
        for at in range(0, len(seeds), at_once):
            some = {seed: drawn(seed, setting) for seed in seeds[at : at + at_once]}
            ramps |= measured(laid_down(Path(place, str(at)), some, setting), some, setting)
    return {
        "ramps": ramps,
        "before": sum(one["before"] for one in ramps.values()),
        "kept": sum(not one["broken_s"] for one in ramps.values()),
        "moves_most": max(one["moves"] for one in ramps.values()),
    }


def _told(one: Found) -> str:
    acted = "nothing moved" if one["acted_s"] is None else f"acted at {one['acted_s']:.0f} s"
    overdue = "never overdue" if one["overdue_s"] is None else f"overdue at {one['overdue_s']:.0f} s"
    without = one["overdue_without_s"]
    return (
        f"to {one['ends']:.2f} of its site from {one['start_s']:.0f} s within {one['lasts_s']:.0f} s, promise "
        f"{one['promise_s']:g} s: {acted}, {overdue} (without, as the site can do: "
        f"{'never' if without is None else f'{without:.0f} s'}), late for {one['broken_s']} s"
    )


def show(setting: Setting, found: Found) -> None:
    """Every rise, and how many were relieved in time."""
    for seed, one in found["ramps"].items():
        print(f"ramp {seed}: {_told(one)}")
    many, aim = len(found["ramps"]), setting.aim("before")
    print(f"relief acted before the promise broke in {found['before']} of {many} ({aim})")
    print(f"no second was broken in {found['kept']}, at most {found['moves_most']} moves ({setting.aim('moves_most')})")


if __name__ == "__main__":
    go("ramps", __doc__, measure, show)
