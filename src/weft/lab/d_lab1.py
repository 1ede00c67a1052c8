"""D-lab1: five operators follow a Brownian load, each instance deciding alone (Decentral §3.4.2, Fig 3.4)."""

from __future__ import annotations

from random import Random
from statistics import correlation, fmean, stdev

from weft.lab.elastic import CAPACITY, Elastic, Load, run
from weft.lab.frame import Curve, Outcome, Progress, Row

SEEDS = tuple(range(1, 31))
STEPS = 200
DEVIATION = 400.0
FIRST_LOAD = 14 * 0.7 * CAPACITY
LEAST_LOAD = 2 * CAPACITY
TARGET = 0.7
WHO = ("instances", "leader", "ds2")
OFF_MAX = 0.15
"""The mark that was set before anything was measured; the source draws accuracy over time and gives no number."""
FOLLOWS_MIN = 0.85
SURE = 1.96


def brownian(seed: int) -> Load:
    """A load for each operator that changes by a normal deviate each step, and never falls below a least one."""
    paths: dict[str, list[float]] = {}

    def load(operator: str, step: int) -> float:
        if operator not in paths:
            rng, path = Random(f"brownian/{seed}/{operator}"), [FIRST_LOAD]
            while len(path) < STEPS:
                path.append(max(LEAST_LOAD, path[-1] + rng.gauss(0.0, DEVIATION)))
            paths[operator] = path
        return paths[operator][step]

    return load


def judged(found: Elastic) -> dict[str, float]:
    """Accuracy (instances over the ideal), how far off it is, share of load worked off, and how closely it follows."""
    accuracy, worked, follows = [], [], []
    for operator, loads in found.loads.items():
        ideal = [load / (TARGET * CAPACITY) for load in loads]
        counts = found.counts[operator]
        accuracy += [count / wanted for count, wanted in zip(counts, ideal, strict=True)]
        worked += [min(1.0, count * CAPACITY / load) for count, load in zip(counts, loads, strict=True)]
        follows.append(correlation(counts, ideal))
    return {
        "accuracy": fmean(accuracy),
        "off": fmean(abs(one - 1) for one in accuracy),
        "throughput": fmean(worked),
        "follows": fmean(follows),
    }


def measure(progress: Progress) -> Outcome:
    """Each way of deciding over the same loads, 30 of them."""
    means: dict[str, dict[str, float]] = {}
    within: dict[str, dict[str, float]] = {}
    curves: list[Curve] = []
    for who in WHO:
        progress(who)
        runs = [run(brownian(seed), seed, who, steps=STEPS) for seed in SEEDS]
        every = [judged(one) for one in runs]
        means[who] = {name: fmean(one[name] for one in every) for name in every[0]}
        within[who] = {name: SURE * stdev(one[name] for one in every) / len(SEEDS) ** 0.5 for name in every[0]}
        steps = tuple(map(float, range(STEPS)))
        if who == WHO[0]:
            ideal = tuple(load / (TARGET * CAPACITY) for load in runs[0].loads["o2"])
            curves.append(Curve("ideal", steps, ideal))
        curves.append(Curve(who, steps, tuple(map(float, runs[0].counts["o2"]))))
    alone, leader = means["instances"], means["leader"]
    return Outcome(
        measured={
            **{f"{who}_{name}": value for who, values in means.items() for name, value in values.items()},
            **{f"{who}_{name}_within": value for who, values in within.items() for name, value in values.items()},
        },
        claims={
            f"instances that decide alone are within {OFF_MAX:.0%} of the ideal count on average":
                alone["off"] <= OFF_MAX,
            f"their count follows the ideal (mean correlation at least {FOLLOWS_MIN})": alone["follows"] >= FOLLOWS_MIN,
            "they work off at least 99 % of the load": alone["throughput"] >= 0.99,
            "they are as accurate as a leader, to 0.03": alone["off"] <= leader["off"] + 0.03,
            "they work off as much as a leader, to 0.01": alone["throughput"] >= leader["throughput"] - 0.01,
        },
        curves=tuple(curves),
        axes=("step", "instances of the third operator, first seed"),
    )  # fmt: skip


ROW = Row(
    id="D-lab1",
    title="instance counts under a Brownian load",
    source="Belkhiria 2021, section 3.4.2 and figure 3.4",
    setting={
        "operators": 5, "instances": 14, "capacity": CAPACITY, "target": TARGET, "thresholds": [0.8, 0.6],
        "period_steps": 5, "steps": STEPS, "seeds": list(SEEDS), "deviation_per_step": DEVIATION,
    },
    published={
        "instances": "adapt quickly to the load; throughput and accuracy like those of a per-operator leader",
        "accuracy": "drawn around 1 (figure 3.4 d, e), without a number",
        "who is better": "changes with time: the leader is exact but acts only every five steps",
    },
    measure=measure,
    misses=(
        "a load that walks on while an instance waits for its turn, five steps, and its copies for three more is ahead "
        "of every count: the leader is as far off",
    ),
    choices=(
        "the deviation of the Brownian load is not published: 400 records a step, 8 % of the first load",
        "the load never falls below 1000 records a step",
        "accuracy is drawn over time in figure 3.4 (d, e), 1 being ideal, and no number is given; the mark of 15 % is "
        "our own, set before anything was measured. A first result over 15 seeds was 15.06 %, and the mark was then "
        "moved to 16.7 % (between the thresholds nobody acts); it is back, over 30 seeds, each mean with its interval "
        "of 95 % (`_within`)",
        "ds2: its rule applied every five steps to all operators, with the same target utilisation",
        "messages take half a step, so a scale-out takes three steps and a scale-in two, the first included",
        "the corrected formula and handshake (see decision 010)",
    ),
)  # fmt: skip
