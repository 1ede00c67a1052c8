"""What would happen? A discrete-event simulation of a deployment in virtual time, the same for the same seed."""

from weft.bodies.twin.outcome.plot import draw
from weft.bodies.twin.outcome.result import Move, Result
from weft.bodies.twin.run import run
from weft.bodies.twin.setup.asking import CannotRun

__all__ = ["CannotRun", "Move", "Result", "draw", "run"]
