"""What members with forks refuse in every state, what their rules say of a state, and of a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from weft.bodies.explorer.world import Claim, StepClaim, Taken, View
from weft.bodies.explorer.worlds import strange
from weft.protocol import Message, Received, Send
from weft.protocol.exclusion import AskFork, GiveFork, Refuse
from weft.protocol.exclusion.member import ASKING, CALLED, GIVEN, KEPT, LENT

RULES = "an open door makes nobody wait, giving way opens it, whoever makes others wait calls back what it lent"
FIRST = "of two requests in conflict one goes first, and both know which"


def members(machine: Any) -> list[Any]:
    """A member, or all of a core's."""
    return list(machine.members.values()) if hasattr(machine, "members") else [machine]


def standings(machine: Any) -> list[Any]:
    """How a member stands, or each of a core's."""
    return [member.rows[member.name] for member in members(machine)]


def rules(names: Iterable[str]) -> dict[str, Claim]:
    """What the rules of `member` say of each member that asks, seen from outside."""

    def hold(row: Any) -> bool:
        away = [fork.away for fork in row.forks.values() if fork.away]
        waits = _kept_waiting(row)
        here = any(fork.held and fork.away for fork in row.forks.values())
        keeps = waits and (row.door == "open" or LENT in away)
        needless = not waits and CALLED in away
        return not (here or keeps or needless or (away and row.door == "shut"))

    def of(name: str) -> Claim:
        return lambda view: all(hold(row) for row in standings(view.machine(name)) if row.state == ASKING)

    return {f"{RULES}: {name}": of(name) for name in names}


def _kept_waiting(row: Any) -> bool:
    return any(fork.held and fork.wants and not fork.patient for fork in row.forks.values())


def in_order(pairs: Iterable[tuple[str, str]]) -> dict[str, Claim]:
    """Of members in conflict, who goes first."""

    def of(one: str, other: str) -> Claim:
        def ordered(view: View) -> bool:
            first, second = view.machine(one), view.machine(other)
            here, there = first.rows[one], second.rows[other]
            if here.state != ASKING or there.state != ASKING:
                return True
            return bool(first.before(there.stamp, other, here) != second.before(here.stamp, one, there))

        return ordered

    return {f"{FIRST}: {one}, {other}": of(one, other) for one, other in pairs}


def unmeant(machine: Any) -> Iterator[tuple[str, Message]]:
    """What cannot be meant by what a member, or a core, hears now."""
    yield strange.NOBODY, AskFork(1, 0)
    yield strange.NOBODY, GiveFork(1)
    yield machine.name, AskFork(1, 0)
    for row in standings(machine):
        for peer, fork in row.forks.items():
            hands = fork.handovers
            yield peer, strange.FOREIGN
            yield peer, AskFork(row.clock + 1, hands + 1)
            yield peer, GiveFork(hands + 2)
            yield from ((peer, GiveFork(old)) for old in (hands,) if old)
            if fork.held or row.state != ASKING:
                yield peer, GiveFork(hands + 1)
            if not fork.held:
                yield peer, AskFork(row.clock + 1, hands)
            elif fork.wants:
                yield peer, AskFork(fork.wants + 1, hands)
                yield from ((peer, AskFork(fork.wants, hands)) for _ in range(not fork.patient))


def _rows(step: Taken) -> Iterator[tuple[Any, Any]]:
    return zip(standings(step.before), standings(step.after), strict=True)


def shut_at_first(step: Taken) -> bool:
    """Whether a request begins with a shut door, later than all that was heard of."""
    begun = [(was, now) for was, now in _rows(step) if was.stamp != now.stamp and now.stamp]
    return all(now.stamp > was.clock and (now.state != ASKING or now.door == "shut") for was, now in begun)


def clock_goes_on(step: Taken) -> bool:
    """Whether no clock goes back, nor stays behind a stamp that is heard."""
    if any(now.clock < was.clock for was, now in _rows(step)):
        return False
    if not isinstance(step.input, Received) or any(isinstance(one, Refuse) for one in step.effects):
        return True
    sender, message = step.input.sender, step.input.message
    return all(now.clock >= message.stamp for was, now in _rows(step) if _news(was.forks, sender, message))  # type: ignore[attr-defined]


def asks_impatiently(step: Taken) -> bool:
    """Whether one that asks for a fork, though it had lent it, waits patiently no more."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, AskFork):
        return True
    sender, message = step.input.sender, step.input.message
    forks = [now.forks[sender] for was, now in _rows(step) if _news(was.forks, sender, message)]
    return not any(fork.held and fork.wants and fork.patient for fork in forks)


def door_as_it_should(step: Taken) -> bool:
    """Whether a fork that is given shuts an open door where it comes back, or where its giver is made to wait; and
    whether a giver that goes first is known to wait patiently."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, GiveFork):
        return True
    sender, stamp = step.input.sender, step.input.message.stamp
    for member, (was, now) in zip(members(step.before), _rows(step), strict=True):
        if not _news(was.forks, sender, step.input.message) or any(isinstance(one, Refuse) for one in step.effects):
            continue
        lent = stamp > 0 and (stamp, member.competitors[sender]) < (was.stamp, member.group)
        waits = stamp > 0 and not lent
        shuts = was.door == "open" and (waits or was.forks[sender].away != KEPT)
        if now.door != ("used" if shuts else was.door) or now.forks[sender].patient != lent:
            return False
    return True


def gives_as_ruled(step: Taken) -> bool:
    """Whether one that asks gives way to who goes first, which opens a shut door for all it made wait, and else lets
    pass only through an open one."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, AskFork):
        return True
    sender, message = step.input.sender, step.input.message
    given = {one.to for one in step.effects if isinstance(one, Send) and isinstance(one.message, GiveFork)}
    for member, (was, now) in zip(members(step.before), _rows(step), strict=True):
        fork = was.forks.get(sender)
        if fork is None or not fork.held or message.handovers != fork.handovers or was.state != ASKING:
            continue
        first = (message.stamp, member.competitors[sender]) < (was.stamp, member.group)
        waiting = {peer for peer, one in was.forks.items() if one.held and one.wants and not one.patient}
        passing = {sender} if first or was.door == "open" else set()
        lent = (waiting if first and was.door == "shut" else passing) - ({sender} if first else set())
        if any(isinstance(one, Refuse) for one in step.effects):
            continue
        if given != passing | lent or any(now.forks[to].away != (LENT if to in lent else GIVEN) for to in given):
            return False
    return True


def _news(forks: Mapping[str, Any], sender: str, message: Any) -> bool:
    """Whether the fork has not passed what is said of it on its way."""
    return sender in forks and message.handovers >= forks[sender].handovers


STEPS: dict[str, StepClaim] = {
    "a request begins with a shut door, later than all that was heard of": shut_at_first,
    "no clock goes back, nor stays behind a stamp that is heard": clock_goes_on,
    "who asks for what it lent waits patiently no more": asks_impatiently,
    "a door is shut by a fork that comes back or one that waits, and who lends is patient": door_as_it_should,
    "one that asks gives way to who goes first, and lets others pass only through an open door": gives_as_ruled,
}
