"""What of a stream's log counts? One rule for every kind of channel, whoever reads the log and wherever it lies:

    A fence with a greater epoch raises the epoch. A segment counts if its epoch is the current one and its number is
    the next. All else is passed over.

A log is read from its beginning, or from what somebody has counted before. So two who read the same log count the same
segments, whatever a writer that was fenced off, or one that came twice, has added to it meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Counted(NamedTuple):
    """How far a log was counted: the epoch that may write, and the number that the next segment must have."""

    epoch: int = 0
    following: int = 0


class FenceEntry(NamedTuple):
    """From here on only this epoch, or a greater one, writes."""

    epoch: int


class SegmentEntry(NamedTuple):
    """A segment that was written under an epoch."""

    epoch: int
    number: int


Entry = FenceEntry | SegmentEntry


def count(held: Counted, entry: Entry) -> tuple[Counted, bool]:
    """What is counted after one more entry, and whether that entry counts; what does not leaves all as it was."""
    match entry:
        case FenceEntry(epoch) if epoch > held.epoch:
            return held._replace(epoch=epoch), True
        case SegmentEntry(epoch, number) if epoch == held.epoch and number == held.following:
            return held._replace(following=number + 1), True
    return held, False


def taken_from(epoch: int, sites: Sequence[str], told: Mapping[str, Counted]) -> int | None:
    """The number from which a stream that was taken away from a site that cannot be reached goes on under an epoch.

    All sites that have a copy must have heard the fence first: None while one has not. It is the least number that any
    of them lacks, so that no copy is left with a gap; what others have beyond it comes again and is passed over there.
    """
    heard = [told[site].following for site in sites if site in told and told[site].epoch == epoch]
    return min(heard) if heard and len(heard) == len(sites) else None
