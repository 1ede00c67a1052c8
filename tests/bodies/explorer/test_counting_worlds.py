"""The worlds of the counting rule: zombies, lost fences and crashes break nothing, and every planted fault is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from weft.bodies.explorer import NAMES, World, explore, run
from weft.bodies.explorer.worlds import counting
from weft.protocol import Effect
from weft.protocol.machine import Step
from weft.protocol.stream_rule import Counted, Entry, FenceEntry, SegmentEntry, count


@pytest.mark.parametrize("world", counting.worlds(), ids=lambda world: world.name)
def test_no_zombie_lost_fence_or_crash_breaks_the_rule(world: World) -> None:
    assert run(world).violations == ()


def test_the_rule_is_known_by_name() -> None:
    assert "counting" in NAMES


@pytest.mark.long
def test_no_order_breaks_the_rule_in_larger_worlds() -> None:
    assert explore("counting", long=True)["violations"] == []


def any_epoch(held: Counted, entry: Entry) -> tuple[Counted, bool]:
    """Counts the next number, whoever wrote it."""
    if isinstance(entry, SegmentEntry) and entry.number == held.following:
        return held._replace(following=entry.number + 1), True
    return count(held, entry)


def any_number(held: Counted, entry: Entry) -> tuple[Counted, bool]:
    """Counts whatever the present writer wrote."""
    if isinstance(entry, SegmentEntry) and entry.epoch == held.epoch:
        return held._replace(following=entry.number + 1), True
    return count(held, entry)


def fences_fall(held: Counted, entry: Entry) -> tuple[Counted, bool]:
    """Takes any fence."""
    if isinstance(entry, FenceEntry) and entry.epoch != held.epoch:
        return held._replace(epoch=entry.epoch), True
    return count(held, entry)


def no_fence(held: Counted, entry: Entry) -> tuple[Counted, bool]:
    """Takes no fence."""
    return (held, False) if isinstance(entry, FenceEntry) else count(held, entry)


def the_first(epoch: int, sites: Sequence[str], told: Mapping[str, Counted]) -> int | None:
    """Goes on as soon as one has answered."""
    return min((one.following for one in told.values()), default=None)


def the_most(epoch: int, sites: Sequence[str], told: Mapping[str, Counted]) -> int | None:
    """Goes on from what the best copy has."""
    return max(one.following for one in told.values()) if len(told) == len(sites) else None


class AnswersFirst(counting.Copy):
    """Says that it has heard a fence before that is on disk."""

    __slots__ = ()

    def on_fence(self, key: str, row: Any, input: Any) -> list[Effect]:
        return list(reversed(super().on_fence(key, row, input)))

    STEPS: ClassVar = {
        key: Step(lambda machine, *rest: machine.on_fence(*rest), step.to) if key[1] is counting.FenceCopy else step
        for key, step in counting.Copy.STEPS.items()
    }


PLANTED: dict[str, dict[str, Any]] = {
    "any epoch counts": {"rule": any_epoch},
    "any number counts": {"rule": any_number},
    "fences fall": {"rule": fences_fall},
    "no fence is heard": {"rule": no_fence},
    "the taker asks one copy": {"decide": the_first},
    "the taker goes on from the most": {"decide": the_most},
    "a copy answers before it has written": {"copy": AnswersFirst},
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    assert any(run(world).violations for world in counting.worlds(**PLANTED[fault])), f"no world sees: {fault}"
