"""The keeper of a site: says what its site can do for a query, keeps that while it is asked for, and holds what runs.

After Synergy's probing (§2.3.1, steps 2 and 3; §2.3.2), in a form in which every probe is answered:
1. A probe is checked three ways: is there room on the site and on the stream's way; is it in time so far; does what
   runs here keep its time. What passes is reserved, once for each piece of an attempt, and asked on.
2. An answer says which ways there are from here to the results, or why there is none, and where something is kept. So
   who asks knows when all is said, whom to release, and what a refused query would have broken. A piece that is asked
   for by several is looked into once, and again only for one that comes sooner where time was too short.
3. Each running operator has its own share of its query's promise (`divided`), so that this site alone can say whether
   it is kept; a site never takes what would use up more. Confirming is checked again with what came since.
4. What is reserved ends by itself. What is confirmed asks its composer, until that says yes or no; it outlives a crash.
5. What others lean on goes on when its query leaves, and ends with the last of them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.plan.composing.graphs import extended, merged, worth_keeping
from weft.plan.composing.values import GONE, LATENCY, Broken, Graph, Hop
from weft.protocol.composing.branches import branches_from, least_broken, piece_of
from weft.protocol.composing.room import (
    ABSENT,
    BARREN,
    CONFIRMED,
    HELD,
    PROBING,
    RESERVED,
    STATES,
    Feed,
    Room,
    Spot,
    key_of,
)
from weft.protocol.composing.words import (
    Answer,
    Begin,
    Confirm,
    Confirmed,
    Forget,
    Free,
    Kept,
    Leave,
    Left,
    NotConfirmed,
    Probe,
    Remember,
    Run,
    Settle,
    Wanted,
)
from weft.protocol.machine import CancelTimer, Effect, Input, Received, Send, SetTimer, Step, Steps, TimerFired


class KeeperLimits(msgspec.Struct, frozen=True):
    """How long is waited: for answers, by each piece that is still to come; reserved; and before asking again."""

    hop_ms: int = 2_000
    keep_ms: int = 30_000
    ask_ms: int = 10_000
    few: int = 4


class Keeper(Room):
    """Keeps what one site has."""

    __slots__ = ("limits",)
    STEPS: ClassVar[Steps]

    def __init__(self, name: str, capacity: int, network: Any, limits: KeeperLimits | None = None,
                 kept: tuple[Kept, ...] = ()) -> None:  # fmt: skip
        super().__init__(name, capacity, network, kept)
        self.limits = limits or KeeperLimits()

    def key(self, input: Any) -> str:
        """The piece of an attempt that an input is about."""
        match input:
            case Received(message=Probe(quest=quest, piece=piece)):
                return key_of(quest.attempt, piece)
            case Received(message=Answer(attempt=attempt, before=before)):
                return key_of(attempt, before)
            case Received(message=message):
                return key_of(message.attempt, message.piece)  # type: ignore[attr-defined]
            case TimerFired(name=name):
                return name
        return ""

    def late(self, key: str, row: Spot, input: Any) -> list[Effect] | None:
        """What is said of something that is not, or no longer, so is passed over."""
        if isinstance(input, Received):
            message = input.message
            if isinstance(message, Probe):
                return [] if piece_of(message.quest, message.piece) is None else None
            return None if (row.state, type(message)) in self.STEPS else []
        return [] if isinstance(input, TimerFired) and row.state in (ABSENT, HELD) else None

    def concluding(self) -> list[Effect]:
        """Forgets what is not there; ends what was to leave and nobody leans on any more."""
        effects: list[Effect] = []
        while self.loosed:
            key = self.loosed.pop()
            row = self.rows.get(key)
            if row is not None and row.state == HELD and row.leaving and not self.leaners(key):
                effects += [*self.end(key, row), Send(row.owner, Left(row.attempt, row.piece))]
        for key in self.ended:
            row = self.rows.get(key)
            if row is not None and row.state == ABSENT:
                del self.rows[key]
        self.ended.clear()
        return effects

    def on_begin(self, key: str, row: Spot, input: Begin) -> list[Effect]:
        """Runs what it holds again, and asks about what was confirmed and not settled."""
        self.ended.append(key)
        effects: list[Effect] = []
        for name, spot in sorted(self.rows.items()):
            if spot.state == CONFIRMED:
                effects.append(SetTimer(name, self.limits.ask_ms))
            elif spot.state == HELD and not spot.leans:
                effects.append(Run(self.instance(name, spot), spot.load))
        return effects

    def on_probe(self, key: str, row: Spot, input: Any) -> list[Effect]:
        """The three checks; then it is asked on, or answered."""
        probe: Probe = input.message
        new = row.state == ABSENT
        broken = self.enter(key, row, probe.quest, probe.piece) if new else None
        feed = None if broken else self.connect(row, probe)
        broken = broken or (feed if isinstance(feed, Broken) else None)
        if broken is None:
            assert isinstance(feed, Feed)
            so_far_us = probe.so_far_us + feed.link_us + row.exec_us
            limit_us = probe.quest.limit_us
            if not limit_us or so_far_us <= limit_us:
                return self.accept(key, row, input.sender, probe, feed, so_far_us)
            broken = Broken(LATENCY, self.name, probe.piece, so_far_us - limit_us, limit_us)
        if new:
            self.empty(key, row)
        answer = Answer(probe.quest.attempt, probe.piece, probe.before, probe.round,
                        touched=() if new else ((self.name, probe.piece),), broken=(broken,),
                        tight=broken.what == LATENCY)  # fmt: skip
        return [Send(input.sender, answer)]

    def accept(self, key: str, row: Spot, sender: str, probe: Probe, feed: Feed, so_far_us: int) -> list[Effect]:
        """A probe has passed: what it asked for is looked into, if it has not been for one that came as soon."""
        self.reserve(key, row, feed, probe)
        row.waits.append((sender, probe.before, feed.start, probe.round))
        sooner = so_far_us < row.least_us
        row.least_us = min(row.least_us, so_far_us)
        if row.state == PROBING:
            return []
        if row.state == ABSENT or (row.tight and sooner):
            return self.explore(key, row)
        return self.answers(row)

    def explore(self, key: str, row: Spot) -> list[Effect]:
        """Asks all who could read this piece's stream."""
        assert row.quest is not None
        full = self.take_again(row) if row.state == BARREN else None
        if full is not None:
            row.broken = [full]
            return self.answers(row)
        row.state, row.asked_us, row.round = PROBING, row.least_us, row.round + 1
        row.branches = branches_from(row.quest, row.piece, self.name, self.network)
        effects: list[Effect] = []
        for branch in row.branches:
            effects += branch.ask(row.quest, row.asked_us, row.round)
        if all(branch.over for branch in row.branches):
            return effects + self.finish(key, row)
        ahead = len(row.quest.takes) - row.quest.takes.index(row.piece)
        return [*effects, SetTimer(key, self.limits.hop_ms * ahead)]

    def on_answer(self, key: str, row: Spot, input: Any) -> list[Effect]:
        """One has answered; where a group cannot, the next is asked."""
        answer: Answer = input.message
        branch = next((one for one in row.branches if one.piece == answer.piece), None)
        if branch is None or answer.round != row.round or input.sender not in branch.pending:
            return []
        branch.hear(input.sender, answer)
        if branch.pending:
            return []
        assert row.quest is not None
        if not branch.over:
            return branch.ask(row.quest, row.asked_us, row.round)
        return self.finish(key, row) if all(one.over for one in row.branches) else []

    def on_silence(self, key: str, row: Spot, input: TimerFired) -> list[Effect]:
        """It is not waited for any longer."""
        for branch in row.branches:
            branch.give_up()
        return self.finish(key, row)

    def finish(self, key: str, row: Spot) -> list[Effect]:
        """Answers all who asked, unless one of them came sooner and there was too little time for the others."""
        assert row.quest is not None
        row.tight = any(branch.tight for branch in row.branches)
        row.touched = list(dict.fromkeys([*row.touched, *(one for branch in row.branches for one in branch.touched)]))
        if row.tight and row.least_us < row.asked_us:
            return self.explore(key, row)
        below = merged([branch.graphs for branch in row.branches])
        row.below = worth_keeping(below, frozenset(row.quest.joins), self.limits.few)
        row.broken = least_broken(one for branch in row.branches for one in branch.broken)
        row.branches = []
        row.state = RESERVED if row.below else BARREN
        if row.state == BARREN:
            self.give_back(key, row)
        return [*self.answers(row), SetTimer(key, self.limits.keep_ms)]

    def answers(self, row: Spot) -> list[Effect]:
        """What is known from here on, to all who wait for it."""
        assert row.quest is not None
        limit_us = row.quest.limit_us
        effects: list[Effect] = []
        touched = ((self.name, row.piece), *row.touched)
        for sender, before, start, round in row.waits:
            graphs = []
            if row.below:
                feed = row.feed(before, start)
                hop = Hop(row.piece, self.name, before, row.exec_us, feed.link_us, row.own, feed.line, row.leans)
                graphs = [extended(hop, one) for one in row.below]
            late = [one for one in graphs if limit_us and one.us > limit_us]
            kept: list[Graph] = [one for one in graphs if one not in late] if late else graphs
            broken = () if kept else tuple(row.broken)
            effects.append(Send(sender, Answer(
                row.attempt, row.piece, before, round, tuple(kept), touched, broken, row.tight or bool(late)
            )))  # fmt: skip
        row.waits = []
        return effects

    def on_late_probe(self, key: str, row: Spot, input: Any) -> list[Effect]:
        """Of what is confirmed nothing more is told."""
        probe: Probe = input.message
        gone = (Broken(GONE, self.name, probe.piece),)
        return [Send(input.sender, Answer(row.attempt, probe.piece, probe.before, probe.round, broken=gone))]

    def on_expired(self, key: str, row: Spot, input: TimerFired) -> list[Effect]:
        """Nobody has confirmed it in time."""
        self.empty(key, row)
        return []

    def on_confirm(self, key: str, row: Spot, input: Any) -> list[Effect]:
        """Keeps what is reserved, if it is still to be had in that time."""
        asked: Confirm = input.message
        broken = self.wrong(row, asked)
        if broken is not None:
            return [Send(input.sender, NotConfirmed(asked.attempt, asked.piece, asked.turn, broken))]
        row.state, row.owner, row.chosen = CONFIRMED, input.sender, [*asked.feeds]
        row.by_us, row.waits, row.branches = asked.by_us, [], []
        self.bind(key, row, asked.bound_us)
        yes = Send(input.sender, Confirmed(asked.attempt, asked.piece, asked.turn))
        return [Remember(self.kept(row)), SetTimer(key, self.limits.ask_ms), yes]

    def on_not_there(self, key: str, row: Spot, input: Any) -> list[Effect]:
        """What is not reserved any more is not confirmed."""
        asked: Confirm = input.message
        self.ended.append(key)
        broken = Broken(GONE, self.name, asked.piece)
        return [Send(input.sender, NotConfirmed(asked.attempt, asked.piece, asked.turn, broken))]

    def on_settle(self, key: str, row: Spot, input: Any) -> list[Effect]:
        """It runs."""
        row.state = HELD
        self.keep_chosen(row)
        row.quest, row.below, row.broken, row.touched = None, [], [], []
        run: list[Effect] = [] if row.leans else [Run(self.instance(key, row), row.load)]
        return [CancelTimer(key), Remember(self.kept(row)), *run]

    def on_no_word(self, key: str, row: Spot, input: TimerFired) -> list[Effect]:
        """Asks until it is told."""
        return [Send(row.owner, Wanted(row.attempt, row.piece)), SetTimer(key, self.limits.ask_ms)]

    def on_free(self, key: str, row: Spot, input: Any) -> list[Effect]:
        """It is not wanted any more."""
        forget: list[Effect] = [Forget(row.attempt, row.piece)] if row.state == CONFIRMED else []
        self.empty(key, row)
        return [*forget, CancelTimer(key)]

    def on_leave(self, key: str, row: Spot, input: Any) -> list[Effect]:
        """Ends, unless others lean on it."""
        message: Leave = input.message
        row.owner = input.sender
        if self.leaners(key):
            row.leaving = True
            return [Remember(self.kept(row)), Send(input.sender, Left(message.attempt, message.piece, kept=True))]
        return [*self.end(key, row), Send(input.sender, Left(message.attempt, message.piece))]

    def on_left_already(self, key: str, row: Spot, input: Any) -> list[Effect]:
        """What is not there has ended."""
        self.ended.append(key)
        return [Send(input.sender, Left(input.message.attempt, input.message.piece))]

    def ignore(self, key: str, row: Spot, input: Input) -> list[Effect]:
        """It is so already."""
        return []


