"""An instance of an operator that grows and shrinks together with its neighbours (Decentral §3.3.2, corrected).

Scale-out: make instances, tell all neighbours, and start the new ones when all have heard, with the neighbours known
by then. Scale-in: tell everyone upstream, drain when all have heard, say bye downstream, end. Any number of neighbours
may do either at the same time. Against the printed form (Algorithms 4-10):

1. Which side a message comes from is read from the operator it names, so one that waits to be started learns of
   neighbours too, and merges what it heard with what it is started with.
2. An instance has one operation of its own at a time. Acks are kept as a set, for one numbered operation.
3. An upstream neighbour is forgotten only at its bye, which follows its last record; a downstream one as soon as it
   leaves. So whoever may still send a record is always asked, and nothing is sent to one that drains.
4. Who has ended still answers announcements: its bye went before the answer.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.protocol.exclusion.words import Refuse
from weft.protocol.machine import Effect, Received, Row, Send, Step, Steps
from weft.protocol.scaling.any_instance import ACTIVE, WAITING, AnyInstance
from weft.protocol.scaling.words import (
    Activated,
    Bye,
    Create,
    Drain,
    Drained,
    Ended,
    Grow,
    Heard,
    Leaving,
    NewInstances,
    Retire,
    Retired,
    Shrink,
    StartInstance,
)

GROWING, LEAVING, DRAINING, ENDED = "growing", "leaving", "draining", "ended"
STATES = (WAITING, ACTIVE, GROWING, LEAVING, DRAINING, ENDED)
SENDS = (ACTIVE, GROWING, LEAVING, DRAINING)
TAKES = (WAITING, ACTIVE, GROWING, LEAVING)


class Running(Row, array_like=True):
    """What an instance knows: neighbours with their operators, and its operation under way."""

    state: str = WAITING
    ups: dict[str, str] = msgspec.field(default_factory=dict)
    downs: dict[str, str] = msgspec.field(default_factory=dict)
    gone: list[str] = msgspec.field(default_factory=list)
    """Of one that waits: who left before it was started."""
    number: int = 0
    awaits: list[str] = msgspec.field(default_factory=list)
    children: list[str] = msgspec.field(default_factory=list)
    born: int = 0
    heard: dict[str, int] = msgspec.field(default_factory=dict)
    """The last announcement heard from each neighbour."""
    owner: str = ""
    """Who wants it to end and waits for that."""


class Instance(AnyInstance):
    """One instance; one made by another starts with no neighbours and waits."""

    __slots__ = ()
    ROW = Running
    STEPS: ClassVar[Steps]

    def late(self, key: str, row: Running, input: Any) -> list[Effect] | None:
        """A message that does not fit is refused, and changes nothing."""
        if not isinstance(input, Received):
            return None
        why = self.misfit(row, input.sender, input.message)
        return [Refuse(input.sender, type(input.message).__name__, why)] if why else None

    def misfit(self, row: Running, sender: str, message: Any) -> str:
        """Why a message cannot be meant; empty where it can."""
        match message:
            case NewInstances():
                if {sender, self.name} & {*message.instances}:
                    return "not all of these are new"
                sides = (*self.place.upstream, *self.place.downstream)
                return self.unannounced(row, sender, message, sides)
            case Leaving():
                return self.unannounced(row, sender, message, self.place.downstream)
            case Heard():
                expected = sender in row.awaits and message.number == row.number
                return "" if expected else "nothing is awaited of it"
            case Retire():
                fits = row.state == ACTIVE and self.name.startswith(f"{sender}.")
                return "" if fits else "only who made it ends it, while it is active"
            case StartInstance():
                if row.state != WAITING or not self.name.startswith(f"{sender}."):
                    return "it was started before" if row.state != WAITING else "only who made it starts it"
                fits = all(of in self.place.upstream for _, of in message.ups)
                fits = fits and all(of in self.place.downstream for _, of in message.downs)
                return "" if fits else "not all of these are neighbours"
            case Bye():
                # One may hear the bye of a neighbour that was gone before it was started.
                up = message.operator in self.place.upstream
                return "" if up else f"{message.operator} is not upstream of {self.place.operator}"
        return "it is no message between instances"

    def unannounced(self, row: Running, sender: str, message: Any, sides: tuple[str, ...]) -> str:
        """Why an announcement cannot be meant; who waits or has ended need not know who it comes from, nor need one
        that was started without a neighbour that leaves."""
        if message.operator not in sides:
            return f"{message.operator} has nothing to announce to {self.place.operator}"
        known = {**row.ups, **row.downs}.get(sender, message.operator if isinstance(message, Leaving) else "")
        if row.state not in (WAITING, ENDED) and known != message.operator:
            return "it comes from no neighbour"
        last = row.heard.get(sender, 0)
        return f"announcement {last} was heard before" if message.number <= last else ""

    def on_grow(self, key: str, row: Running, input: Grow) -> list[Effect]:
        """Makes instances and tells all neighbours (Algorithm 4)."""
        row.state = GROWING
        row.children = [f"{self.name}.{row.born + at}" for at in range(1, input.copies + 1)]
        row.born += input.copies
        made: list[Effect] = [Create(child) for child in row.children]
        number = row.number + 1
        said = NewInstances(number, self.place.operator, tuple(row.children))
        return made + self.announce(row, said, sorted({**row.ups, **row.downs}))

    def on_shrink(self, key: str, row: Running, input: Shrink) -> list[Effect]:
        """Tells everyone upstream, unless it is the keeper (Algorithms 8 and 11)."""
        if self.keeper:
            return []
        row.state = LEAVING
        return self.announce(row, Leaving(row.number + 1, self.place.operator), sorted(row.ups))

    def on_retire(self, key: str, row: Running, input: Received) -> list[Effect]:
        """Ends as who made it wants."""
        row.owner = input.sender
        return self.on_shrink(key, row, Shrink())

    def announce(self, row: Running, said: NewInstances | Leaving, peers: list[str]) -> list[Effect]:
        """Says something to neighbours, and waits until all have heard it."""
        row.number, row.awaits = said.number, peers
        return [Send(peer, said) for peer in peers] if peers else self.complete(row)

    def on_new(self, key: str, row: Running, input: Received) -> list[Effect]:
        """Takes in new neighbours (Algorithm 5); one that has ended only answers."""
        message = input.message
        assert isinstance(message, NewInstances)
        if row.state != ENDED:
            side = row.ups if message.operator in self.place.upstream else row.downs
            side.update(dict.fromkeys(message.instances, message.operator))
        return self.hear(row, input.sender, message.number)

    def on_leaving(self, key: str, row: Running, input: Received) -> list[Effect]:
        """Sends no more records there (Algorithm 9)."""
        assert isinstance(input.message, Leaving)
        row.downs.pop(input.sender, None)
        self.note_gone(row, input.sender)
        return self.hear(row, input.sender, input.message.number)

    def on_bye(self, key: str, row: Running, input: Received) -> list[Effect]:
        """Forgets one upstream that sends no more."""
        row.ups.pop(input.sender, None)
        self.note_gone(row, input.sender)
        return []

    def note_gone(self, row: Running, peer: str) -> None:
        """One that waits must not take up again what it will be started with."""
        if row.state == WAITING:
            row.gone = sorted({*row.gone, peer})

    def hear(self, row: Running, peer: str, number: int) -> list[Effect]:
        """Answers an announcement."""
        if row.state != ENDED:
            row.heard[peer] = number
        return [Send(peer, Heard(number))]

    def on_heard(self, key: str, row: Running, input: Received) -> list[Effect]:
        """When all have heard, the operation goes on (Algorithms 6 and 10)."""
        row.awaits = [name for name in row.awaits if name != input.sender]
        return [] if row.awaits else self.complete(row)

    def complete(self, row: Running) -> list[Effect]:
        """Starts the new instances, or drains."""
        if row.state == LEAVING:
            row.state = DRAINING
            return [Drain()]
        children, row.children, row.state = row.children, [], ACTIVE
        start = StartInstance(tuple(sorted(row.ups.items())), tuple(sorted(row.downs.items())))
        return [Send(child, start) for child in children]

    def on_start(self, key: str, row: Running, input: Received) -> list[Effect]:
        """Joins what it was started with and what it heard meanwhile (Algorithm 7)."""
        message = input.message
        assert isinstance(message, StartInstance)
        row.ups = {name: of for name, of in {**dict(message.ups), **row.ups}.items() if name not in row.gone}
        row.downs = {name: of for name, of in {**dict(message.downs), **row.downs}.items() if name not in row.gone}
        row.state, row.gone = ACTIVE, []
        return [Activated()]

    def on_drained(self, key: str, row: Running, input: Drained) -> list[Effect]:
        """Says bye to everyone downstream, and ends (Algorithm 10)."""
        byes: list[Effect] = [Send(peer, Bye(self.place.operator)) for peer in sorted(row.downs)]
        if row.owner:
            byes.append(Send(row.owner, Retired()))
        row.state, row.ups, row.downs, row.heard = ENDED, {}, {}, {}
        return [*byes, Ended()]

    def ignore(self, key: str, row: Running, input: Any) -> list[Effect]:
        """One operation at a time: the next period decides anew."""
        return []


Instance.STEPS = {
    (ACTIVE, Grow): Step(Instance.on_grow, (GROWING, ACTIVE)),
    (ACTIVE, Shrink): Step(Instance.on_shrink, (ACTIVE, LEAVING, DRAINING)),
    (ACTIVE, Retire): Step(Instance.on_retire, (LEAVING, DRAINING)),
    **{(s, wish): Step(Instance.ignore, (s,)) for s in STATES if s != ACTIVE for wish in (Grow, Shrink)},
    **{(state, NewInstances): Step(Instance.on_new, (state,)) for state in STATES},
    **{(state, Leaving): Step(Instance.on_leaving, (state,)) for state in STATES},
    **{(state, Bye): Step(Instance.on_bye, (state,)) for state in STATES},
    (WAITING, StartInstance): Step(Instance.on_start, (ACTIVE,)),
    (GROWING, Heard): Step(Instance.on_heard, (GROWING, ACTIVE)),
    (LEAVING, Heard): Step(Instance.on_heard, (LEAVING, DRAINING)),
    (DRAINING, Drained): Step(Instance.on_drained, (ENDED,)),
}
