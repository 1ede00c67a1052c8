"""The worlds of composing: nothing is overbooked or left behind, promises are kept, planted faults are found."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.bodies.explorer.planted import Planted
from weft.bodies.explorer import NAMES, World, explore, run
from weft.bodies.explorer.worlds import composing
from weft.protocol.composing import composer, keeper, room


@pytest.mark.parametrize("world", composing.worlds(), ids=lambda world: world.name)
def test_no_order_of_messages_overbooks_a_site_breaks_a_promise_or_leaves_something_reserved(world: World) -> None:
    assert run(world).violations == ()


def test_as_published_two_sites_spend_the_slack_of_one_query_twice() -> None:
    assert "composing" in NAMES
    broken = {one.claim for world in composing.worlds(as_published=True) for one in run(world).violations}
    assert "every admitted query keeps its promise" in broken


@pytest.mark.long
def test_no_order_breaks_composing_in_larger_worlds() -> None:
    assert explore("composing", long=True)["violations"] == []


class Fault(NamedTuple):
    """A fault of the kind a tired engineer makes, in a composer, a keeper, or what a keeper counts."""

    planted: Planted

    def worlds(self) -> tuple[World, ...]:
        """The worlds with it."""
        made = self.planted.load()
        if self.planted.of is composer:
            return composing.worlds(composer=made.Composer)
        if self.planted.of is keeper:
            return composing.worlds(keeper=made.Keeper)

        class Faulty(keeper.Keeper):
            """A keeper that counts wrongly."""

            __slots__ = ()

        for name, held in vars(made.Room).items():
            if callable(held) and not name.startswith("__"):
                setattr(Faulty, name, held)
        return composing.worlds(keeper=Faulty)


FAULTS = (
    Planted("room is not looked at", room, "        if free < 0:\n", "        if free < -10_000_000:\n"),
    Planted("the way is not looked at", room, "        if left < 0:\n", "        if left < -1_000:\n"),
    Planted("promises of others are not looked at", room, "if free >= self.needs_most:", "if free >= 0:"),
    Planted("confirmed without looking again", room, "if then_us > asked.bound_us:", "if then_us < 0:"),
    Planted("what is given back still counts", room, "        self.load -= row.load\n", ""),
    Planted("what is reserved does not end", keeper, "SetTimer(key, self.limits.keep_ms)]", "]"),
    Planted("confirmed before it is written down", keeper,
            "return [Remember(self.kept(row)), SetTimer(key, self.limits.ask_ms), yes]",
            "return [yes, SetTimer(key, self.limits.ask_ms), Remember(self.kept(row))]"),
    Planted("what is confirmed never asks", keeper,
            "return [Send(row.owner, Wanted(row.attempt, row.piece)), SetTimer(key, self.limits.ask_ms)]",
            "return [SetTimer(key, self.limits.ask_ms)]"),
    Planted("what others lean on ends", keeper, "        if self.leaners(key):\n", "        if not key:\n"),
    Planted("admitted by the first that confirms", composer,
            "return [] if row.waiting else self.admit(key, row)", "return self.admit(key, row)"),
    Planted("run before it is written down", composer,
            "effects: list[Effect] = [CancelTimer(key), Note(self.decided(key, row))]",
            "effects: list[Effect] = [CancelTimer(key)]"),
    Planted("a piece that asks is always told yes", composer,
            "return [] if under_way else [Send(sender, Free(message.attempt, message.piece))]",
            "return [Send(sender, Settle(message.attempt, message.piece))]"),
    Planted("an answer that is lost is waited for", composer,
            "return [*effects, SetTimer(key, self.limits.hop_ms * (len(quest.takes) + 1))]", "return effects"),
    Planted("a query that leaves goes from its sources on", composer,
            "last = [piece for piece in row.left if piece not in read]", "last = list(row.left)"),
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_planted_fault_is_found(fault: Planted) -> None:
    for world in Fault(fault).worlds():
        try:
            if run(world._replace(states_max=20_000)).violations:
                return
        except Exception:
            return  # so wrong that it cannot even be told
    pytest.fail(f"no world sees: {fault}")
