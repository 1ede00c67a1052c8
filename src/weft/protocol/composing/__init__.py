"""Where can a query run, and who pays? Composers ask keepers, hop by hop, and admit what can be kept."""

from weft.protocol.composing.asking import ComposerLimits
from weft.protocol.composing.composer import Composer
from weft.protocol.composing.keeper import Keeper, KeeperLimits
from weft.protocol.composing.words import (
    Admitted,
    Ask,
    Begin,
    Decided,
    Depart,
    End,
    Find,
    Forget,
    Found,
    Gone,
    Hosts,
    Instance,
    Kept,
    Note,
    Probe,
    Refused,
    Remember,
    Run,
    Strike,
)

__all__ = [
    "Admitted",
    "Ask",
    "Begin",
    "Composer",
    "ComposerLimits",
    "Decided",
    "Depart",
    "End",
    "Find",
    "Forget",
    "Found",
    "Gone",
    "Hosts",
    "Instance",
    "Keeper",
    "KeeperLimits",
    "Kept",
    "Note",
    "Probe",
    "Refused",
    "Remember",
    "Run",
    "Strike",
]
