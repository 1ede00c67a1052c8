"""P-lab2: greedy against dynamic programming against the original, over chain length (Potential §5.3.2, Fig 3)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from statistics import mean

from weft.bodies.twin import run
from weft.lab import schemes
from weft.lab.frame import Curve, Outcome, Progress, Row
from weft.lab.schemes import SCHEMES, deployment
from weft.model import Weights
from weft.plan import PLANNERS, after_steps

LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20)
SEEDS = (1, 2, 3)
WARM_UP_S = 120.0
MEASURED_S = 50.0
WEIGHTS = Weights(1.0, 1.0, 1.0)
VISIBLE = 0.05
STEPS_MAX = 1_000_000


def latency_ms(length: int, seed: int, policy: str = "original") -> float:
    """Mean end-to-end latency of scheme 2 with chains of a length; original: operators placed at random."""
    scheme = replace(SCHEMES["scheme-2"], operators=20 * length)
    world, placement = deployment(scheme, seed)
    if policy != "original":
        place = replace(world.control.place, policy=policy, objective="potential", weights=WEIGHTS)
        planned = replace(world, control=replace(world.control, place=place))
        placement = PLANNERS[policy](planned, None, Random(seed), after_steps(STEPS_MAX))
    seconds = WARM_UP_S + MEASURED_S
    result = run(world, placement, seconds=seconds, seed=seed, warmup_s=WARM_UP_S, latency="contributing")
    found = [one for one in result.queries.values() if one["latency_ms"] is not None]
    total: float = sum(one["latency_ms"]["mean"] * one["records_out"] for one in found)
    out: int = sum(one["records_out"] for one in found)
    return total / out


def measure(progress: Progress) -> Outcome:
    """Three curves, each a mean over seeds."""
    curves: dict[str, list[float]] = {"original": [], "greedy": [], "dp": []}
    for length in LENGTHS:
        progress(f"chains of {length}")
        for policy, values in curves.items():
            values.append(mean(latency_ms(length, seed, policy) for seed in SEEDS))
    original, greedy, dp = curves.values()
    rises = sum(after > before for before, after in pairwise(original))
    apart = max(abs(g - d) for g, d in zip(greedy, dp, strict=True)) / max(original)
    below = all(max(g, d) < o for g, d, o in zip(greedy, dp, original, strict=True))
    return Outcome(
        measured={
            "original_ms_at_10": original[LENGTHS.index(10)],
            "greedy_ms_at_10": greedy[LENGTHS.index(10)],
            "dp_ms_at_10": dp[LENGTHS.index(10)],
            "difference_of_plot_height": apart,
            "lengths": list(LENGTHS),
            **{f"{policy}_ms": values for policy, values in curves.items()},
        },
        claims={
            "the original's latency grows with the length of chains (at least ten of twelve steps rise)": rises >= 10,
            "greedy and dynamic programming lie below the original at every length": below,
            f"they differ by no more than {VISIBLE:.0%} of the plot's height": apart <= VISIBLE,
        },
        curves=tuple(Curve(name, tuple(map(float, LENGTHS)), tuple(values)) for name, values in curves.items()),
        axes=("chain length (operators)", "mean end-to-end latency (ms)"),
    )


ROW = Row(
    id="P-lab2",
    title="latency over chain length",
    source="Wang et al. 2008, section 5.3.2 and figure 3",
    setting={
        "scheme": "scheme-2, chain length varied",
        "weights": [1.0, 1.0, 1.0],
        "seeds": list(SEEDS),
        "warm_up_s": WARM_UP_S,
        "measured_s": MEASURED_S,
        "lengths": list(LENGTHS),
    },
    published={
        "original": "rises with chain length",
        "greedy, dp": "both well below the original, no visible difference",
    },
    measure=measure,
    choices=(
        "the figure does not name its scheme: scheme 2, whose chain length is varied in section 5.3.1 too",
        "one statistics window of 50 s after the warm-up of 120 s, mean over three random drawings",
        "planners know ideal rates from the deployment, not from the warm-up; dp is the corrected form",
        "no visible difference: at most 5 % of the plot's height; well below: below, at every length",
        *schemes.CHOICES,
    ),
    shrunk=("13 of the chain lengths from 1 to 20: above 6 every other one",),
)
