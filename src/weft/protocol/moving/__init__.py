"""Changing a placement while records flow: one change at a time, the old plan or the new, never between."""

from weft.protocol.moving.desk import Desk
from weft.protocol.moving.mover import Mover, MoverLimits
from weft.protocol.moving.words import (
    Ask,
    Cancel,
    Change,
    Changed,
    ChannelDrained,
    Cool,
    Decide,
    Decided,
    Drain,
    End,
    InForce,
    Leave,
    Moot,
    NotChanged,
    NotWarmed,
    Start,
    Turn,
    Undecided,
    Warm,
    Warmed,
    least_epoch,
)

__all__ = [
    "Ask", "Cancel", "Change", "Changed", "ChannelDrained", "Cool", "Decide", "Decided", "Desk", "Drain", "End",
    "InForce", "Leave", "Moot", "Mover", "MoverLimits", "NotChanged", "NotWarmed", "Start", "Turn", "Undecided",
    "Warm", "Warmed", "least_epoch",
]
