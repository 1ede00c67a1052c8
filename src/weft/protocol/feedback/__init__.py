"""How does every site of a query know its delays? What is measured is fed back to all of them."""

from weft.protocol.feedback.feedback import LEASE, Feedback, QueryDelays
from weft.protocol.feedback.slack import parts_of, slack_at
from weft.protocol.feedback.words import (
    DelayBeat,
    DelayMeasured,
    DelayPart,
    DelayParts,
    DelaysAre,
    DelayTold,
    DelayWord,
    LeavesOff,
    TakesPart,
)

__all__ = [
    "LEASE",
    "DelayBeat",
    "DelayMeasured",
    "DelayPart",
    "DelayParts",
    "DelayTold",
    "DelayWord",
    "DelaysAre",
    "Feedback",
    "LeavesOff",
    "QueryDelays",
    "TakesPart",
    "parts_of",
    "slack_at",
]
