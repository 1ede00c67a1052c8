"""A small world: machines, what lies between them, and the ground truth that their bodies stand for.

The ground is a frozen value of the world's own making: what is really alive, what disks hold. Effects that are not
messages or timers change it; it offers the facts that may come next. It must be hashable and canonical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from weft.protocol import Effect, Input, Machine, Message

Flight = tuple[tuple[tuple[str, str], tuple[Message, ...]], ...]
TimerNames = tuple[tuple[str, str], ...]


class Choice(NamedTuple):
    """A fact the ground may tell a machine next, and the ground after it."""

    site: str
    fact: Input
    after: Ground
    due: bool = True
    """It will come if nothing else does; what is not due may also never come."""
    heard: bool = True
    """Whether the machine is told; what is not heard only changes the ground, and stands in the story."""


class Ground(Protocol):
    """What a world's own ground can do; every method returns a new value."""

    def perform(self, site: str, effect: Effect) -> Ground:
        """The ground after an effect of a machine."""

    def choices(self) -> Iterable[Choice]:
        """The facts that may come next."""

    def crash(self, site: str) -> Ground:
        """The ground after a machine was lost and came back."""

    def __hash__(self) -> int: ...


class View:
    """What a claim sees of a state; what it looks at is noted, so that it is asked only where that differs."""

    __slots__ = ("_look",)

    def __init__(self, look: Callable[[str, Any], Any]) -> None:
        self._look = look

    def machine(self, name: str) -> Any:
        """A machine as it is now; to be looked at only."""
        return self._look("machine", name)

    def mark(self, name: str) -> Any:
        """What the world says of a machine as it is now: a small value, which many states share."""
        return self._look("mark", name)

    @property
    def flight(self) -> Flight:
        """All messages under way."""
        flight: Flight = self._look("flight", None)
        return flight

    @property
    def busy(self) -> bool:
        """Whether messages, or facts that are due, are under way."""
        busy: bool = self._look("busy", None)
        return busy

    @property
    def timers(self) -> TimerNames:
        """The timers that are set."""
        timers: TimerNames = self._look("timers", None)
        return timers

    @property
    def ground(self) -> Any:
        """What is really so."""
        return self._look("ground", None)

    @property
    def faults(self) -> Any:
        """How often messages were lost or overtook others, machines crashed, and timers were early."""
        return self._look("faults", None)

    @property
    def told(self) -> bool:
        """Whether all scripts have been told to their ends."""
        told: bool = self._look("told", None)
        return told


Claim = Callable[[View], bool]


class Taken(NamedTuple):
    """A step of a machine: as it was before, what it was told, what it asked for, and as it is after."""

    before: Any
    input: Input
    effects: tuple[Effect, ...]
    after: Any


StepClaim = Callable[[Taken], bool]


class World(NamedTuple):
    """What is explored: who takes part, what may go wrong and how often, and what must hold."""

    name: str
    machines: Callable[[], dict[str, Machine]]
    ground: Ground
    scripts: tuple[tuple[tuple[str, Input], ...], ...]
    """Inputs from outside: the order within a script is kept, all else is free."""
    invariants: Mapping[str, Claim]
    """What holds in every state, by the sentence that says so."""
    quiet: Claim
    """The end that must stay within reach of every state, without the help of faults or of facts that are not due."""
    reborn: Callable[[str, Any], Machine] | None = None
    """A machine after its crash, from what the ground remembers; its scripts are then told to it from the start."""
    mortal: tuple[str, ...] = ()
    lose: int = 0
    crash: int = 0
    torn: int = 0
    """How many of the crashes may come between two effects of one step."""
    early: int = 0
    """How many timers may fire while messages or facts are still under way; all others wait until nothing else can."""
    overtake: int = 0
    """How many messages may arrive before others that were sent earlier between the same two."""
    double: int = 0
    """How many messages may arrive twice."""
    states_max: int = 2_000_000
    alike: tuple[tuple[str, ...], ...] = ()
    """Machines that nothing tells apart but their names; the ground then has `renamed(names)`. See `symmetry`."""
    mark: Callable[[Any], Any] | None = None
    """What claims that ask for marks need to know of a machine; hashable."""
    collect: bool = False
    """Whether to go on after a broken claim, and tell the first break of each."""
    ends: bool = False
    """Whether every run must end by itself: no steps in a circle. Then the most messages of any run are counted too."""
    sent_max: int | None = None
    """The most messages that any run may send."""
    steps: Mapping[str, StepClaim] = {}
    """What holds of every step, by the sentence that says so; asked once for each state of a machine and input."""
