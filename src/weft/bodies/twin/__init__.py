"""What would happen? A discrete-event simulation of a deployment in virtual time, the same for the same seed."""

from weft.bodies.twin.asking import CannotRun
from weft.bodies.twin.plot import draw
from weft.bodies.twin.result import Move, Result
from weft.bodies.twin.run import run

__all__ = ["CannotRun", "Move", "Result", "draw", "run"]
