"""An ordered operator moves, record by record: classic ways fail or forward all, ours does neither."""

from __future__ import annotations

from weft.bodies.twin.ordered_move import classic, forwarding_all, moved
from weft.lab.o_lab2 import BEFORE_S, HOLD_MS, LINK_MS, drawn


def test_a_move_with_two_ways_has_nothing_late_lost_or_doubled_and_forwards_little() -> None:
    given = drawn(1)
    ours = moved(given, 1000 * BEFORE_S, LINK_MS, HOLD_MS)
    assert ours.late_ms == []
    assert sorted(ours.processed) == sorted((one.record.stream, one.record.number) for one in given)
    full = forwarding_all(given, 1000 * BEFORE_S, LINK_MS, HOLD_MS)
    assert full.late_ms == []
    assert 0 < ours.forwarded <= 0.01 * full.forwarded
    assert classic(given, 1000 * BEFORE_S, HOLD_MS).late_ms, "the former hold is too short at the new site"
