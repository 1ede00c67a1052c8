"""Can any order of arrivals break it? Every order of messages, timers, facts, losses and crashes of small worlds."""

from weft.bodies.explorer.explore import Result, Violation, run
from weft.bodies.explorer.registry import NAMES, explore
from weft.bodies.explorer.world import Choice, Ground, View, World

__all__ = ["NAMES", "Choice", "Ground", "Result", "View", "Violation", "World", "explore", "run"]
