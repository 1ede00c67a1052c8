"""What does a site do next? Machines: handle(input) -> effects."""

from weft.protocol.machine import (
    CancelTimer,
    Effect,
    IllegalStep,
    Input,
    Machine,
    Received,
    Send,
    SetTimer,
    Step,
    TimerFired,
)
from weft.protocol.messages import BadMessage, Message, decode, encode
from weft.protocol.story import StoryLine, parse_story_line, story_line

__all__ = [
    "BadMessage",
    "CancelTimer",
    "Effect",
    "IllegalStep",
    "Input",
    "Machine",
    "Message",
    "Received",
    "Send",
    "SetTimer",
    "Step",
    "StoryLine",
    "TimerFired",
    "decode",
    "encode",
    "parse_story_line",
    "story_line",
]
