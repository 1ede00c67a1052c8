"""D-lab2: a sinusoid load with and without safe mode; messages under a growing load (Decentral Figs 3.5, 3.6)."""

from __future__ import annotations

from math import pi, sin
from statistics import fmean

import numpy as np

from weft.lab.elastic import CAPACITY, Elastic, Load, run
from weft.lab.frame import Curve, Outcome, Progress, Row
from weft.lab.virtual import Virtual, seeded
from weft.protocol.scaling import Grow, Instance, Place, ScaleRule

SEEDS = tuple(range(1, 16))
STEPS = 200
MIDDLE, HEIGHT, WAVE_STEPS = 7.0 * CAPACITY, 6.0 * CAPACITY, 50
TARGET_TIGHT = 0.95
GROWTH = 1.02
SETTLED_STEPS = 20
FIT_MIN = 0.9
POWERS = (1.7, 2.3)


def wave(operator: str, step: int) -> float:
    """A sinusoid from one instance's capacity to thirteen's."""
    return MIDDLE - HEIGHT * sin(2 * pi * step / WAVE_STEPS + pi / 2)


def rising(operator: str, step: int) -> float:
    """A load that grows by 2 % a step."""
    return 14 * 0.7 * CAPACITY * GROWTH**step


def late(found: Elastic) -> float:
    """Records above what the instances could take, as a share of all."""
    over = total = 0.0
    for operator, loads in found.loads.items():
        over += sum(max(0.0, load - n * CAPACITY) for load, n in zip(loads, found.counts[operator], strict=True))
        total += sum(loads)
    return over / total


def safe_and_not(load: Load, target: float) -> tuple[list[Elastic], list[Elastic]]:
    """All seeds with and without safe mode."""
    high = max(0.8, (1 + target) / 2)
    rules = [ScaleRule(target=target, high=high, low=target - 0.1, safe=safe) for safe in (False, True)]
    plain, safe = ([run(load, seed, instances=2, steps=STEPS, rule=rule) for seed in SEEDS] for rule in rules)
    return plain, safe


def messages_of(copies: int, ups: int, downs: int) -> int:
    """What one instance with so many neighbours sends and is sent when it makes copies of itself."""
    peers = {**{f"u{at}": "up" for at in range(ups)}, **{f"d{at}": "down" for at in range(downs)}}
    middle = Place("o", ("up",), ("down",))
    machines: dict[str, Instance] = {
        "x": Instance("x", middle, {n: o for n, o in peers.items() if o == "up"},
                      {n: o for n, o in peers.items() if o == "down"}, keeper=True),
    }  # fmt: skip
    for name, operator in peers.items():
        sides = ({}, {"x": "o"}) if operator == "up" else ({"x": "o"}, {})
        place = Place(operator, (), ("o",)) if operator == "up" else Place(operator, ("o",), ())
        machines[name] = Instance(name, place, *sides)
    machines |= {f"x.{at}": Instance(f"x.{at}", middle) for at in range(1, copies + 1)}
    body = Virtual(machines, lambda _: 1.0, seeded("messages"))
    body.tell("x", Grow(copies))
    body.run()
    return body.sent


def measure(progress: Progress) -> Outcome:
    """Safe mode on a sinusoid; messages on a rising load."""
    progress("sinusoid")
    plain, safe = safe_and_not(wave, TARGET_TIGHT)
    plain_late, safe_late = fmean(map(late, plain)), fmean(map(late, safe))
    progress("rising load")
    grown = [run(rising, seed, steps=100) for seed in SEEDS]
    counts = np.mean([np.sum([one.counts[name] for name in one.counts], axis=0) for one in grown], axis=0)
    sent = np.mean([np.diff(one.messages, prepend=0) for one in grown], axis=0)
    # Until the first thresholds are passed, hardly anyone acts.
    smooth = np.convolve(sent, np.ones(5) / 5, "valid")[SETTLED_STEPS:]
    nodes = counts[4 + SETTLED_STEPS :]
    square = np.corrcoef(smooth, nodes**2)[0, 1]
    power = np.polyfit(np.log(nodes), np.log(smooth), 1)[0]
    formula = all(
        messages_of(copies, ups, downs) == 2 * (ups + downs) + copies
        for copies in (1, 2, 5) for ups in (1, 3, 7) for downs in (1, 4)
    )  # fmt: skip
    steps = tuple(map(float, range(STEPS)))
    ideal = np.array([wave("o2", step) / (TARGET_TIGHT * CAPACITY) for step in range(STEPS)])
    off = [np.array(runs[0].counts["o2"]) - ideal for runs in (plain, safe)]
    return Outcome(
        measured={
            "late_without_safe_mode": plain_late,
            "late_with_safe_mode": safe_late,
            "messages_against_instances_power": float(power),
            "messages_against_square_correlation": float(square),
        },
        claims={
            "safe mode leaves fewer records late": safe_late < plain_late,
            f"messages grow with the square of instances (correlation at least {FIT_MIN})": bool(square >= FIT_MIN),
            f"the power that fits best lies in {POWERS}": bool(POWERS[0] <= power <= POWERS[1]),
            "a scale-out by k of one instance takes 2(|succ|+|pred|)+k messages": formula,
        },
        curves=(
            Curve("without safe mode", steps, tuple(map(float, off[0]))),
            Curve("with safe mode", steps, tuple(map(float, off[1]))),
        ),
        axes=("step", "instances above the ideal, third operator, first seed"),
    )


ROW = Row(
    id="D-lab2",
    title="safe mode, and messages of scaling",
    source="Belkhiria 2021, sections 3.3.3 and 3.4.2, figures 3.5 and 3.6",
    setting={
        "operators": 5, "capacity": CAPACITY, "steps": STEPS, "seeds": list(SEEDS), "wave_steps": WAVE_STEPS,
        "wave": [MIDDLE - HEIGHT, MIDDLE + HEIGHT], "target": TARGET_TIGHT, "growth_per_step": GROWTH,
    },
    published={
        "safe mode": "mitigates the delayed records each time it is triggered",
        "messages": "quadratic in the number of instances",
        "messages of a scale-out": "2 min(k, n) (|succ| + |pred|) + k, for k copies made by n instances",
    },
    measure=measure,
    choices=(
        "the sinusoid is not published: from one to thirteen instances' worth in 50 steps",
        "safe mode acts only where r is above r_secure: with r 0.7 at a utilisation of 1 to 1.4; shown with r 0.95",
        "with r 0.95 the thresholds are 0.975 and 0.85; pipelines of the sinusoid start with two instances an operator",
        f"the rising load is ours too: {GROWTH - 1:.0%} more a step, for 100 steps; marks: a correlation of "
        f"{FIT_MIN} with the "
        f"square, and a fitted power within {POWERS}",
        "messages per step are averaged over five steps, the period, and compared after the first 20",
        "how late records are is told as a share of all, and neither it nor how much safe mode takes off is published: "
        "the mark is that it takes something off",
        "over whole runs and their mean, not each time that safe mode acts, as the source says it",
    ),
    shrunk=("the formula is tried for one instance (n = 1) that makes 1, 2 and 5 copies",),
)  # fmt: skip
