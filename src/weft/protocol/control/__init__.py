"""Who decides what changes? A controller weighs the wishes of persons and rules, and asks for one change at a time."""

from weft.protocol.control.controller import Controller, ControllerLimits
from weft.protocol.control.decisions import Decisions
from weft.protocol.control.neighbourhood import neighbourhood
from weft.protocol.control.rounds import Rounds
from weft.protocol.control.rules import RULES, Desire, desires, looks_every_s
from weft.protocol.control.words import (
    BALANCE,
    FAILOVER,
    PERSON,
    PRECEDENCE,
    PROMISE,
    SCALE,
    Advise,
    AskFor,
    ChangeFailed,
    ChangeMade,
    Consider,
    Considered,
    Decline,
    Forgotten,
    Noticed,
    NoWord,
    Observation,
    Rested,
    Shift,
    Wished,
)

__all__ = [
    "BALANCE",
    "FAILOVER",
    "PERSON",
    "PRECEDENCE",
    "PROMISE",
    "RULES",
    "SCALE",
    "Advise",
    "AskFor",
    "ChangeFailed",
    "ChangeMade",
    "Consider",
    "Considered",
    "Controller",
    "ControllerLimits",
    "Decisions",
    "Decline",
    "Desire",
    "Forgotten",
    "NoWord",
    "Noticed",
    "Observation",
    "Rested",
    "Rounds",
    "Shift",
    "Wished",
    "desires",
    "looks_every_s",
    "neighbourhood",
]
