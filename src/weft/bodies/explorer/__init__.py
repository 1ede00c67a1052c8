"""Can any order of arrivals break it? Every order of messages, timers, facts, losses and crashes of small worlds."""

from weft.bodies.explorer.explore import ENDS, Result, Violation, run
from weft.bodies.explorer.registry import NAMES, explore, replayed
from weft.bodies.explorer.replay import BadScenario
from weft.bodies.explorer.replay import read as read_scenario
from weft.bodies.explorer.replay import write as scenario_text
from weft.bodies.explorer.wander import Wandered, wander
from weft.bodies.explorer.world import Choice, Ground, Taken, View, World

__all__ = [
    "ENDS",
    "NAMES",
    "BadScenario",
    "Choice",
    "Ground",
    "Result",
    "Taken",
    "View",
    "Violation",
    "Wandered",
    "World",
    "explore",
    "read_scenario",
    "replayed",
    "run",
    "scenario_text",
    "wander",
]
