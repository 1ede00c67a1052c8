"""How many requests a second can sites compose? Keepers and composers of all sites in one process, on one core.

    python -m benchmarks.composing [--short] [--json]

Requests of S-lab2's world come at a rate in virtual time, so many are under way at once; what is measured is the CPU
time of the process for all of them, probes, answers, confirmations and releases included. Sites with their machines and
requests are made before.
"""

from __future__ import annotations

import time

from benchmarks._bench import Found, Setting, go, line, spread
from weft.lab.composing_trial import composed
from weft.lab.composing_world import Survey as World
from weft.lab.composing_world import drawn
from weft.protocol.composing import Admitted


def measure(setting: Setting) -> Found:
    """All rounds, each with a drawing of its own."""
    per_s, probes, admitted = [], [], []
    for seed in range(1, setting["rounds"] + 1):
        world = World(
            sites=setting["sites"], operators=setting["operators"], requests=setting["requests"],
            per_s=setting["per_s"], rate_per_s=setting["records_per_s"],
        )  # fmt: skip
        land = drawn(world, seed)
        begun = time.process_time()
        body = composed(land)
        per_s.append(setting["requests"] / (time.process_time() - begun))
        probes.append(body.probes / setting["requests"])
        admitted.append(sum(isinstance(one.answer, Admitted) for one in body.words.values()) / setting["requests"])
    return {
        "requests_per_s": spread(per_s, 1), "probes_per_request": spread(probes, 1), "admitted": spread(admitted, 3)
    }  # fmt: skip


def show(setting: Setting, found: Found) -> None:
    """Each figure with all rounds."""
    print(line("requests", found["requests_per_s"], "per CPU s"), setting.aim("requests_per_s.median"))
    print(line("probes", found["probes_per_request"], "a request"))
    print(line("admitted", found["admitted"], "of all"))


if __name__ == "__main__":
    go("composing", __doc__, measure, show)
