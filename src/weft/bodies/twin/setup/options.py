"""How is a run of the twin carried out, besides what the deployment says?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Discipline = Callable[[int, int], int]
"""From a promise and the time left to the sink, both in ns, to how long after its birth a record's turn is due."""

DISCIPLINES: dict[str, Discipline | None] = {
    "fcfs": None,
    "deadline": lambda promised_ns, left_ns: promised_ns,
    "slack": lambda promised_ns, left_ns: promised_ns - left_ns,
}


@dataclass(frozen=True, slots=True)
class SharedPlace:
    """A site that shares a machine: whether it closes windows, what its first batch takes more than later ones.

    `after_ms` of a batch come after its results left.
    """

    closes_windows: bool
    first_ms: float
    after_ms: float


@dataclass(frozen=True, slots=True)
class Recut:
    """What a batch of a site that shares a machine is from a move on: another fragment has become of what stays."""

    fixed_ms: float
    closes_windows: bool
    after_ms: float


@dataclass(frozen=True, slots=True)
class Shared:
    """Sites that share one machine, by name: how much longer a batch takes for each one beyond `room`, and its scatter.

    `cooling` is the share that is left, with each further batch, of what the first took more. `recut`: what becomes of
    sites where an operator has gone to one of them.
    """

    crowd: float
    spread: float
    cooling: float
    places: Mapping[str, SharedPlace]
    recut: Mapping[tuple[tuple[str, str], str], Mapping[str, Recut]] = field(default_factory=dict)
    room: float = 1.0


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is carried out, besides what the deployment says."""

    discipline: str | Discipline = "fcfs"
    contributing: bool = False
    records_max: int = 1_000_000
    log_room: int = 1 << 16
    steady: bool = False  # nothing will interrupt a service
    drop_late: bool = False
    shared: Shared | None = None

    @property
    def due(self) -> Discipline | None:
        """What ranks waiting records; None where the first to come is the first served."""
        return DISCIPLINES[self.discipline] if isinstance(self.discipline, str) else self.discipline
