"""Messages fed to a member or an instance by hand, out of order, twice or wrong: refused, and nothing changed."""

from __future__ import annotations

from typing import Any

from weft.protocol import IllegalStep, Input, Message, Received, Send
from weft.protocol.exclusion import AskFork, Enter, Entered, Exit, GiveFork, Refuse
from weft.protocol.messages import StartFragment
from weft.protocol.scaling import (
    Bye,
    Create,
    Drained,
    Ended,
    Grow,
    Heard,
    Leaving,
    NewInstances,
    Place,
    Retire,
    Retired,
    Shrink,
    StartInstance,
)

Case = tuple[tuple[Input, ...], Message, str, str]
"""What comes before, the message, who sends it, and why it is refused."""


def ask(sender: str, stamp: int, handovers: int = 0) -> Received:
    return Received(sender, AskFork(stamp, handovers))


def give(sender: str, handovers: int, stamp: int = 0) -> Received:
    return Received(sender, GiveFork(handovers, stamp))


_LENT = (Enter(), Exit(), ask("b1", 1), ask("b2", 1), Enter(), give("b1", 2, 1))
MEMBER: tuple[Case, ...] = (
    ((), AskFork(1, 0), "a2", "no competitor"),
    ((), AskFork(1, 4), "b1", "changed hands only 0 times"),
    ((ask("b1", 1),), AskFork(1, 1), "b1", "the fork is where it is asked for"),
    ((Enter(), ask("b1", 1)), AskFork(1, 0), "b1", "request 1 waits already"),
    ((Enter(), ask("b1", 1)), AskFork(2, 0), "b1", "request 1 waits already"),
    (_LENT, AskFork(2, 2), "b1", "request 1 waits already"),
    ((), GiveFork(1, 0), "b1", "here already"),
    ((ask("b1", 1),), GiveFork(2, 0), "b1", "not asked for"),
    ((ask("b1", 1), Enter()), GiveFork(1, 0), "b1", "changed hands 1 times"),
    ((ask("b1", 1), Enter()), GiveFork(9, 0), "b1", "changed hands 1 times"),
    ((ask("b1", 1), Enter(), give("b1", 2)), GiveFork(2, 0), "b1", "here already"),
    ((), StartFragment("f", 1), "b1", "no message between members"),
)

_ANNOUNCED = Received("u", NewInstances(1, "up", ("u.1",)))
INSTANCE: tuple[Case, ...] = (
    ((), NewInstances(1, "o", ("y",)), "u", "nothing to announce"),
    ((), NewInstances(1, "up", ("u.1",)), "stranger", "no neighbour"),
    ((), NewInstances(1, "down", ("u.1",)), "u", "no neighbour"),
    ((), NewInstances(1, "up", ("x",)), "u", "not all of these are new"),
    ((_ANNOUNCED,), NewInstances(1, "up", ("u.1",)), "u", "heard before"),
    ((), Leaving(1, "up"), "u", "nothing to announce"),
    ((Received("d", Leaving(1, "down")),), Leaving(1, "down"), "d", "heard before"),
    ((), Leaving(1, "down"), "u", "no neighbour"),
    ((), Heard(1), "u", "nothing is awaited"),
    ((Grow(1), Received("u", Heard(1))), Heard(1), "u", "nothing is awaited"),
    ((Grow(1),), Heard(2), "u", "nothing is awaited"),
    ((), StartInstance((), ()), "x", "started before"),
    ((), Retire(), "stranger", "only who made it"),
    ((Grow(1),), Retire(), "parent", "only who made it"),
    ((), Bye("down"), "d", "not upstream"),
    ((), StartFragment("f", 1), "u", "no message between instances"),
)
CHILD: tuple[Case, ...] = (
    ((), StartInstance((), ()), "stranger", "only who made it"),
    ((), StartInstance((("d", "down"),), ()), "x", "neighbours"),
    ((), StartInstance((), (("u", "up"),)), "x", "neighbours"),
    ((_ANNOUNCED,), NewInstances(1, "up", ("u.1",)), "u", "heard before"),
    ((), Retire(), "x", "only who made it"),
)


