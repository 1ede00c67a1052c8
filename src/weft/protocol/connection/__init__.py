"""How do messages survive a connection that breaks? Numbered, said again, counted, in order."""

from weft.protocol.connection.hearer import Hearer
from weft.protocol.connection.speaker import Speaker
from weft.protocol.connection.words import (
    Acked,
    Arrived,
    Close,
    Deliver,
    LinkDown,
    LinkUp,
    Lost,
    Missed,
    Offered,
    SpeakerLimits,
    WriteAck,
    WriteCarry,
    pause_ms,
)

__all__ = [
    "Acked",
    "Arrived",
    "Close",
    "Deliver",
    "Hearer",
    "LinkDown",
    "LinkUp",
    "Lost",
    "Missed",
    "Offered",
    "Speaker",
    "SpeakerLimits",
    "WriteAck",
    "WriteCarry",
    "pause_ms",
]
