"""How a deployment is steered; a part that is None is off."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from weft.model.queries import Order


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each potential counts (Potential §5.3.4)."""

    load: float = 100.0
    correlation: float = 1.0
    network: float = 0.001


@dataclass(frozen=True, slots=True)
class Place:
    """Which planner decides where operators run, and what it minimises."""

    policy: str = "refine"
    objective: Literal["latency", "potential"] = "latency"
    weights: Weights = Weights()
    overload_penalty: float = 20.0
    keep: float = 0.0
    hop_ms: float | None = None
    """What handing records from site to site costs beside links; None: what it costs the body that runs them."""
    terms: dict[str, float] = field(default_factory=dict)
    """Weights of further terms, by name."""
    series: bool = False
    """Whether rates of sources over time decide, as traces in the file or as the last run measured them."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Tree balancing: thresholds on utilisation of CPU, memory or both (Neighbor §3.3)."""

    kind: Literal["tree"] = "tree"
    measure: Literal["cpu", "memory", "both"] = "cpu"
    low: float = 0.4
    target: float = 0.5
    high: float = 0.6
    period_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Scale:
    """Autoscaling: the utilisation aimed at, and the bounds that trigger (Decentral §3.3)."""

    target: float = 0.7
    high: float = 0.8
    low: float = 0.6
    period_s: float = 10.0
    safe: bool = False
    """Whether the target is lowered where chance could leave too few instances (§3.3.3)."""


@dataclass(frozen=True, slots=True)
class Serve:
    """In which order a site of the twin serves records, and whether those past their promise are dropped where it
    allows loss (Synergy §2.2.3, 3.5)."""

    discipline: Literal["fcfs", "deadline", "slack"] = "fcfs"
    drop_late: bool = False


@dataclass(frozen=True, slots=True)
class Advise:
    """Every period periodic placement says what it would move, and nothing is moved by it (Potential §4.2).

    `price` is what each move must gain, in the unit of what is minimised; the share that stays is `place.keep`.
    """

    period_s: float = 30.0
    price: float = 10.0


Foreseen = Literal["auto", "last", "average", "trend", "leader"]
"""How rates of sources are foreseen; `auto` takes what would have been best of late."""


@dataclass(frozen=True, slots=True)
class Relief:
    """Every period: is a promise expected to break within the horizon? Then operators leave a site (Synergy ch. 3)."""

    period_s: float = 5.0
    horizon_s: float = 60.0
    forecast: Foreseen = "auto"


@dataclass(frozen=True, slots=True)
class Project:
    """What is projected where streams come in bursts: latencies over all segments (Synergy §2.3.4), as a mean, a
    quantile or the greatest."""

    statistic: Literal["mean", "quantile", "maximum"] = "quantile"
    quantile: float = 0.95


@dataclass(frozen=True, slots=True)
class Share:
    """What several queries ask alike is made once for all of them (Synergy §2.2, 2.3.3).

    `contain`: what is all among another's records is made of those. `together`: aggregates over equal windows and keys
    that differ in their filters are one.
    """

    on: bool = True
    contain: bool = False
    together: bool = True


@dataclass(frozen=True, slots=True)
class Control:
    """All parts together."""

    place: Place = Place()
    balance: Balance | None = None
    scale: Scale | None = None
    order: Order | None = None
    serve: Serve = Serve()
    advise: Advise | None = None
    share: Share | None = None
    relief: Relief | None = None
    project: Project | None = None