def refused(machine: Any, case: Case) -> None:
    """The message is refused with that reason, and the machine is as it was."""
    before, message, sender, why = case
    for input in before:
        machine.handle(input)
    snapshot = machine.snapshot()
    (effect,) = machine.handle(Received(sender, message))
    assert isinstance(effect, Refuse), effect
    assert (effect.sender, effect.message) == (sender, type(message).__name__)
    assert why in effect.why, effect.why
    assert machine.snapshot() == snapshot


def member_by_hand(member: Any) -> None:
    """All of this for a member."""
    for case in MEMBER:
        refused(member("a1", "a", {"b1": "b", "b2": "b"}), case)
    door_by_hand(member)
    late = member("a1", "a", {"b1": "b"})
    late.handle(ask("b1", 1))
    snapshot = late.snapshot()
    assert late.handle(ask("b1", 1)) == [], "the fork has passed it on its way"
    assert late.snapshot() == snapshot


def door_by_hand(member: Any) -> None:
    """A door opens by giving way, lets late-comers pass, and shuts; what is lent is called back when someone waits."""
    peers = ("b1", "b2", "b3", "b4", "b5")
    a1 = member("a1", "a", dict.fromkeys(peers, "b"))
    for input in (*(ask(peer, 5) for peer in ("b1", "b3", "b4")), Enter()):
        a1.handle(input)
    assert a1.handle(ask("b2", 2)) == [Send("b2", GiveFork(1, 6))], "an earlier request is given way"
    assert a1.handle(give("b1", 2)) == [], "a fork that was not given away during this request shuts nothing"
    assert a1.handle(ask("b1", 7, 2)) == [Send("b1", GiveFork(3, 6))], "a later one is let pass"
    assert a1.handle(give("b4", 2, 4)) == [], "one lent by an earlier request makes nobody wait"
    assert a1.handle(give("b2", 2)) == [], "the door is shut"
    assert a1.handle(ask("b5", 9)) == [Send("b1", AskFork(6, 3))], "who comes now waits, and what is lent is called"
    assert a1.handle(ask("b2", 8, 2)) == [], "but only once"
    assert a1.handle(give("b3", 2, 11)) == []
    assert a1.handle(give("b1", 4)) == [Entered()]
    given = [Send("b2", GiveFork(3, 0)), Send("b3", GiveFork(3, 0)), Send("b4", GiveFork(3, 0))]
    assert a1.handle(Exit()) == [*given, Send("b5", GiveFork(1, 0))]
    again = [Send(peer, AskFork(12, 1 if peer == "b5" else 3)) for peer in peers[1:]]
    assert a1.handle(Enter()) == again, "later than all that was heard of"
    assert a1.handle(ask("b1", 3, 4)) == [Send("b1", GiveFork(5, 12))], "the door opens anew"
    assert a1.handle(give("b2", 4)) == []
    assert a1.handle(ask("b2", 13, 4)) == [Send("b2", GiveFork(5, 12))]
    b1 = member("b1", "b", {"a1": "a", "a2": "a", "a3": "a"})
    b1.handle(Enter())
    assert b1.handle(give("a1", 1, 1)) == [], "lent by one who goes first"
    assert b1.handle(give("a2", 1, 2)) == [], "given by one who goes later"
    assert b1.handle(ask("a1", 1, 1)) == [Send("a1", GiveFork(2, 1)), Send("a2", GiveFork(2, 1))], "the door opens"
    assert b1.handle(give("a1", 3)) == [], "the door is shut"
    assert b1.handle(ask("a1", 5, 3)) == [Send("a2", AskFork(1, 2))], "what was let pass when it opened is called too"
    other = member("b1", "b", {"a1": "a", "a2": "a", "a3": "a"})
    for input in (Enter(), give("a1", 1, 1), give("a2", 1, 1)):
        other.handle(input)
    assert other.handle(ask("a1", 1, 1)) == [Send("a1", GiveFork(2, 1))], "what is lent is not given back uncalled"
    inside = member("b1", "b", {"a1": "a"})
    for input in (Enter(), give("a1", 1, 1), ask("a1", 1, 1)):
        inside.handle(input)
    refused(inside, ((), AskFork(1, 1), "a1", "request 1 waits already"))


