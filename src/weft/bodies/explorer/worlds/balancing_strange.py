"""What a balancing site refuses in every state, and what every step of it must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from weft.bodies.explorer.world import Claim, StepClaim, Taken, View
from weft.bodies.explorer.worlds import strange
from weft.protocol import Effect, Input, Machine, Message, Received, Send, TimerFired
from weft.protocol.balancing import (
    Check,
    Clear,
    Demand,
    DemandReply,
    Handover,
    NotTaken,
    Offer,
    OfferReply,
    Part,
    Pick,
    Refuse,
    Remember,
    Stopped,
)
from weft.protocol.balancing import Taken as TakenThere
from weft.protocol.balancing.memory import TOOK
from weft.protocol.balancing.refusals import refusal

LATER = 1_000
DECLINED = "what no room is kept for is declined"


def unmeant(machine: Any) -> Iterator[tuple[str, Message]]:
    """What cannot be meant by what a site hears now."""
    good = _good(machine)
    every: tuple[Message, ...] = (
        Offer(LATER, (good,)), Demand(LATER, machine.none), OfferReply(LATER), DemandReply(LATER), Pick(LATER, (0,)),
        Clear(LATER), Handover(LATER, LATER, good), TakenThere(LATER), NotTaken(LATER), strange.FOREIGN,
    )  # fmt: skip
    yield from ((strange.NOBODY, message) for message in every)
    for peer in machine.peers:
        row = machine.rows[peer]
        yield from ((peer, message) for message in (*_unsound(machine, row, good), *_out_of_place(row, good)))
        last, bad = machine.last(peer), (Part(strange.NOBODY, machine.none),)
        yield peer, Handover(1, LATER, bad)
        if last:
            yield peer, Handover(1, last, bad)
        if last > 1:
            yield peer, Handover(max(1, row.number), last - 1, good)


def answer(machine: Any, sender: str, message: Message) -> list[Effect]:
    """A handover that can never be taken is answered where it is news, so that its giver need not wait."""
    if not isinstance(message, Handover) or sender not in machine.peers or message.serial <= machine.last(sender):
        return []
    why = refusal(machine, sender, machine.rows[sender], message)
    return [Send(sender, NotTaken(message.serial, why))]


def stale(machine: Any) -> Iterator[Input]:
    """Word that something else stopped than what was asked to."""
    yield from (Stopped(peer, machine.rows[peer].serial + 1) for peer in machine.peers)


def declining(machines: Callable[[], Mapping[str, Machine]], names: Iterable[str]) -> dict[str, Claim]:
    """A claim for each site: what is handed over under another number than that which room is kept for is declined."""
    scratch: dict[str, Any] = {}

    def declines(name: str, view: View) -> bool:
        if not scratch:
            scratch.update(machines())
        machine, now = scratch[name], view.machine(name)
        before = now.snapshot()
        for peer in now.peers:
            row = now.rows[peer]
            if row.state in ("held", "taking"):
                machine.restore(before)
                effects = machine.handle(Received(peer, Handover(row.number + 1, LATER, row.parts())))
                said = [type(one.message) for one in effects if isinstance(one, Send)]
                if said != [NotTaken] or machine.rows[peer].parts() != row.parts():
                    return False
        return True

    return {f"{DECLINED}: {name}": partial(declines, name) for name in names}


def _good(machine: Any) -> tuple[Part, ...]:
    """Operators that could come here."""
    moves = sorted(one for one in machine.streams.inputs if one not in machine.streams.pinned)
    return (Part(moves[0], machine.none),)


def _unsound(machine: Any, row: Any, good: tuple[Part, ...]) -> Iterator[Message]:
    """Operators that there are not, that do not move, twice, or with loads that cannot be compared."""
    (part,) = good
    pinned = sorted(machine.streams.pinned)[0]
    bad = (
        (Part(strange.NOBODY, machine.none),), (Part(pinned, machine.none),),
        (Part(part.operator, (*machine.none, 1)),), (part, part),
    )  # fmt: skip
    number = row.heard + 1
    yield Offer(number, ())
    yield Demand(number, (*machine.none, 1))
    for one in bad:
        yield Offer(number, (good, one))
        if row.state == "demanded":
            yield DemandReply(row.number, (good, one))


def _out_of_place(row: Any, good: tuple[Part, ...]) -> Iterator[Message]:
    """Words of other numbers than those that are awaited, and choices that there are not."""
    now, count = row.number, len(row.transfers)
    for number in {max(1, now), now + 1}:
        right = number == now
        if not (right and row.state == "offered"):
            yield OfferReply(number, (0,))
        else:
            yield from (OfferReply(number, places) for places in ((count,), (0, 0)))
        if not (right and row.state == "demanded"):
            yield DemandReply(number, (good,))
        if not (right and row.state in ("held", "lent", "taking")):
            yield Clear(number)
    if row.state == "lent":
        yield from (Pick(now, places) for places in ((), (count,), (0, 0)))
        yield from (Pick(number, (0,)) for number in (now - 1, now + 1) if number > 0)
    elif row.state in ("held", "stopping", "giving"):
        yield Pick(max(1, now), (0,))
        yield Pick(LATER, (0,))
    elif row.heard > 1:
        yield Pick(row.heard - 1, (0,))
    for serial in {max(1, row.serial - 1), max(1, row.serial), row.serial + 1}:
        if not (row.state == "giving" and serial == row.serial):
            yield TakenThere(serial)
            yield NotTaken(serial)
    if row.heard:
        yield Offer(row.heard, (good,))
        yield Demand(row.heard, ())


def numbers_grow(step: Taken) -> bool:
    """Whether what a site counts only grows, one number for each that is used."""
    return bool(0 <= step.after.memory.count - step.before.memory.count <= 1 + len(step.after.peers))


def answers_who_asked(step: Taken) -> bool:
    """Whether an offer, a demand or a handover that fits is answered once, to who made it, under its number."""
    if not isinstance(step.input, Received) or any(isinstance(one, Refuse) for one in step.effects):
        return True
    message = step.input.message
    if isinstance(message, Offer | Demand) and step.after.rows[step.input.sender].heard != message.number:
        return False
    answers = [one for one in step.effects if isinstance(one, Send) and one.to == step.input.sender]
    said = [one.message for one in answers]
    match message:
        case Offer(number=number):
            return sum(isinstance(one, OfferReply) and one.number == number for one in said) == 1
        case Demand(number=number):
            return sum(isinstance(one, DemandReply) and one.number == number for one in said) == 1
        case Handover(serial=serial):
            return sum(isinstance(one, TakenThere | NotTaken) and one.serial == serial for one in said) == 1
    return True


def nothing_kept_from_before(step: Taken) -> bool:
    """Whether for a neighbour that begins anew nothing is kept of what it began before."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, Offer | Demand):
        return True
    row = step.after.rows.get(step.input.sender)
    heard = not any(isinstance(one, Refuse) for one in step.effects)
    return not heard or row is None or row.state not in ("held", "lent") or row.number == step.input.message.number


