"""Groups that exclude one another: members of one group may be inside together, never with one in conflict."""

from weft.protocol.exclusion.core import Core
from weft.protocol.exclusion.member import Member
from weft.protocol.exclusion.words import AskFork, Enter, Entered, Exit, GiveFork, Refuse

__all__ = [
    "AskFork",
    "Core",
    "Enter",
    "Entered",
    "Exit",
    "GiveFork",
    "Member",
    "Refuse",
]
