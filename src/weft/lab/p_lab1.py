"""P-lab1: the potential of a placement against its latency (Potential §5.3.1, Fig 2)."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

from weft.lab import schemes
from weft.lab.frame import Curve, Outcome, Progress, Row
from weft.lab.schemes import SCHEMES, Scheme, deployment
from weft.lab.trials import correlated, latency_of, ran, with_place
from weft.model import Weights
from weft.plan.judging.potential import potential

LENGTHS = range(1, 21)
HOSTS = range(1, 31)
SEEDS = (1, 2, 3, 4, 5)
WARM_UP_S = 120.0
MEASURED_S = 50.0
LINEAR = 0.95
WEIGHTS = Weights(1.0, 1.0, 1.0)


def point(scheme: Scheme, seed: int) -> tuple[float, float]:
    """Potential and mean latency of the original placement."""
    world, placement = deployment(scheme, seed)
    total = potential(with_place(world, WEIGHTS), placement).total
    return total, latency_of(ran(world, placement, seed, warm_up_s=WARM_UP_S, measured_s=MEASURED_S))


def measure(progress: Progress) -> Outcome:
    """Fifty variations, as published: 20 of scheme 2, 30 of scheme 5."""
    curves, found = [], {}
    for name, field, values in (("scheme-2", "length", LENGTHS), ("scheme-5", "hosts", HOSTS)):
        points = []
        for value in values:
            progress(f"{name}, {field} {value}")
            base = SCHEMES[name]
            varied = replace(base, operators=20 * value) if field == "length" else replace(base, hosts=value)
            drawn = [point(varied, seed) for seed in SEEDS]
            points.append((mean(one for one, _ in drawn), mean(two for _, two in drawn)))
        points.sort()
        found[name] = correlated(*zip(*points, strict=True))
        potentials, latencies = zip(*points, strict=True)
        curves.append(Curve(name, potentials, latencies))
    return Outcome(
        measured={f"correlation_{name}": value for name, value in found.items()},
        claims={
            "potential and latency rise together in scheme 2's variations": found["scheme-2"] > 0.5,
            "potential and latency rise together in scheme 5's variations": found["scheme-5"] > 0.5,
            f"scheme 2's lie on a line (correlation at least {LINEAR})": found["scheme-2"] >= LINEAR,
        },
        curves=tuple(curves),
        axes=("potential (weighted total)", "mean end-to-end latency (ms)"),
    )


ROW = Row(
    id="P-lab1",
    title="potential against latency",
    source="Wang et al. 2008, section 5.3.1 and figure 2",
    setting={
        "variations": "scheme 2 with chains of 1 to 20, scheme 5 with 1 to 30 hosts",
        "weights": [WEIGHTS.load, WEIGHTS.correlation, WEIGHTS.network],
        "seeds": list(SEEDS),
        "warm_up_s": WARM_UP_S,
        "measured_s": MEASURED_S,
    },
    published={"both": "positive correlation", "scheme 2": "perfectly linear"},
    measure=measure,
    choices=(
        "the placement of each variation is the original one, at random; a point is the mean of five drawings",
        "weights are those of the source up to section 5.3.4, all 1; those it recommends later (100, 1, 0.001), with a "
        "warm-up of 60 s, gave 0.925 for both schemes: then load counts most, which goes on growing with ever longer "
        "chains where latency, bounded by the run, does not",
        "together: a correlation above 0.5; on a line: at least 0.95",
        *schemes.CHOICES,
    ),
)
