"""What instances refuse in every state, and what every step of theirs must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.bodies.explorer.world import StepClaim, Taken
from weft.bodies.explorer.worlds import exclusion_claims, strange
from weft.protocol import Message, Received, Send
from weft.protocol.exclusion import Refuse
from weft.protocol.scaling import (
    Bye,
    Heard,
    Leaving,
    NewInstances,
    Retire,
    Retired,
    Shrink,
    StartInstance,
)
from weft.protocol.scaling.any_instance import ACTIVE, WAITING
from weft.protocol.scaling.instance import ENDED

LATER = 1_000
NEW = ("new",)


def unmeant(machine: Any) -> Iterator[tuple[str, Message]]:
    """What cannot be meant by what an instance, or a core, hears now."""
    core = _is_core(machine)
    one: Any = machine.instance if core else machine
    yield strange.NOBODY, Retired()
    if core:
        yield from exclusion_claims.unmeant(machine.core)
        asked = machine.children[-1:] if machine.scales and machine.wish < 0 else []
        yield from ((child, Retired()) for child in machine.children if child not in asked)
    yield from _announced(one)
    row, parent = one.rows[one.name], one.name.rpartition(".")[0]
    yield strange.NOBODY, strange.FOREIGN
    yield strange.NOBODY, Retire()
    yield from ((strange.NOBODY, Bye(of)) for of in (one.place.operator, *one.place.downstream))
    for peer in (*row.ups, *row.downs, strange.NOBODY):
        yield peer, Heard(row.number + 1)
        if peer not in row.awaits and row.number:
            yield peer, Heard(row.number)
    if row.state != WAITING:
        yield parent or strange.NOBODY, StartInstance((), ())
    else:
        yield strange.NOBODY, StartInstance((), ())
        yield from ((parent, StartInstance((("new", of),), ())) for of in one.place.downstream)
        yield from ((parent, StartInstance((), (("new", of),))) for of in one.place.upstream)
    if row.state != ACTIVE and parent:
        yield parent, Retire()


def _is_core(machine: Any) -> bool:
    return hasattr(machine, "core")


def _announced(one: Any) -> Iterator[tuple[str, Message]]:
    """Announcements that cannot be meant: of strangers, of the wrong side, of what is not new, heard before."""
    row, place = one.rows[one.name], one.place
    sides = (*place.upstream, *place.downstream)
    settled = row.state not in (WAITING, ENDED)
    yield strange.NOBODY, NewInstances(1, place.operator, NEW)
    yield from ((strange.NOBODY, Leaving(1, of)) for of in (place.operator, *place.upstream))
    for of in sides:
        yield strange.NOBODY, NewInstances(1, of, (one.name,))
        if settled:
            yield strange.NOBODY, NewInstances(1, of, NEW)
    for peer, of in {**row.ups, **row.downs}.items():
        yield peer, NewInstances(LATER, of, (peer,))
        last = row.heard.get(peer, 0)
        if last:
            yield peer, NewInstances(last, of, NEW)
            yield from ((peer, Leaving(last, of)) for side in place.downstream if side == of)
        if settled:
            yield from ((peer, NewInstances(LATER, other, NEW)) for other in sides if other != of)
            yield from ((peer, Leaving(LATER, other)) for other in place.downstream if other != of)


def answered(step: Taken) -> bool:
    """Whether an announcement that was not refused is answered with its number, to who made it."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, NewInstances | Leaving):
        return True
    if any(isinstance(effect, Refuse) for effect in step.effects):
        return True
    return step.effects == (Send(step.input.sender, Heard(step.input.message.number)),)


def taken_up(step: Taken) -> bool:
    """Whether a core that is free, and has what it is told to end, sets about it."""
    if not isinstance(step.input, Shrink) or not _is_core(step.before):
        return True
    free = step.before.wish == 0 and bool(step.before.children)
    return not free or step.after.wish < 0


STEPS: dict[str, StepClaim] = {
    "an announcement is answered with its number, to who made it": answered,
    "a core that is free ends what it made when it is told to": taken_up,
}
