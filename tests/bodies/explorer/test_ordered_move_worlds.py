"""The worlds of ordered moves: nothing is lost, doubled or late; as printed records are lost."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from weft.bodies.explorer import NAMES, World, run
from weft.bodies.explorer.worlds import ordered_move
from weft.protocol import Effect
from weft.protocol.machine import Step
from weft.protocol.ordered_move import Arrived, OrderedSite, StopForwarding


@pytest.mark.parametrize("world", ordered_move.worlds(), ids=lambda world: world.name)
def test_no_order_of_arrivals_loses_doubles_or_delays_a_record(world: World) -> None:
    assert run(world).violations == ()


def test_ordered_moves_are_known_by_name() -> None:
    assert "ordered_move" in NAMES


def test_a_stop_that_names_no_number_loses_what_is_on_its_way_to_the_old_site() -> None:
    (far,) = (one for one in ordered_move.worlds(as_published=True) if one.name == "the old site is far")
    (broken,) = run(far).violations
    assert broken.claim.startswith("every wait ends"), "a record never comes"


class HearsEchoes(OrderedSite):
    """Takes what was forwarded a second time."""

    __slots__ = ()

    def on_coming(self, key: str, row: Any, input: Arrived) -> list[Effect]:
        row.ways[input.record.stream].forwarded = 0
        return OrderedSite.on_coming(self, key, row, input)

    STEPS: ClassVar = OrderedSite.STEPS | {("coming", Arrived): Step(on_coming, ("coming",))}


class NeverStops(OrderedSite):
    """Goes on forwarding for good."""

    __slots__ = ()
    STEPS: ClassVar = OrderedSite.STEPS | {
        ("leaving", StopForwarding): Step(lambda machine, key, row, input: [], ("leaving",))
    }


class HoldsTooShort(OrderedSite):
    """Leaves the forwarding delay out of the hold."""

    __slots__ = ()

    def release(self, key: str, row: Any, at_ms: float) -> list[Effect]:
        for ways in row.ways.values():
            ways.before_ms = min(ways.before_ms, 1.0)
        return OrderedSite.release(self, key, row, at_ms)


@pytest.mark.parametrize("site", [HearsEchoes, NeverStops, HoldsTooShort])
def test_a_planted_fault_is_found(site: type[OrderedSite]) -> None:
    assert any(run(world).violations for world in ordered_move.worlds(site=site)[:4])
