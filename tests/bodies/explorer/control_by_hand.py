"""What a controller says to what it is told, word by word: its rules by hand, for it and for faulty ones."""

from __future__ import annotations

from weft.protocol import CancelTimer, Effect, Input, SetTimer, TimerFired
from weft.protocol.control import (
    BALANCE,
    FAILOVER,
    PERSON,
    PROMISE,
    SCALE,
    Advise,
    AskFor,
    ChangeFailed,
    ChangeMade,
    Consider,
    Considered,
    Controller,
    ControllerLimits,
    Decline,
    Forgotten,
    Noticed,
    NoWord,
    Observation,
    Rested,
    Shift,
    Wished,
)

LIMITS = ControllerLimits(1, 2, 3, 4, 5)
LOOK, WAIT, CHANGE, REST, KEEP = 1, 2, 3, 4, 5


def wish(number: int, who: str, of: str, before: str, after: str, seen: int = 0) -> Wished:
    """A wish that touches the operator and both sites."""
    return Wished(number, who, (Shift(of, before, after),), (of, before, after), f"reason {number}", seen)


class Hand:
    """One controller, told one word after another."""

    def __init__(self, made: type[Controller], advises: bool = False) -> None:
        self.machine = made("controller", advises, LIMITS)

    def told(self, *inputs: Input) -> list[Effect]:
        """What it says to the last of some inputs."""
        effects: list[Effect] = []
        for one in inputs:
            effects = self.machine.handle(one)
        return effects


def fired(number: int) -> TimerFired:
    """The timer of a wish."""
    return TimerFired(f"wish {number}")


def timer(number: int, after_ms: int) -> SetTimer:
    """A wish is put under a timer."""
    return SetTimer(f"wish {number}", after_ms)


def a_person_at_once(made: type[Controller]) -> None:
    """A person needs no measurements; a second at the same site waits, and no longer than it must."""
    hand = Hand(made)
    assert hand.told(wish(1, PERSON, "o", "a", "b")) == [timer(1, WAIT), AskFor(1), timer(1, CHANGE)]
    assert hand.told(wish(2, FAILOVER, "p", "b", "c")) == [timer(2, WAIT)]
    assert hand.told(wish(3, PERSON, "q", "c", "d")) == [timer(3, WAIT), AskFor(3), timer(3, CHANGE)]
    assert hand.told(ChangeMade(1)) == [timer(1, REST)]
    assert hand.told(ChangeFailed(3, "no")) == [timer(3, REST), AskFor(2), timer(2, CHANGE)]
    assert hand.told(fired(3)) == [Rested(3), Forgotten(3)]
    assert hand.told(fired(1)) == [Rested(1), timer(1, KEEP)]
    assert hand.told(ChangeMade(1)) == []
    assert hand.told(fired(1)) == [Forgotten(1)]
    assert hand.told(fired(2)) == [NoWord(2), timer(2, REST)]
    assert hand.told(ChangeFailed(2)) == []
    assert hand.told(fired(2), fired(2)) == [Forgotten(2)]
    assert hand.machine.rows == {}
    assert hand.told(ChangeMade(2), fired(2)) == []


def who_waits(made: type[Controller]) -> None:
    """Of those that wait, a person's wish is asked for first; one that waits too long is declined."""
    hand = Hand(made)
    hand.told(wish(1, PERSON, "o", "a", "b"), wish(2, FAILOVER, "p", "b", "c"), wish(3, PERSON, "q", "b", "d"))
    assert hand.told(ChangeMade(1)) == [timer(1, REST), AskFor(3), timer(3, CHANGE)]
    assert hand.told(fired(2)) == [Decline(2, "what it touches was being changed for 0.002 s")]
    assert hand.told(ChangeMade(2)) == []


def rules_look(made: type[Controller]) -> None:
    """Rules look at whole measurements, and are weighed when all have looked."""
    hand = Hand(made)
    assert hand.told(Observation(1, False, ("rate",))) == [CancelTimer("look")]
    assert hand.machine.rows == {}
    assert hand.told(wish(1, BALANCE, "o", "a", "b", 1)) == [Decline(1, "it does not rest on the last measurements")]
    assert hand.told(Considered(1)) == []
    assert hand.told(Observation(2, True)) == [Consider(2), SetTimer("look", LOOK)]
    assert hand.told(wish(2, SCALE, "o", "a", "b", 2)) == []
    assert hand.told(wish(3, PROMISE, "p", "b", "c", 2)) == []
    assert hand.told(wish(4, BALANCE, "q", "c", "d", 1)) == [Decline(4, "it does not rest on the last measurements")]
    assert hand.told(wish(5, BALANCE, "r", "x", "y", 2)) == []
    assert hand.told(Considered(1)) == []
    expected = [
        CancelTimer("look"), AskFor(3), timer(3, CHANGE), AskFor(5), timer(5, CHANGE),
        Decline(2, "b is being changed"),
    ]  # fmt: skip
    assert hand.told(Considered(2)) == expected
    assert "look" not in hand.machine.rows
    hand.told(Observation(3, True), wish(6, SCALE, "s", "e", "f", 3))
    assert hand.told(Observation(4, True)) == [
        Decline(6, "it was measured anew"), Consider(4), SetTimer("look", LOOK),
    ]  # fmt: skip
    hand.told(wish(7, SCALE, "s", "e", "f", 4))
    assert hand.told(TimerFired("look")) == [Decline(7, "the rules did not all look in time")]
    assert hand.told(Considered(4)) == []
    hand.told(Observation(5, True), wish(8, SCALE, "s", "e", "f", 5))
    assert hand.told(Observation(6, False)) == [Decline(8, "it was measured anew"), CancelTimer("look")]