_HERE = (PROBING, RESERVED, BARREN)
Keeper.STEPS = {
    (ABSENT, Begin): Step(Keeper.on_begin, (ABSENT,)),
    **{(state, Probe): Step(Keeper.on_probe, (ABSENT, *_HERE)) for state in (ABSENT, *_HERE)},
    **{(state, Probe): Step(Keeper.on_late_probe, (state,)) for state in (CONFIRMED, HELD)},
    (PROBING, Answer): Step(Keeper.on_answer, _HERE),
    (PROBING, TimerFired): Step(Keeper.on_silence, _HERE),
    (RESERVED, TimerFired): Step(Keeper.on_expired, (ABSENT,)),
    (BARREN, TimerFired): Step(Keeper.on_expired, (ABSENT,)),
    (CONFIRMED, TimerFired): Step(Keeper.on_no_word, (CONFIRMED,)),
    **{(state, Confirm): Step(Keeper.on_confirm, (state, CONFIRMED)) for state in (PROBING, RESERVED, CONFIRMED)},
    **{(state, Confirm): Step(Keeper.on_not_there, (state,)) for state in (ABSENT, BARREN)},
    (CONFIRMED, Settle): Step(Keeper.on_settle, (HELD,)),
    **{(state, Free): Step(Keeper.on_free, (ABSENT,)) for state in (*_HERE, CONFIRMED)},
    (HELD, Leave): Step(Keeper.on_leave, (HELD, ABSENT)),
    (ABSENT, Leave): Step(Keeper.on_left_already, (ABSENT,)),
}
assert {state for state, _ in Keeper.STEPS} == {*STATES}
