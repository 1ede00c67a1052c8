"""N-lab2: fifteen runs of tree balancing: how much of the time fewer sites are overloaded (Neighbor §4.2)."""

from __future__ import annotations

from dataclasses import asdict
from statistics import fmean

from weft.lab.frame import Curve, Outcome, Progress, Row
from weft.lab.n_lab1 import CHOICES, FEWER_SITES, SEEDS, SETTING, SHRUNK, fewer_share, logs

PUBLISHED = 0.8083
NEARLY_FULL = 0.55


def why(seed: int) -> str:
    """What held a drawing below the mark, as its own figures say."""
    without, with_ = logs(seed)
    high = SETTING.high / 1000
    pairs = list(zip(without.overloaded(high), with_.overloaded(high), without.means(), strict=True))
    none = fmean(not a for a, _, _ in pairs)
    level = fmean(bool(a) and b == a for a, b, _ in pairs)
    more = fmean(b > a for a, b, _ in pairs)
    full = fmean(mean >= NEARLY_FULL for a, b, mean in pairs if b > a) if more else 0.0
    return (
        f"{none:.0%} of the time nobody is overloaded without balancing, {level:.0%} as many are, {more:.0%} more are"
        + (f", {full:.0%} of that while all sites together stand at {NEARLY_FULL:.0%} or above" if more else "")
    )


def measure(progress: Progress) -> Outcome:
    """The share of each drawing; those below the mark are explained by their own figures."""
    shares = {}
    for seed in SEEDS:
        progress(f"drawing {seed} of {len(SEEDS)}")
        shares[seed] = fewer_share(seed)
    x = tuple(map(float, SEEDS))
    return Outcome(
        measured={
            "fewer_sites_of_the_time": fmean(shares.values()),
            "least": min(shares.values()),
            "drawings_below_80": sum(share < FEWER_SITES for share in shares.values()),
            "by_drawing": list(shares.values()),
            "below_80": {str(seed): why(seed) for seed, share in shares.items() if share < FEWER_SITES},
        },
        claims={
            f"over 15 runs, fewer sites are overloaded in at least {FEWER_SITES:.0%} of the time": fmean(
                shares.values()
            )
            >= FEWER_SITES
        },
        curves=(
            Curve("each drawing", x, tuple(shares.values())),
            Curve("mean", x, (fmean(shares.values()),) * len(x)),
            Curve("published mean of 15 runs", x, (PUBLISHED,) * len(x)),
        ),
        axes=("drawing", "share of the time with fewer overloaded sites"),
    )


ROW = Row(
    id="N-lab2",
    title="fifteen runs of tree balancing",
    source="Kotsantis 2014, section 4.2",
    setting={**asdict(SETTING), "seeds": list(SEEDS)},
    published={"fewer_sites_of_the_time": PUBLISHED},
    measure=measure,
    choices=(
        *CHOICES,
        "the fifteen are the drawings of N-lab1, of one setting: how the source's fifteen runs differ it does not say",
    ),
    shrunk=SHRUNK,
)