def rest_and_no_way_back(made: type[Controller]) -> None:
    """What was changed rests, then may be changed, then changed back; whoever made the change."""
    hand = Hand(made)
    hand.told(Noticed(1, (Shift("o", "a", "b"),), ("o", "a", "b")))
    hand.told(Observation(1, True), wish(2, PROMISE, "p", "x", "b", 1))
    assert hand.told(Considered(1)) == [CancelTimer("look"), Decline(2, "b rests")]
    assert hand.told(fired(1)) == [Rested(1), timer(1, KEEP)]
    hand.told(Observation(2, True), wish(3, PROMISE, "o", "b", "a", 2), wish(4, SCALE, "p", "x", "b", 2))
    assert hand.told(Considered(2)) == [
        CancelTimer("look"), Decline(3, "it would undo a change of o"), AskFor(4), timer(4, CHANGE),
    ]  # fmt: skip
    assert hand.told(wish(5, FAILOVER, "o", "b", "a")) == [timer(5, WAIT)]
    hand.told(Observation(3, True), wish(6, PROMISE, "q", "a", "z", 3))
    assert hand.told(Considered(3)) == [CancelTimer("look"), Decline(6, "a waits for a change")]
    assert hand.told(ChangeMade(4)) == [timer(4, REST), AskFor(5), timer(5, CHANGE)]


def advice(made: type[Controller]) -> None:
    """Where it advises, rules change nothing, one neighbourhood is advised on once a look, and persons are heard."""
    hand = Hand(made, advises=True)
    hand.told(Observation(1, True), wish(1, SCALE, "o", "a", "b", 1), wish(2, BALANCE, "p", "b", "c", 1))
    assert hand.told(Considered(1)) == [
        CancelTimer("look"), Advise(2, BALANCE, (Shift("p", "b", "c"),), "reason 2"),
        Decline(1, "b is changed by another rule"),
    ]  # fmt: skip
    assert hand.machine.rows == {}
    assert hand.told(wish(3, FAILOVER, "o", "a", "b")) == [
        timer(3, WAIT), CancelTimer("wish 3"), Advise(3, FAILOVER, (Shift("o", "a", "b"),), "reason 3"),
    ]  # fmt: skip
    assert hand.told(wish(4, PERSON, "o", "a", "b")) == [timer(4, WAIT), AskFor(4), timer(4, CHANGE)]


def what_sites_agreed_upon(made: type[Controller]) -> None:
    """It rests on no observation: it waits in its rank, is bound by no rest, and is done where rules only advise."""
    hand = Hand(made)
    assert hand.told(wish(1, SCALE, "o", "a", "b")) == [timer(1, WAIT), AskFor(1), timer(1, CHANGE)]
    assert hand.told(wish(2, SCALE, "p", "b", "c")) == [timer(2, WAIT)]
    assert hand.told(wish(3, BALANCE, "q", "b", "d")) == [timer(3, WAIT)]
    assert hand.told(ChangeMade(1)) == [timer(1, REST), AskFor(3), timer(3, CHANGE)]
    hand.told(Observation(1, True), wish(4, PROMISE, "r", "c", "e", 1))
    assert hand.told(ChangeMade(3)) == [timer(3, REST)], "a wish that rules have and that comes first is waited for"
    assert hand.told(Considered(1)) == [CancelTimer("look"), AskFor(4), timer(4, CHANGE)]
    hand.told(Observation(2, True), wish(5, SCALE, "s", "x", "c", 2))
    assert hand.told(Considered(2)) == [CancelTimer("look"), Decline(5, "c is being changed")]
    assert hand.told(ChangeMade(4)) == [timer(4, REST), AskFor(2), timer(2, CHANGE)]
    hand = Hand(made, advises=True)
    assert hand.told(wish(1, BALANCE, "o", "a", "b")) == [timer(1, WAIT), AskFor(1), timer(1, CHANGE)]
    assert hand.told(ChangeMade(1)) == [timer(1, REST)]
    assert hand.told(wish(2, BALANCE, "o", "b", "a")) == [timer(2, WAIT), AskFor(2), timer(2, CHANGE)]


ALL = (what_sites_agreed_upon, a_person_at_once, who_waits, rules_look, rest_and_no_way_back, advice)


def all_rules(made: type[Controller]) -> None:
    """All of them."""
    for one in ALL:
        one(made)
