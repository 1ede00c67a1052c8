"""What comes too late, or of another change or other ends, in the worlds of a change: it changes nothing.

Words come out of date where a desk or a site was lost in between, or where they were said again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from weft.bodies.explorer.world import Claim, View
from weft.bodies.explorer.worlds.hosting_strange import stale as of_other_epochs
from weft.bodies.explorer.worlds.move_words import DESK
from weft.bodies.explorer.worlds.strange import Stale
from weft.protocol import CancelTimer, Machine, Message, Received, Send
from weft.protocol.change_messages import (
    Carried,
    CarryOver,
    ChannelIsDrained,
    DiscardFragment,
    DrainChannel,
    EndedAt,
    FragmentDiscarded,
    FragmentPrepared,
    NotCarried,
    OpenGate,
    PrepareFragment,
    after_of,
)
from weft.protocol.moving import Carry, ChannelDrained, Cool, Drain, Warm, Warmed, era_of
from weft.protocol.words import Parcel

UNKNOWN = 99
NOBODY = EndedAt("nobody", 1)
ANEW = "what was done for other ends or another change is done anew"


def stale(machine: Any) -> Iterator[Stale]:
    """What a desk or a host may hear that is out of date, and what it says to that."""
    yield from of_other_epochs(machine)
    if hasattr(machine, "mover"):
        yield from to_desk(machine)
        return
    yield from to_agent(machine)
    for key, row in machine.preparer.rows.items():
        fragment = key.partition(" ")[2]
        yield from to_come(fragment, row) if key.startswith("start") else to_drain(fragment, row)
    yield Warmed(UNKNOWN, "nothing"), ()


def done_anew(machines: Callable[[], Mapping[str, Machine]], names: Iterable[str]) -> dict[str, Claim]:
    """A claim for each host: what was done for other ends, or for another change, is done anew when it is asked for."""
    scratch: dict[str, Any] = {}

    def does(name: str, view: View) -> bool:
        if not scratch:
            scratch.update(machines())
        machine, now = scratch[name], view.machine(name)
        before = now.snapshot()
        for key, row in now.preparer.rows.items():
            for asked, done in others(key, row):
                machine.restore(before)
                if [type(one) for one in machine.handle(Received(row.owner, asked))] != done:
                    return False
        return True

    return {f"{ANEW}: {name}": partial(does, name) for name in names}


def others(key: str, row: Any) -> Iterator[tuple[Message, list[Any]]]:
    """What is like that which was asked for, but not the same, and the effects that it must have."""
    which = key.partition(" ")[2]
    match row.state:
        case "draining":
            channel, _, fragment = which.partition(" ")
            after = (*row.after, ("nobody", 1))
            yield DrainChannel(row.number, channel, fragment, after), [Drain]
            yield DrainChannel(row.number + 1, channel, fragment, row.after), [Drain]
        case "ready":
            again = [CancelTimer, Cool, Warm]
            yield PrepareFragment(row.number + 1, which, row.task, row.ends), again
            yield PrepareFragment(row.number, which, Parcel("other"), row.ends), again
            yield PrepareFragment(row.number, which, row.task, (*row.ends, Parcel("other"))), again
            yield CarryOver(row.number, which, row.task), [CancelTimer, Carry]
            yield CarryOver(row.number + 1, which, row.task), [CancelTimer, Cool, Carry]
        case "carried":
            yield CarryOver(row.number, which, row.task, (NOBODY,)), [Carry]
            yield CarryOver(row.number + 1, which, row.task), [Carry]
            yield PrepareFragment(row.number + 1, which, row.task), [Warm]


def to_desk(desk: Any) -> Iterator[Stale]:
    """Answers for other ends than those that have ended, and of a change that nobody knows."""
    unknown = FragmentPrepared(UNKNOWN, "f1")
    yield Received("a", unknown), (Send("a", DiscardFragment(UNKNOWN, "f1")),)
    for row in desk.mover.rows.values():
        others = (*after_of(row.ended), ("nobody", 1))
        for fragment in row.awaits:
            yield Received("a", Carried(row.number, fragment, others, Parcel())), ()
            yield Received("a", NotCarried(row.number, fragment, others, "late")), ()
        for channel in row.drains:
            yield Received("a", ChannelIsDrained(row.number, channel, row.ends[row.asked].fragment, others)), ()


def to_agent(host: Any) -> Iterator[Stale]:
    """Words of the change that has started a fragment, when it runs already."""
    for fragment, row in host.agent.rows.items():
        if number := era_of(row.seen):
            words = (PrepareFragment(number, fragment), CarryOver(number, fragment), OpenGate(number, fragment, NOBODY))
            yield from ((Received(DESK, word), ()) for word in words)


def to_come(fragment: str, row: Any) -> Iterator[Stale]:
    """That an earlier change is off; gates of other changes and other ends; and the same, asked again."""
    earlier = row.number - 1
    answer = Send(row.owner, FragmentDiscarded(earlier, fragment))
    yield Received(row.owner, DiscardFragment(earlier, fragment)), (answer,)
    if row.state == "ready":
        yield Received(row.owner, OpenGate(row.number, fragment, NOBODY)), ()
        for name in row.awaits:
            yield Received(row.owner, OpenGate(row.number + 1, fragment, EndedAt(name, 1))), ()
    if row.state == "carried":
        yield Received(row.owner, PrepareFragment(row.number, fragment, row.task)), ()


def to_drain(which: str, row: Any) -> Iterator[Stale]:
    """That a channel was empty another time, and the same question again."""
    channel, _, fragment = which.partition(" ")
    yield ChannelDrained(row.number, channel, fragment, (*row.after, ("nobody", 1))), ()
    yield ChannelDrained(row.number + 1, channel, fragment, row.after), ()
    yield Received(row.owner, DrainChannel(row.number, channel, fragment, row.after)), ()