def engaged_once(step: Taken) -> bool:
    """Whether a site that negotiates for itself, or has not looked yet, enters into nothing that others begin."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, Offer | Demand):
        return True
    row = step.after.rows.get(step.input.sender)
    if row is None or row.state not in ("held", "lent") or row.number != step.input.message.number:
        return True
    return step.after.looked and not any(step.after.rows[peer].mine for peer in step.after.peers)


def passed_over(step: Taken) -> bool:
    """Whether word that something else stopped than what was asked to changes nothing."""
    if not isinstance(step.input, Stopped):
        return True
    row = step.before.rows[step.input.peer]
    meant = row.state == "stopping" and row.serial == step.input.serial
    return meant or (not step.effects and step.before.snapshot() == step.after.snapshot())


def looks_counted(step: Taken) -> bool:
    """Whether a look is what a site counts with from then on."""
    if not isinstance(step.input, Check):
        return True
    here = step.after.memory.here
    return all(here.get(part.operator, part.loads) == part.loads for part in step.input.loads)


def late_picks_cleared(step: Taken) -> bool:
    """Whether who picks what is not kept any more is told so, and need not wait."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, Pick):
        return True
    row, number = step.before.rows.get(step.input.sender), step.input.message.number
    if row is None or row.state != "idle" or row.heard != number:
        return True
    return step.effects == (Send(step.input.sender, Clear(number)),)


