"""When does a search end? Rules that planners ask; budgets count steps unless seconds are asked for."""

from __future__ import annotations

from collections.abc import Callable

Stop = Callable[[int], bool]


def after_steps(steps: int) -> Stop:
    """Stop when that many steps were taken."""
    return lambda taken: taken >= steps
