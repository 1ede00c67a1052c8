"""How does an operator move while its input stays in order? Two ways for a while, one hold over both (Order §4.2)."""

from weft.protocol.ordered_move.site import OrderedSite, Ways
from weft.protocol.ordered_move.words import (
    Arrived,
    Ended,
    Forward,
    Forwarded,
    Host,
    Leave,
    Left,
    Process,
    Record,
    State,
    StopForwarding,
    Subscribe,
    TakeOver,
    Tick,
    Unsubscribe,
)

__all__ = [
    "Arrived",
    "Ended",
    "Forward",
    "Forwarded",
    "Host",
    "Leave",
    "Left",
    "OrderedSite",
    "Process",
    "Record",
    "State",
    "StopForwarding",
    "Subscribe",
    "TakeOver",
    "Tick",
    "Unsubscribe",
    "Ways",
]
