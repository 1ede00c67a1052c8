"""Groups that exclude one another: members of one group may be inside together, never with one in conflict."""

from weft.protocol.exclusion.core import Core
from weft.protocol.exclusion.joung import Ra1, Ra2
from weft.protocol.exclusion.member import Member
from weft.protocol.exclusion.two_groups import TwoGroups, TwoGroupsAsPublished
from weft.protocol.exclusion.words import AskFork, Enter, Entered, Exit, GiveFork, Refuse

__all__ = [
    "AskFork", "Core", "Enter", "Entered", "Exit", "GiveFork", "Member", "Ra1", "Ra2", "Refuse", "TwoGroups",
    "TwoGroupsAsPublished",
]
