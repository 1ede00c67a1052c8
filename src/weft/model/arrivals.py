"""How records arrive at a source over time; `rate_per_s` is always the normal, mean rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args


@dataclass(frozen=True, slots=True)
class Constant:
    """One record every 1/rate seconds."""

    rate_per_s: float
    kind: Literal["constant"] = "constant"


@dataclass(frozen=True, slots=True)
class Poisson:
    """Exponential gaps between records."""

    rate_per_s: float
    kind: Literal["poisson"] = "poisson"


@dataclass(frozen=True, slots=True)
class OnOff:
    """Busy and quiet periods in turn (Potential §5.2: N(12, 0.05) s long, busy rate 4 times the quiet one)."""

    rate_per_s: float
    ratio: float = 4.0
    period_s: float = 12.0
    period_s_sd: float = 0.05
    kind: Literal["onoff"] = "onoff"


@dataclass(frozen=True, slots=True)
class Sine:
    """The rate swings by `amplitude` (a share of the mean) once a period."""

    rate_per_s: float
    amplitude: float = 0.5
    period_s: float = 60.0
    kind: Literal["sine"] = "sine"


@dataclass(frozen=True, slots=True)
class Walk:
    """A random walk: a normal step of deviation `step_per_s` every `every_s`, within bounds (Decentral §3.4)."""

    rate_per_s: float
    step_per_s: float
    every_s: float = 1.0
    rate_per_s_min: float = 0.0
    rate_per_s_max: float | None = None
    kind: Literal["walk"] = "walk"


@dataclass(frozen=True, slots=True)
class Trace:
    """Recorded rates, each held for `period_s`; the last one stays."""

    rates_per_s: tuple[float, ...]
    period_s: float
    kind: Literal["trace"] = "trace"


Arrivals = Constant | Poisson | OnOff | Sine | Walk | Trace
ARRIVALS: dict[str, type] = {one.__dataclass_fields__["kind"].default: one for one in get_args(Arrivals)}
"""Every kind by its name."""
