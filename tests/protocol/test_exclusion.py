"""Members that share forks: who goes first, who is let pass, and messages that cannot be meant."""

from __future__ import annotations

import pytest

from weft.protocol import Effect, IllegalStep, Input, Received, Send, decode, encode
from weft.protocol.diagram import mermaid
from weft.protocol.exclusion import AskFork, Enter, Entered, Exit, GiveFork, Member
from weft.protocol.messages import VERSION, BadMessage


def told(member: Member, *inputs: Input) -> list[Effect]:
    """The effects of the last of some inputs."""
    effects: list[Effect] = []
    for input in inputs:
        effects = member.handle(input)
    return effects


def ask(sender: str, stamp: int, handovers: int = 0) -> Received:
    return Received(sender, AskFork(stamp, handovers))


def give(sender: str, handovers: int, stamp: int = 0) -> Received:
    return Received(sender, GiveFork(handovers, stamp))


def a1() -> Member:
    return Member("a1", "a", {"b1": "b", "b2": "b"})


def b1() -> Member:
    return Member("b1", "b", {"a1": "a", "a2": "a"})


def test_who_holds_every_fork_enters_without_a_message() -> None:
    assert told(a1(), Enter()) == [Entered()]


def test_who_lacks_forks_asks_for_them_and_enters_with_the_last() -> None:
    member = b1()
    assert told(member, Enter()) == [Send("a1", AskFork(1, 0)), Send("a2", AskFork(1, 0))]
    assert told(member, give("a1", 1)) == []
    assert told(member, give("a2", 1)) == [Entered()]
    assert member.state == "inside"


def test_one_inside_gives_forks_when_it_leaves() -> None:
    assert told(a1(), Enter(), ask("b1", 1), Exit()) == [Send("b1", GiveFork(1, 0))]


def test_an_idle_member_gives_at_once() -> None:
    assert told(a1(), ask("b1", 1)) == [Send("b1", GiveFork(1, 0))]


def test_an_earlier_request_is_given_way_and_takes_the_later_one_along() -> None:
    member = a1()
    told(member, ask("b1", 5), Enter())
    assert told(member, ask("b2", 2)) == [Send("b2", GiveFork(1, 6))]


def test_a_door_once_open_lets_later_requests_pass_until_a_fork_comes_back() -> None:
    member = a1()
    told(member, ask("b1", 5), Enter(), ask("b2", 2))
    assert told(member, give("b1", 2)) == []
    assert told(member, ask("b1", 7, 2)) == [Send("b1", GiveFork(3, 6))], "lent"
    assert told(member, give("b2", 2)) == []
    assert told(member, ask("b2", 8, 2)) == [Send("b1", AskFork(6, 3))], "made to wait, so what is lent is called back"


def test_a_lent_fork_is_given_back_only_when_called() -> None:
    member = b1()
    told(member, Enter())
    assert told(member, give("a1", 1, stamp=1)) == []
    assert member.rows["b1"].forks["a1"].patient
    assert told(member, ask("a1", 1, 1)) == [Send("a1", GiveFork(2, 1))]


def test_every_message_twice_brings_nobody_inside_who_should_not_be() -> None:
    members = {"a1": Member("a1", "a", {"b1": "b"}), "b1": Member("b1", "b", {"a1": "a"})}
    todo: list[tuple[str, Input]] = [("a1", Enter()), ("b1", Enter())]
    inside: set[str] = set()
    for _ in range(200):
        if not todo:
            break
        name, input = todo.pop(0)
        if isinstance(input, Exit):
            inside.discard(name)
        for effect in members[name].handle(input):
            if isinstance(effect, Send):
                todo += [(effect.to, Received(name, effect.message))] * 2
            elif isinstance(effect, Entered):
                inside.add(name)
                assert inside == {name}
                todo.append((name, Exit()))
    assert [member.state for member in members.values()] == ["idle", "idle"]


def test_asking_while_asking_is_the_bodys_fault() -> None:
    member = b1()
    told(member, Enter())
    with pytest.raises(IllegalStep):
        member.handle(Enter())


def test_fork_messages_travel_as_json_within_bounds() -> None:
    for message in (AskFork(3, 2), GiveFork(1, 0)):
        assert decode(encode(message)) == message
    with pytest.raises(BadMessage, match="malformed"):
        decode(b'{"weft": %d, "message": {"type": "AskFork", "stamp": 0, "handovers": 1}}' % VERSION)


def test_a_restored_member_goes_on_as_the_first_would() -> None:
    first, second = a1(), a1()
    told(first, ask("b1", 5), Enter(), ask("b2", 2))
    second.restore(first.snapshot())
    assert second.handle(give("b1", 2)) == first.handle(give("b1", 2))
    assert second.snapshot() == first.snapshot()


def test_the_diagram_shows_the_way_in_and_out() -> None:
    text = mermaid(Member)
    for step in ("idle --> asking: Enter", "asking --> inside: GiveFork", "inside --> idle: Exit"):
        assert step in text