def reasons_told(step: Taken) -> bool:
    """Whether a negotiation begins with its reason: how loaded the site was, and beyond which mark."""
    idle = {peer for peer, row in step.before.rows.items() if row.state == "idle"}
    rows = (row for peer, row in step.after.rows.items() if peer in idle)
    begun = [row for row in rows if row.state in ("offered", "demanded")]
    if not isinstance(step.input, Check) or not begun:
        return True
    limits, here = step.after.limits, step.after.memory.here.values()
    sums = [sum(one) for one in zip(step.after.none, *here, strict=True)]
    greatest = max(load / most for load, most in zip(sums, limits.capacity, strict=True))
    marks = {"offered": f"above {limits.high / 1_000:.0%}", "demanded": f"below {limits.low / 1_000:.0%}"}
    told = {row.reason.replace(" %", "%") for row in begun}
    return told == {f"{step.after.name} was at {greatest:.0%}, {marks[begun[0].state]}"}


def taken_with_reasons(step: Taken) -> bool:
    """Whether it is written down with what is taken why it was handed over."""
    return all(one.reason for one in step.effects if isinstance(one, Remember) and one.verb == TOOK)


def silence_frees(step: Taken) -> bool:
    """Whether a neighbour that does not answer a handover in time keeps nobody from negotiating with others."""
    if not isinstance(step.input, TimerFired) or step.before.rows[step.input.name].state != "giving":
        return True
    return not step.after.rows[step.input.name].mine


def silence_is_told(step: Taken) -> bool:
    """Whether a neighbour whose answer is waited for no longer is told so: it may have kept something since."""
    if not isinstance(step.input, TimerFired):
        return True
    row = step.before.rows[step.input.name]
    return row.state not in ("offered", "demanded") or Send(step.input.name, Clear(row.number)) in step.effects


def taken_where_it_fits(step: Taken) -> bool:
    """Whether what room was kept for is taken just where it fits, beside all else that room is kept for."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, Handover):
        return True
    peer, message = step.input.sender, step.input.message
    row = step.before.rows.get(peer)
    if row is None or row.state not in ("held", "taking") or row.number != message.number:
        return True
    rows = [one for name, one in step.before.rows.items() if name != peer and one.state in ("held", "taking", "giving")]
    comes = [part.loads for one in rows for part in one.parts()] + [part.loads for part in message.operators]
    sums = (sum(one) for one in zip(step.before.none, *step.before.memory.here.values(), *comes, strict=True))
    fits = all(load <= most for load, most in zip(sums, step.before.limits.thresholds().most, strict=True))
    took = any(isinstance(effect, Send) and isinstance(effect.message, TakenThere) for effect in step.effects)
    named = {part.operator for part in message.operators} <= {part.operator for part in row.parts()}
    return took == (fits and named) or message.serial <= step.before.last(peer)


STEPS: dict[str, StepClaim] = {
    "for who begins anew nothing is kept of what it began before": nothing_kept_from_before,
    "a neighbour that does not answer a handover keeps nobody from negotiating": silence_frees,
    "who is waited for no longer is told so": silence_is_told,
    "what is handed over is taken just where it fits beside all that room is kept for": taken_where_it_fits,
    "what is taken is written down with its reason": taken_with_reasons,
    "numbers only grow": numbers_grow,
    "who offers, asks or hands over is answered once, under its number": answers_who_asked,
    "who negotiates, or has not looked, enters into nothing that others begin": engaged_once,
    "word that something else stopped is passed over": passed_over,
    "what a site has seen it counts with": looks_counted,
    "who picks what is not kept any more is told so": late_picks_cleared,
    "a negotiation begins with its reason": reasons_told,
}
