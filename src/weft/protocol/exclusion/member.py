"""A member of a group, when groups exclude one another and members of one group may be inside together.

Every two members of groups in conflict share one fork (Chandy and Misra 1984); who holds all of its forks may be
inside, so safety needs no more than that a fork is in one place. Who goes first is said by stamps (Ricart and Agrawala
1981), and a whole group gets inside together by 2-FGME's idea (Decentral §5.2.2) of letting others of a group follow:

1. An idle member gives a fork to whoever asks. One inside gives it when it leaves. It keeps what nobody asks for.
2. One that asks gives way to requests before its own. The fork takes its own request along, so it need not ask again.
3. Giving way opens its door: until the first fork comes back, whoever asks is let pass, later requests too. It could
   not enter before then anyway. Such a fork is *lent*: the borrower may keep it until it has been inside.
4. A door opens once per request, so nobody can be kept giving way.
5. As soon as a member makes someone wait, it shuts its door and calls back what it lent and is not yet used. Else
   members could wait for one another in a circle: so one that lends makes nobody wait, and one that makes others wait
   has only stamps to go by.

Rules 4 and 5 are the cure for ask-again storms: of two requests, the earlier lends to the later at most once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from weft.protocol.exclusion.words import AskFork, Enter, Entered, Exit, GiveFork, Refuse
from weft.protocol.machine import Effect, Machine, Received, Row, Send, Step, Steps

IDLE, ASKING, INSIDE = "idle", "asking", "inside"
STATES = (IDLE, ASKING, INSIDE)
KEPT, GIVEN, LENT, CALLED = 0, 1, 2, 3
"""Of a fork: not given away during this request; given to one who goes first; lent; lent and called back."""


class Fork(msgspec.Struct, array_like=True):
    """The fork shared with a competitor; `wants` is the stamp of a request that waits here, 0 for none."""

    held: bool
    handovers: int = 0
    wants: int = 0
    patient: bool = False
    """The request that waits is of one who lent the fork, and waits until this member has been inside."""
    away: int = KEPT


class Standing(Row, array_like=True):
    """How a member is doing; `stamp` is that of its request."""

    state: str = IDLE
    clock: int = 0
    stamp: int = 0
    door: str = "shut"
    """Shut, open, or used: it has been open during this request."""
    forks: dict[str, Fork] = msgspec.field(default_factory=dict)


class Member(Machine):
    """One member of `group`; `competitors` are the members of all groups in conflict with it, with their groups."""

    __slots__ = ("competitors", "group")
    ROW = Standing
    STEPS: ClassVar[Steps]

    def __init__(self, name: str, group: str, competitors: Mapping[str, str]) -> None:
        super().__init__(name)
        assert group not in competitors.values(), f"group {group} is not in conflict with itself"
        self.group, self.competitors = group, dict(sorted(competitors.items()))
        # Any one rule both ends agree on says who holds a fork first.
        forks = {peer: Fork(group < other) for peer, other in self.competitors.items()}
        self.rows[name] = Standing(forks=forks)

    def key(self, input: Any) -> str:
        """All inputs are about the member itself."""
        return self.name

    @property
    def state(self) -> str:
        """Idle, asking or inside."""
        state: str = self.rows[self.name].state
        return state

    def late(self, key: str, row: Standing, input: Any) -> list[Effect] | None:
        """A message that does not fit is refused; one that was passed by the fork on its way says nothing new."""
        if not isinstance(input, Received):
            return None
        why = self.misfit(row, input.sender, input.message)
        if why:
            return [Refuse(input.sender, type(input.message).__name__, why)]
        fork = row.forks[input.sender]
        return [] if isinstance(input.message, AskFork) and input.message.handovers < fork.handovers else None

    def misfit(self, row: Standing, sender: str, message: Any) -> str:
        """Why a message cannot be meant; empty where it can."""
        fork = row.forks.get(sender)
        if fork is None:
            return "it comes from no competitor"
        if isinstance(message, GiveFork):
            if fork.held:
                return "the fork is here already"
            if message.handovers != fork.handovers + 1:
                return f"the fork has changed hands {fork.handovers} times"
            return "" if row.state == ASKING else "the fork was not asked for"
        if not isinstance(message, AskFork):
            return "it is no message between members"
        if message.handovers > fork.handovers:
            return f"the fork has changed hands only {fork.handovers} times"
        if message.handovers < fork.handovers:
            return ""
        if not fork.held:
            return "the fork is where it is asked for"
        if fork.wants and (message.stamp != fork.wants or not fork.patient):
            return f"request {fork.wants} waits already"
        return ""

    def before(self, stamp: int, peer: str, row: Standing) -> bool:
        """Whether a competitor's request goes first; equal stamps are told apart by group, never by member."""
        return (stamp, self.competitors[peer]) < (row.stamp, self.group)

    def on_enter(self, key: str, row: Standing, input: Enter) -> list[Effect]:
        """Asks for the forks it lacks."""
        row.clock += 1
        row.state, row.stamp, row.door = ASKING, row.clock, "shut"
        lacking = [(peer, fork) for peer, fork in row.forks.items() if not fork.held]
        asked: list[Effect] = [Send(peer, AskFork(row.stamp, fork.handovers)) for peer, fork in lacking]
        return asked + self.entered(row)

    def on_ask(self, key: str, row: Standing, input: Received) -> list[Effect]:
        """Gives the fork, or lets the request wait."""
        fork = row.forks[input.sender]
        stamp: int = input.message.stamp  # type: ignore[attr-defined]
        row.clock = max(row.clock, stamp)
        fork.wants, fork.patient = stamp, False
        match row.state:
            case "idle":
                return [self.give(input.sender, row)]
            case "asking":
                return self.decide(input.sender, row)
        return []

    def on_give(self, key: str, row: Standing, input: Received) -> list[Effect]:
        """Takes the fork; one that comes back shuts the door."""
        fork, message = row.forks[input.sender], input.message
        stamp: int = message.stamp  # type: ignore[attr-defined]
        fork.held, fork.handovers, fork.wants = True, fork.handovers + 1, stamp
        row.clock = max(row.clock, stamp)
        if fork.away != KEPT and row.door == "open":
            row.door = "used"
        fork.away = KEPT
        # Who goes first and gives a fork all the same has lent it.
        fork.patient = stamp > 0 and self.before(stamp, input.sender, row)
        waits = self.call_back(row) if stamp and not fork.patient else []
        return waits + self.entered(row)

    def on_exit(self, key: str, row: Standing, input: Exit) -> list[Effect]:
        """Gives every fork that is waited for."""
        row.state, row.stamp = IDLE, 0
        return [self.give(peer, row) for peer, fork in row.forks.items() if fork.wants]

    def decide(self, peer: str, row: Standing) -> list[Effect]:
        """One that asks itself gives way, lets pass, or makes wait."""
        if self.before(row.forks[peer].wants, peer, row):
            given = [self.give(peer, row, GIVEN)]
            return given + (self.open_door(row) if row.door == "shut" else [])
        if row.door == "open":
            return [self.give(peer, row, LENT)]
        return self.call_back(row)

    def open_door(self, row: Standing) -> list[Effect]:
        """Lets everyone pass who has been made to wait."""
        row.door = "open"
        waiting = [peer for peer, fork in row.forks.items() if fork.held and fork.wants and not fork.patient]
        return [self.give(peer, row, LENT) for peer in waiting]

    def call_back(self, row: Standing) -> list[Effect]:
        """Shuts the door and asks for what it lent, because someone is made to wait now."""
        if row.door == "open":
            row.door = "used"
        lent = [(peer, fork) for peer, fork in row.forks.items() if fork.away == LENT]
        for _, fork in lent:
            fork.away = CALLED
        return [Send(peer, AskFork(row.stamp, fork.handovers)) for peer, fork in lent]

    def give(self, peer: str, row: Standing, away: int = KEPT) -> Effect:
        """Hands a fork over, its own request with it."""
        fork = row.forks[peer]
        assert fork.held, "a fork is given by who holds it"
        assert row.state != INSIDE, "who is inside keeps its forks"
        fork.held, fork.handovers, fork.wants, fork.patient, fork.away = False, fork.handovers + 1, 0, False, away
        return Send(peer, GiveFork(fork.handovers, row.stamp))

    def entered(self, row: Standing) -> list[Effect]:
        """Goes inside where it holds every fork."""
        if not all(fork.held for fork in row.forks.values()):
            return []
        row.state = INSIDE
        return [Entered()]


Member.STEPS = {
    (IDLE, Enter): Step(Member.on_enter, (ASKING, INSIDE)),
    **{(state, AskFork): Step(Member.on_ask, (state,)) for state in STATES},
    (ASKING, GiveFork): Step(Member.on_give, (ASKING, INSIDE)),
    (INSIDE, Exit): Step(Member.on_exit, (IDLE,)),
}
