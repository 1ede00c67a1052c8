"""What sites do ahead of a start, in the worlds of a change: make ready, carry over, watch a channel drain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from weft.bodies.explorer.world import Choice
from weft.bodies.explorer.worlds.move_plan import CHANNEL, SIDE
from weft.bodies.explorer.worlds.move_words import BUSY, CARRIED, GATE, KEPT, Ahead, Checkpoint, Held
from weft.protocol import Effect
from weft.protocol.change_messages import after_of
from weft.protocol.moving import (
    CarriedOver,
    Carry,
    ChannelDrained,
    LetIn,
    NotCarriedOver,
    NotWarmed,
    Warm,
    Warmed,
)
from weft.protocol.words import Parcel

Ground = TypeVar("Ground", bound=Held)


def asked_ahead(plant: Ground, site: str, number: int, fragment: str, effect: Effect) -> Ground:
    """The ground after a site was asked for something ahead of a start."""
    where = (site, number, fragment)
    busy = any(one[0] == site and one[2] == fragment for one in plant.carrying) or any(
        one[0] == site and one[2] == fragment and not one.ready for one in plant.warm
    )
    fault = BUSY if busy else plant.fault
    match effect:
        case Warm():
            rest = (one for one in plant.warm if (one.site, one.fragment) != (site, fragment))
            return plant.but(warm=tuple(sorted((*rest, Ahead(*where)))), fault=fault)
        case Carry(ended=ended):
            return plant.but(carrying=tuple(sorted((*plant.carrying, Ahead(*where, ended)))), fault=fault)
        case LetIn(ended=ended):
            fits = any(one[:3] == where and one.ready for one in plant.warm)
            ends = [end.fragment for end in plant.case.change(plant.sites, number)[0]]
            return plant.but(fault=fault if fits and ended.fragment in ends else GATE)
    carried = tuple(one for one in plant.carried if one[:2] != (fragment, number))
    kept = number == plant.number and carried != plant.carried
    warm = tuple(one for one in plant.warm if (one.site, one.fragment) != (site, fragment))
    return plant.but(warm=warm, carried=carried, fault=KEPT if kept else fault)


def preparing(plant: Any) -> Iterator[Choice]:
    """What the body of a site may answer ahead of a start."""
    case = plant.case
    for one in plant.warm:
        site, number, fragment = one[:3]
        if one.ready:
            continue
        warmed = plant.but(warm=tuple(sorted((*_but(plant.warm, one), one._replace(ready=True)))))
        if number in case.impossible:
            yield Choice(site, NotWarmed(number, fragment, "it cannot run there", True), warmed)
            continue
        awaits = tuple(end.fragment for end in case.change(plant.sites, number)[0]) if case.early else ()
        yield Choice(site, Warmed(number, fragment, awaits), warmed)
        if case.soft:
            yield Choice(site, NotWarmed(number, fragment, "busy"), warmed, due=False)
    for one in plant.carrying:
        site, number, fragment, ended = one[:4]
        done = plant.but(carrying=_but(plant.carrying, one))
        if number in case.impossible:
            never = NotCarriedOver(number, fragment, after_of(ended), "it cannot run there")
            yield Choice(site, never, done)
            continue
        yield Choice(site, CarriedOver(number, fragment, after_of(ended), Parcel(fragment)), carry(done, one))
        if plant.undecided_left:
            full = done.but(undecided_left=plant.undecided_left - 1)
            refused = NotCarriedOver(number, fragment, after_of(ended), "the disk is full")
            yield Choice(site, refused, full, due=False)
    for drain in plant.drains:
        checkpoint = dict(plant.checkpoints).get(drain[3], Checkpoint())
        if drain[2] == SIDE or (checkpoint.taken == len(plant.channel) and not checkpoint.half):
            yield Choice(drain[0], ChannelDrained(*drain[1:]), plant.but(drains=_but(plant.drains, drain)))


def carry(plant: Ground, one: Ahead) -> Ground:
    """It is on disk where a fragment to come goes on; said again, for the same ends, nothing is written again."""
    _, number, fragment, ended, _ = one
    again = (fragment, number, after_of(ended))
    if any(held[:3] == again for held in plant.carried):
        return plant
    if number <= plant.number:
        return plant.but(fault=KEPT)
    fault = plant.fault
    if any(told.stands != Parcel(f"{told.fragment} {told.epoch}") for told in ended):
        fault = CARRIED
    rest = (held for held in plant.carried if held[0] != fragment)
    written = (*again, goes_on(plant, number, fragment))
    return plant.but(carried=tuple(sorted((*rest, written))), fault=fault)


def goes_on(plant: Held, number: int, fragment: str) -> Checkpoint:
    """Where a fragment that a change starts goes on, from how those stand that it ends."""
    old, held = plant.plan, dict(plant.checkpoints)
    new = plant.case.cut(plant.case.after(plant.sites, number))[fragment]
    taken, state = len(plant.channel) if new.reads == CHANNEL else 0, 0
    for end in plant.case.change(plant.sites, number)[0]:
        checkpoint = held[end.fragment]
        taken = checkpoint.taken if old[end.fragment].reads == new.reads else taken
        state = checkpoint.state if "2" in old[end.fragment].operators else state
    return Checkpoint(taken, False, state if "2" in new.operators else 0)


def _but(those: tuple[Any, ...], one: Any) -> tuple[Any, ...]:
    return tuple(other for other in those if other != one)
