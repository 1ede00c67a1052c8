"""Balancing a tree of sites: each gives operators to its parent and children, and asks them for some."""

from weft.protocol.balancing.agreements import AGAIN_MAX, Agreements, Due, Handed
from weft.protocol.balancing.balancer import Balancer
from weft.protocol.balancing.eras import Agreed, BalanceFrom, BalanceNow, Declared
from weft.protocol.balancing.loads import BalanceLimits
from weft.protocol.balancing.memory import Memory
from weft.protocol.balancing.selection import Streams
from weft.protocol.balancing.tree import (
    AGAIN_MS,
    MARK,
    BalancedTree,
    amounts,
    asks_again,
    balanced_site,
    balancer_name,
)
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
    "AGAIN_MAX",
    "AGAIN_MS",
    "MARK",
    "Agreed",
    "Agreements",
    "BalanceFrom",
    "BalanceLimits",
    "BalanceNow",
    "BalancedTree",
    "Balancer",
    "Begin",
    "Check",
    "Clear",
    "Declared",
    "Demand",
    "DemandReply",
    "Due",
    "Handed",
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
    "amounts",
    "asks_again",
    "balanced_site",
    "balancer_name",
]