def instance_by_hand(instance: Any) -> None:
    """All of this for an instance, active or waiting."""
    middle = Place("o", ("up",), ("down",))
    for case in INSTANCE:
        name = "parent.1" if isinstance(case[1], Retire) else "x"
        refused(instance(name, middle, {"u": "up"}, {"d": "down"}), case)
    for case in CHILD:
        refused(instance("x.1", middle), case)
    ending = instance("x", middle, {"u": "up"}, {"d": "down"})
    for input in (Shrink(), Received("u", Heard(1)), Drained()):
        effects = ending.handle(input)
    assert effects == [Send("d", Bye("o")), Ended()]
    assert ending.handle(_ANNOUNCED) == ending.handle(_ANNOUNCED) == [Send("u", Heard(1))], "an ended one answers"


def fails(machine: Any, input: Input) -> bool:
    """Whether an input is no legal step."""
    try:
        machine.handle(input)
    except IllegalStep:
        return True
    return False


def core_by_hand(core: Any) -> None:
    """A core asks once, leaves once, answers competitors only, and has a story."""
    b1 = core("b1", "b", {"a1": "a", "c1": "c"})
    assert fails(b1, Exit())
    assert b1.handle(Enter()) == [Send("a1", AskFork(1, 0))]
    assert b1.state == "asking"
    assert fails(b1, Enter())
    assert fails(b1, Exit())
    assert fails(b1, Drained())
    refused(b1, ((), AskFork(1, 0), "stranger", "no competitor"))
    assert b1.handle(give("a1", 1)) == [Entered()], "it holds the fork downstream"
    assert b1.states() == {"a": "inside", "c": "inside"}
    assert len(b1.story()) == 3


def core_instance_by_hand(core: Any) -> None:
    """A core does one thing at a time, and only its last child can end."""
    sides = {"u": "up"}, {"d": "down"}
    x = core("x", Place("o", ("up",), ("down",)), *sides, {"u": "up", "d": "down"}, {"up": 0, "o": 1, "down": 2})
    assert x.handle(Shrink()) == [], "there is nothing to end"
    assert x.handle(Grow(2)) == [Send("d", AskFork(1, 0))], "upstream it holds the fork"
    assert x.handle(Shrink()) == x.handle(Grow(1)) == []
    new = NewInstances(1, "o", ("x.1", "x.2"))
    grown = [Create("x.1"), Create("x.2"), Send("d", new), Send("u", new)]
    assert x.handle(give("d", 1)) == grown
    x.handle(Received("d", Heard(1)))
    start = StartInstance((("u", "up"),), (("d", "down"),))
    assert x.handle(Received("u", Heard(1))) == [Send("x.1", start), Send("x.2", start)]
    refused(x, ((), Retired(), "x.2", "not to end"))
    assert x.handle(Shrink()) == [Send("x.2", Retire())]
    refused(x, ((), Retired(), "x.1", "not to end"))
    assert x.handle(Received("x.2", Retired())) == []
    assert (x.children, x.core.state) == (["x.1"], "idle")
    assert x.handle(Grow(1))[0] == Create("x.3")
    refused(x, ((), Retired(), "x.3", "not to end"))
    for peer in ("d", "u"):
        x.handle(Received(peer, Heard(2)))
    assert x.handle(ask("d", 9, 1)) == [Send("d", GiveFork(2, 0))]
    assert x.handle(Shrink()) == [Send("d", AskFork(10, 2))]
    refused(x, ((), Retired(), "x.3", "not to end"))
    assert len(x.story()) > 5
