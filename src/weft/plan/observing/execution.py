"""How long will a record be at a site? A line through what was measured, where that tells (Synergy §3.3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PAIRS_MIN = 6
DOUBT_MAX = 0.25  # the standard error of a slope, as a share of it, beyond which it is not believed
REACH_MAX = 1.5  # beyond so many times the greatest rate that was seen a line says nothing


@dataclass(frozen=True, slots=True)
class Line:
    """Time at a site by the rate of all records into it; `doubt` is the slope's standard error as a share of it."""

    fixed_ms: float
    slope_ms: float
    doubt: float
    rate_max: float

    def at(self, rate_per_s: float) -> float | None:
        """The time at a rate; None where the line does not reach."""
        if rate_per_s > REACH_MAX * self.rate_max:
            return None
        return max(0.0, self.fixed_ms + self.slope_ms * rate_per_s)


def fitted(rates_per_s: Sequence[float], times_ms: Sequence[float]) -> Line | None:
    """The line of least squares through pairs (eq. 3.2), or None where it does not pass the confidence test (eq. 3.5).

    The published test compares the slope's standard error with a level set by hand; as a share of the slope it needs
    no unit. A line that falls, and pairs that are too few or all at one rate, tell nothing either.
    """
    rates, times = np.asarray(rates_per_s, float), np.asarray(times_ms, float)
    if len(rates) < PAIRS_MIN or len(rates) != len(times):
        return None
    across, along = rates - rates.mean(), times - times.mean()
    spread = float(across @ across)
    if spread <= 1e-9 * max(1.0, float(rates @ rates)):
        return None
    slope = float(across @ along) / spread
    if slope <= 0:
        return None
    rest = max(0.0, float(along @ along) - slope * float(across @ along))
    doubt = float(np.sqrt(rest / ((len(rates) - 2) * spread))) / slope
    if doubt > DOUBT_MAX:
        return None
    return Line(float(times.mean()) - slope * float(rates.mean()), slope, doubt, float(rates.max()))
