"""Which messages does a balancing site refuse, and why? A message that is refused changes nothing."""

from __future__ import annotations

from typing import Any

from weft.protocol.balancing.loads import Amounts
from weft.protocol.balancing.stock import DEMANDED, GIVING, HELD, LENT, OFFERED, STOPPING, TAKING, Neighbour, Stock
from weft.protocol.balancing.words import (
    Clear,
    Demand,
    DemandReply,
    Handover,
    NotTaken,
    Offer,
    OfferReply,
    Part,
    Pick,
    Taken,
)


def refusal(site: Stock, peer: str, row: Neighbour, message: Any) -> str:
    """Why a message does not fit, empty where it does."""
    if peer not in site.peers:
        return "it comes from no neighbour"
    match message:
        case Offer() | Demand() if message.number <= row.heard:
            return f"number {message.number} is no news after {row.heard}"
        case Offer(transfers=transfers):
            return unsound(site, transfers) if transfers else "nothing is offered"
        case Demand(room=room):
            return uneven(site, room)
        case OfferReply() if row.state == OFFERED and message.number == row.number:
            return misplaced(message.accepted, row)
        case DemandReply() if row.state == DEMANDED and message.number == row.number:
            return unsound(site, message.transfers)
        case Pick() if row.state == LENT and message.number == row.number:
            return misplaced(message.picked, row) if message.picked else "nothing is picked"
        case Pick() if row.state not in (HELD, LENT, STOPPING, GIVING) and message.number >= row.heard:
            return ""
        case Clear() if row.state in (HELD, LENT, TAKING) and message.number == row.number:
            return ""
        case Handover():
            if message.serial < site.last(peer):
                return f"handover {message.serial} is no news after {site.last(peer)}"
            return unsound(site, (message.operators,))
        case Taken() | NotTaken() if row.state == GIVING and message.serial == row.serial:
            return ""
    return f"nothing of that kind is awaited while {row.state}"


def unsound(site: Stock, transfers: tuple[tuple[Part, ...], ...]) -> str:
    """Why operators named by a neighbour could never come here, empty where they could."""
    for transfer in transfers:
        for part in transfer:
            if part.operator not in site.streams.inputs or part.operator in site.streams.pinned:
                return f"{part.operator} is no operator that moves"
            if wrong := uneven(site, part.loads):
                return wrong
        if len({part.operator for part in transfer}) < len(transfer):
            return "an operator is named twice"
    return ""


def uneven(site: Stock, loads: Amounts) -> str:
    """Why loads cannot be compared with a site's, empty where they can."""
    count = len(site.limits.capacity)
    return "" if len(loads) == count else f"{len(loads)} resources are named where {count} count"


def misplaced(places: tuple[int, ...], row: Neighbour) -> str:
    """Why places do not point to transfers of a row, empty where they do."""
    if len(set(places)) == len(places) and all(place < len(row.transfers) for place in places):
        return ""
    return f"{len(row.transfers)} transfers are there to choose from, each once"
