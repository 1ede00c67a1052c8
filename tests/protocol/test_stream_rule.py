"""The counting rule: fences rise, segments count once and in order, all else is passed over."""

from __future__ import annotations

import random

import pytest

from weft.protocol.stream_rule import Counted, Entry, FenceEntry, SegmentEntry, count


@pytest.mark.parametrize(
    ("entry", "after", "counts"),
    [
        (FenceEntry(4), Counted(4, 7), True),
        (FenceEntry(3), Counted(3, 7), False),
        (FenceEntry(2), Counted(3, 7), False),
        (SegmentEntry(3, 7), Counted(3, 8), True),
        (SegmentEntry(3, 6), Counted(3, 7), False),
        (SegmentEntry(3, 8), Counted(3, 7), False),
        (SegmentEntry(2, 7), Counted(3, 7), False),
        (SegmentEntry(4, 7), Counted(3, 7), False),
    ],
)
def test_only_a_greater_fence_and_the_next_segment_of_the_epoch_count(
    entry: Entry, after: Counted, counts: bool
) -> None:
    assert count(Counted(3, 7), entry) == (after, counts)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_in_a_log_each_number_counts_once_in_order_under_epochs_that_only_rise(seed: int) -> None:
    chance = random.Random(seed)
    held, counted = Counted(), []
    for _ in range(2_000):
        epoch = held.epoch + chance.randrange(-2, 3)
        number = held.following + chance.randrange(-2, 3)
        entry = FenceEntry(epoch) if chance.random() < 0.1 else SegmentEntry(epoch, number)
        before, (held, counts) = held, count(held, entry)
        assert counts == (before != held)
        if counts and isinstance(entry, SegmentEntry):
            counted.append(entry)
    assert [one.number for one in counted] == list(range(held.following))
    assert [one.epoch for one in counted] == sorted(one.epoch for one in counted)
    assert len(counted) > 50
