"""When does a search end? Rules that planners ask; budgets count steps unless seconds are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Stop = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class AfterSteps:
    """Stop when that many steps were taken."""

    steps: int

    def __call__(self, taken: int) -> bool:
        """Whether it is time."""
        return taken >= self.steps

    def progress(self, taken: int) -> float:
        """How much of the budget is used, 0 to 1."""
        return min(1.0, taken / self.steps) if self.steps > 0 else 1.0


@dataclass(slots=True)
class AfterSeconds:
    """Stop when so many seconds have passed on a clock that is passed in, from the first question on."""

    seconds: float
    clock: Callable[[], float]
    began: float | None = field(default=None)

    def __call__(self, taken: int) -> bool:
        """Whether it is time."""
        return self.progress(taken) >= 1.0

    def progress(self, taken: int) -> float:
        """How much of the budget is used, 0 to 1."""
        now = self.clock()
        if self.began is None:
            self.began = now
        return min(1.0, (now - self.began) / self.seconds) if self.seconds > 0 else 1.0


def after_steps(steps: int) -> Stop:
    """Stop when that many steps were taken."""
    return AfterSteps(steps)


def after_seconds(seconds: float, clock: Callable[[], float]) -> Stop:
    """Stop when so many seconds have passed on a clock, which is an argument as all time is."""
    return AfterSeconds(seconds, clock)


def first_half(stop: Stop) -> Stop:
    """Stop when half of the seconds have passed; a budget of steps stays whole."""
    return _Half(stop) if isinstance(stop, AfterSeconds) else stop


@dataclass(frozen=True, slots=True)
class _Half:
    whole: AfterSeconds

    def __call__(self, taken: int) -> bool:
        return self.progress(taken) >= 1.0

    def progress(self, taken: int) -> float:
        return min(1.0, 2.0 * self.whole.progress(taken))
