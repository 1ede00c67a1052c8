"""Balancing a tree of sites: each gives operators to its parent and children, and asks them for some."""

from weft.protocol.balancing.balancer import Balancer
from weft.protocol.balancing.loads import BalanceLimits
from weft.protocol.balancing.memory import Memory
from weft.protocol.balancing.selection import Streams
from weft.protocol.balancing.tree import AGAIN_MS, BalancedTree, asks_again
from weft.protocol.balancing.words import (
    Begin,
    Check,
    Clear,
    Demand,
    DemandReply,
    Handover,
    NotTaken,
    Offer,
    OfferReply,
    Part,
    Pick,
    Refuse,
    Remember,
    Start,
    Stop,
    Stopped,
    Taken,
)

__all__ = [
    "AGAIN_MS",
    "BalanceLimits",
    "BalancedTree",
    "Balancer",
    "Begin",
    "Check",
    "Clear",
    "Demand",
    "DemandReply",
    "Handover",
    "Memory",
    "NotTaken",
    "Offer",
    "OfferReply",
    "Part",
    "Pick",
    "Refuse",
    "Remember",
    "Start",
    "Stop",
    "Stopped",
    "Streams",
    "Taken",
    "asks_again",
]
