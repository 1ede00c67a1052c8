"""Who offers which stream, and how loaded is each site? Kept by the sites themselves, with copies."""

from weft.protocol.directory.directory import Directory, Limits
from weft.protocol.directory.levels import Levels
from weft.protocol.directory.ring import holders
from weft.protocol.directory.words import (
    AskOffers,
    Beat,
    Begin,
    End,
    Found,
    JoinRing,
    LeaveRing,
    Loaded,
    Offer,
    OffersAre,
    OffersHeld,
    PutOffers,
    Seek,
    TellOffers,
    WelcomeToRing,
    site_key,
)

__all__ = [
    "AskOffers",
    "Beat",
    "Begin",
    "Directory",
    "End",
    "Found",
    "JoinRing",
    "LeaveRing",
    "Levels",
    "Limits",
    "Loaded",
    "Offer",
    "OffersAre",
    "OffersHeld",
    "PutOffers",
    "Seek",
    "TellOffers",
    "WelcomeToRing",
    "holders",
    "site_key",
]
