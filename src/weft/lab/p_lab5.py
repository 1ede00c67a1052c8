"""P-lab5: the potential against correlation alone, where that is at home: scheme 6 (Potential §5.3.7, Fig 10)."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

from weft.lab import schemes
from weft.lab.frame import Curve, Outcome, Progress, Row
from weft.lab.schemes import SCHEMES, Scheme, deployment
from weft.lab.trials import as_seen, by_greedy, latency_of, planned, ran, with_place
from weft.model import Deployment

LENGTHS = (5, 10, 15, 20, 25, 30)
GAPS_MS = (20.0, 10.0, 5.0, 2.0, 1.0)
SEEDS = (1, 2, 3)
WARM_UP_S = 120.0
MEASURED_S = 48.0
OVER = {"length": "chain length (operators)", "gap": "gap between records of the busy mode (ms)"}
POLICIES = ("greedy", "refine", "refine by series", "xzh")


def latency_ms(scheme: Scheme, policy: str, seed: int) -> float:
    """Mean latency of what a policy makes of the load series that the end of a warm-up shows."""
    world, _ = deployment(scheme, seed)
    seen = as_seen(world, seed, WARM_UP_S)
    if policy == "greedy":
        placement = by_greedy(with_place(seen))
    elif policy == "xzh":
        placement = planned(with_place(seen), "xzh", seed)
    else:
        placement = planned(_by_series(seen) if policy == "refine by series" else seen, "refine", seed)
    return latency_of(ran(world, placement, seed, warm_up_s=WARM_UP_S, measured_s=MEASURED_S))


def _by_series(seen: Deployment) -> Deployment:
    """As a file that says `control: {place: {series: true}}`."""
    return replace(seen, control=replace(seen.control, place=replace(seen.control.place, series=True)))


def measure(progress: Progress) -> Outcome:
    """Latency over chain length, and over the gap between records of the busy mode."""
    base = SCHEMES["scheme-6"]
    over: dict[str, list[Scheme]] = {
        "length": [replace(base, operators=20 * length) for length in LENGTHS],
        "gap": [replace(base, gap_ms=gap) for gap in GAPS_MS],
    }
    found: dict[str, dict[str, list[float]]] = {}
    for which, varied in over.items():
        found[which] = {policy: [] for policy in POLICIES}
        for at, scheme in enumerate(varied):
            progress(f"{which} {(LENGTHS, GAPS_MS)[which == 'gap'][at]:g}")
            for policy in POLICIES:
                found[which][policy].append(mean(latency_ms(scheme, policy, seed) for seed in SEEDS))
    claims = {}
    for policy in POLICIES[:-1]:
        for which, said in (("length", "chain length"), ("gap", "input rate")):
            rivals = zip(found[which][policy], found[which]["xzh"], strict=True)
            claims[f"{policy} is below XZH at every {said}"] = all(ours < theirs for ours, theirs in rivals)
    ratios = {
        f"{policy}_to_xzh_{which}": [a / b for a, b in zip(found[which][policy], found[which]["xzh"], strict=True)]
        for policy in POLICIES[:-1]
        for which in found
    }
    xs = {"length": tuple(map(float, LENGTHS)), "gap": GAPS_MS}
    return Outcome(
        measured={
            **{f"{name}_mean": mean(values) for name, values in ratios.items()},
            **{f"{name}_worst": max(values) for name, values in ratios.items()},
            **ratios,
            "lengths": list(LENGTHS), "latency_ms_over_length": found["length"],
            "gaps_ms": list(GAPS_MS), "latency_ms_over_gap": found["gap"],
        },
        claims=claims,
        curves=tuple(
            Curve(policy, xs[which], tuple(values), OVER[which])
            for which, policies in found.items()
            for policy, values in policies.items()
        ),
        axes=("", "mean end-to-end latency (ms)"),
    )  # fmt: skip


ROW = Row(
    id="P-lab5",
    title="against XZH where it is at home",
    source="Wang et al. 2008, section 5.3.7 and figure 10",
    setting={
        "scheme": "scheme-6; chains of 5 to 30 operators at 15 ms, gaps of 20 to 1 ms with chains of 10",
        "weights": [100, 1, 0.001],
        "threshold": 0.8,
        "seeds": list(SEEDS),
        "warm_up_s": WARM_UP_S,
        "measured_s": MEASURED_S,
    },
    published={"greedy": "below XZH at every chain length and input rate"},
    measure=measure,
    misses=(
        "the source only cites XZH, so that it cannot be told whether the one compared with there was weaker, or "
        "greedy stronger",
        "refine by series follows a fluid, whose steps are shorter than the 5 s of the series: within them it takes "
        "rates as even",
        "refine by series is below XZH at every chain length; at gaps of 20 ms both have the same placement, at all "
        "others it has 0.35 to 0.44 of XZH's latency. Refine and refine by series are ours: the source has greedy",
    ),
    choices=(
        "all see the same: ten periods of 5 s at the end of the warm-up, as a run keeps the rates of its sources; none "
        "sees what comes after",
        "refine is as `weft plan` would have it: by the means, and by series as with `control.place.series`, within "
        "the steps that the command takes",
        "an earlier form of this row gave refine the rates of the whole run by the second, what was measured included, "
        "in a mode that no command reached: 0.57 and 0.49 of XZH's latency on the mean",
        "measured over two whole cycles of the sources (48 s)",
        "XZH is only cited in the source, built from what is said of it; refine stands beside the published greedy",
        *schemes.CHOICES,
    ),
    shrunk=(
        "three drawings, measured for 48 s each",
        "six chain lengths (5, 10, ... 30) and five gaps (20, 10, 5, 2, 1 ms): which the source drew is not legible",
    ),
)
