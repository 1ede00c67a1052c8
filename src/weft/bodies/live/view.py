"""What may the parts of a run see of it, and ask of it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # who only reads what a run has left does without Spark
    from weft.bodies.live.advising import Advising
    from weft.bodies.live.changes import Changes
    from weft.bodies.live.directory.finding import Finding
    from weft.bodies.live.house import House
    from weft.bodies.live.meter import Meter
    from weft.bodies.live.moves import Asked
    from weft.bodies.live.progress import Progress
    from weft.bodies.live.state import State
    from weft.model import Deployment, Placement
    from weft.model.wishes import By, Wish
    from weft.plan.changing.fragments import Fragment
    from weft.protocol.control import Decisions


class RunView(Protocol):
    """A run, as those see it who tell of it, steer it or measure it."""

    deployment: Deployment
    state: State
    meter: Meter
    placement: Placement
    phase: str
    done: bool
    warnings: list[str]
    notes: list[str]
    started_s: float
    flowing_s: float | None
    stopping_s: float | None
    sites: House | None

    @property
    def changes(self) -> Changes | None:
        """The plan in force, and what changes it; None before there is one."""

    @property
    def progress(self) -> Progress | None:
        """How far each fragment is; None before there are any."""

    @property
    def advising(self) -> Advising | None:
        """What tells rules of what was measured; None where there are none."""

    @property
    def finding(self) -> Finding | None:
        """What asks the directory; None where there is none."""

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """What runs now."""

    @property
    def down(self) -> dict[str, str]:
        """Fragments that do not run at the moment, and why."""

    @property
    def decisions(self) -> Decisions | None:
        """What rules and sites that balance wished; None where none may."""

    @property
    def crashed(self) -> set[str]:
        """Sites that are lost."""

    def flowed_s(self) -> float:
        """Seconds that sources have flowed, in earlier starts of this run too."""

    def ask(self, wish: Wish) -> Asked:
        """Ask for a change; what becomes of it stands in the value returned, in time."""

    def add(self, plain: Mapping[str, Any], names: tuple[str, ...], reason: str, by: By, anyway: bool = False) -> Asked:
        """Let queries come, given in plain values; what becomes of them stands in the value returned, in time."""

    def know(self, deployment: Deployment) -> None:
        """Count and tell of the queries of a deployment from now on."""

    def forget(self, queries: Sequence[str]) -> None:
        """Count anew what queries of these names do."""

    def follow(self) -> None:
        """Know the queries of the plan in force, once no change is under way."""

    def crash(self, site: str) -> None:
        """Lose a site."""

    def partition(self, one: str, other: str, for_s: float) -> None:
        """Let two sites be unable to speak for a while."""

    def restart(self, site: str) -> None:
        """Let a lost site come back."""

    def note(self, text: str) -> None:
        """Tell whoever watches, and the story, of something that is good to know."""

    def status(self) -> dict[str, Any]:
        """How it is doing right now."""
