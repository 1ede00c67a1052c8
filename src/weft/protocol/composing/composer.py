"""The composer of a site: finds out for a query where it can run, and admits it or says what that would break.

After Synergy's composition (§2.3.1, steps 1, 4 and 5; fallbacks S15):
1. Asks the directory, once for an attempt, who makes streams of the query already and who has its operators; then sends
   the first probes, to those who make what can be shared, nearest to the results, and to those who can read sources.
2. When all have answered, merges ways into whole graphs and takes the one that keeps the weightiest level (B7), of
   these the one of least phi. Confirms every piece of it, each with its share of the promise; where a site cannot any
   more, the next graph is tried.
3. Where none can: again without sharing; then a whole new graph at sites with room; then once more without a promise
   and without reserving, to learn the nearest promise that could be kept; and the query is refused with the reason.
4. A query is admitted once every piece is confirmed. That is written down before anybody is told to run it, so a piece
   that asks later is told yes; about an attempt that is not written down, the answer is no.
5. An admitted query leaves from its results back; what others lean on stays, with all before it, until they are gone.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.plan.composing.graphs import assured, divided, merged, ranked, worth_keeping
from weft.plan.composing.points import joins, needed, results, sharable
from weft.plan.composing.refusing import why_refused
from weft.plan.composing.values import SILENCE, Broken, Graph
from weft.protocol.composing.asking import (
    CONFIRMING,
    FINDING,
    LEAVING,
    NEW,
    OVER,
    PROBING,
    RUNNING,
    Asking,
    ComposerLimits,
)
from weft.protocol.composing.branches import Branch, branch_on, branch_to, least_broken, shared_names
from weft.protocol.composing.words import (
    Admitted,
    Answer,
    Ask,
    Begin,
    Confirm,
    Confirmed,
    Decided,
    Depart,
    Find,
    Found,
    Free,
    Gone,
    Leave,
    Left,
    NotConfirmed,
    Note,
    Quest,
    Refused,
    Settle,
    Strike,
    Wanted,
)
from weft.protocol.machine import (
    CancelTimer,
    Effect,
    Input,
    Machine,
    Received,
    Row,
    Send,
    SetTimer,
    Step,
    Steps,
    TimerFired,
)

SHARED, ALONE, WHOLE, DRY, REFUSED = "shared", "alone", "whole", "dry", "refused"


class Composer(Machine):
    """Composes the queries that are asked for at one site."""

    __slots__ = ("count", "life", "limits", "network")
    ROW: ClassVar[type[Row]] = Asking
    STEPS: ClassVar[Steps]

    def __init__(self, name: str, network: Any, limits: ComposerLimits | None = None, life: int = 1,
                 decided: tuple[Decided, ...] = ()) -> None:  # fmt: skip
        super().__init__(name)
        self.network, self.limits, self.life, self.count = network, limits or ComposerLimits(), life, 0
        for one in decided:
            self.rows[one.request] = Asking(
                LEAVING if one.leaving else RUNNING, how=one.how, attempt=one.attempt, graph=one.graph,
                promised_us=one.promised_us, left=list(one.left),
            )  # fmt: skip

    def extra(self) -> Any:
        """How many attempts there have been, in which life."""
        return [self.life, self.count]

    def set_extra(self, extra: Any) -> None:
        """Takes them back."""
        self.life, self.count = extra

    def key(self, input: Any) -> str:
        """The query an input is about."""
        match input:
            case Received(message=message):
                attempt: str = message.attempt  # type: ignore[attr-defined]
                return attempt.rpartition("#")[0]
            case TimerFired(name=name):
                return name
            case Begin():
                return ""
        return str(input.request)

    def late(self, key: str, row: Asking, input: Any) -> list[Effect] | None:
        """A piece that asks is told; word of another attempt than the present one is passed over."""
        if isinstance(input, Received):
            message = input.message
            if isinstance(message, Wanted):
                return self.fate(row, input.sender, message)
            if message.attempt != row.attempt or (row.state, type(message)) not in self.STEPS:  # type: ignore[attr-defined]
                return []
        elif (row.state, type(input)) not in self.STEPS:
            return []
        return None

    def fate(self, row: Asking, sender: str, message: Wanted) -> list[Effect]:
        """What becomes of a piece that is confirmed and asks."""
        chosen = any((hop.piece, hop.site) == (message.piece, sender) for hop in row.graph.hops)
        if row.attempt == message.attempt and chosen and row.state in (RUNNING, LEAVING):
            return [Send(sender, Settle(message.attempt, message.piece))]
        under_way = row.attempt == message.attempt and row.state in (PROBING, CONFIRMING)
        return [] if under_way else [Send(sender, Free(message.attempt, message.piece))]

    def concluding(self) -> list[Effect]:
        """Forgets what is over."""
        for key in [key for key, row in self.rows.items() if row.state in (NEW, OVER)]:
            del self.rows[key]
        return []

    def on_begin(self, key: str, row: Asking, input: Begin) -> list[Effect]:
        """Goes on with queries that were to leave."""
        return [effect for name, one in sorted(self.rows.items()) if one.state == LEAVING
                for effect in self.go_on_leaving(name, one)]  # fmt: skip

    def on_ask(self, key: str, row: Asking, input: Ask) -> list[Effect]:
        """Asks the directory."""
        row.state, row.plan, row.levels = FINDING, input.plan, input.levels
        self.count += 1
        row.serial = self.count
        streams = tuple(dict.fromkeys(one.stream for one in input.plan.pieces if one.stream))
        does = tuple(dict.fromkeys(one.does for one in input.plan.pieces if one.does))
        find = Find(key, row.serial, streams if self.limits.shares else (), does)
        return [find, SetTimer(key, self.limits.find_ms)]

    def on_asked_again(self, key: str, row: Asking, input: Ask) -> list[Effect]:
        """It runs."""
        return [Admitted(key, row.promised_us, row.graph, row.how)]

    def on_found(self, key: str, row: Asking, input: Found) -> list[Effect]:
        """Looks for what can be shared, and begins."""
        if input.serial != row.serial:
            return []
        assert row.plan is not None
        row.instances, row.hosts, row.others = input.instances, input.hosts, input.others
        row.shared = sharable(row.plan, {one.stream for one in input.instances}) if self.limits.shares else ()
        return self.attempt(key, row, SHARED if row.shared else ALONE)

    def on_not_found(self, key: str, row: Asking, input: TimerFired) -> list[Effect]:
        """Without a directory nothing is known."""
        row.broken = [Broken(SILENCE, "", "")]
        return self.refuse(key, row, 0)

    def attempt(self, key: str, row: Asking, how: str) -> list[Effect]:
        """Probes anew, with what an attempt of this kind may use."""
        assert row.plan is not None
        plan, shares = row.plan, how == SHARED or (how == DRY and bool(row.shared))
        self.count += 1
        row.how, row.attempt = how, f"{key}#{self.life}.{self.count}"
        points = row.shared if shares else ()
        pieces = {piece.name: piece for piece in plan.pieces}
        lent = tuple((name, one) for name in points for one in row.instances if one.stream == pieces[name].stream)
        limit_us = 0 if how == DRY else max((level.latency_us for level in row.levels), default=0)
        row.quest = quest = Quest(
            row.attempt, self.name, plan, needed(plan, points), lent, () if how == WHOLE else row.hosts,
            row.others if self.limits.deploys else (), tuple(sorted(joins(plan))), limit_us, self.limits.ratio,
            self.limits.least, how == DRY,
        )  # fmt: skip
        row.state, row.touched, row.graphs, row.turn = PROBING, [], [], 0
        row.branches = self.starts(quest, points)
        effects: list[Effect] = []
        for branch in row.branches:
            effects += branch.ask(quest, 0, 0)
        if all(branch.over for branch in row.branches):
            return effects + self.choose(key, row)
        return [*effects, SetTimer(key, self.limits.hop_ms * (len(quest.takes) + 1))]

    def starts(self, quest: Quest, points: tuple[str, ...]) -> list[Branch]:
        """Where probing begins: at what is shared, and at what reads sources."""
        origins = {one.name: one.site for one in quest.plan.origins}
        to, shared = next((one.site for one in results(quest.plan)), ""), shared_names(quest)
        found: list[Branch] = []
        for piece in quest.plan.pieces:
            if piece.name in points:
                found.append(branch_on(quest, piece.name, self.network, to))
            elif piece.name in quest.takes:
                found += [branch_to(quest, piece, name, origins[name], self.network, shared)
                          for name in piece.inputs if name in origins]  # fmt: skip
        return found

    def on_answer(self, key: str, row: Asking, input: Any) -> list[Effect]:
        """One has answered; where a group cannot, the next is asked."""
        answer: Answer = input.message
        these = (one for one in row.branches if (one.piece, one.before) == (answer.piece, answer.before))
        branch = next(these, None)
        if branch is None or input.sender not in branch.pending:
            return []
        branch.hear(input.sender, answer)
        assert row.quest is not None
        if not branch.pending and not branch.over:
            return branch.ask(row.quest, 0, 0)
        return self.choose(key, row) if all(one.over for one in row.branches) else []

    def on_silence(self, key: str, row: Asking, input: TimerFired) -> list[Effect]:
        """It is not waited for any longer."""
        for branch in row.branches:
            branch.give_up()
        return self.choose(key, row)

    def choose(self, key: str, row: Asking) -> list[Effect]:
        """Merges what was found, and takes the best."""
        assert row.quest is not None
        graphs = merged([branch.graphs for branch in row.branches])
        row.touched = list(dict.fromkeys(one for branch in row.branches for one in branch.touched))
        row.broken = least_broken((*row.broken, *(one for branch in row.branches for one in branch.broken)))
        row.branches = []
        few = worth_keeping(graphs, frozenset(), self.limits.graphs)
        row.graphs = ranked(few, () if row.how == DRY else row.levels)
        if row.how == DRY:
            return self.refuse(key, row, min((graph.us for graph in few), default=0))
        return self.confirm(key, row)

    def confirm(self, key: str, row: Asking) -> list[Effect]:
        """Confirms the next graph; where there is none, the next kind of attempt is made."""
        if row.turn >= len(row.graphs):
            return self.fall_back(key, row)
        level, row.graph = row.graphs[row.turn]
        row.turn += 1
        row.state, row.tries, row.promised_us = CONFIRMING, 1, level.latency_us if level is not None else 0
        row.waiting = list(dict.fromkeys(hop.piece for hop in row.graph.hops))
        return [*self.confirms(row), SetTimer(key, self.limits.confirm_ms)]

    def bounds(self, graph: Graph, limit_us: int) -> dict[str, int]:
        """What each operator may take of the promise."""
        return divided(graph, limit_us)

    def confirms(self, row: Asking) -> list[Effect]:
        """Says to every piece that has not answered what it may take."""
        assert row.plan is not None
        bounds = self.bounds(row.graph, row.promised_us) if row.promised_us else {}
        by_us = assured(row.graph, bounds) if row.promised_us else {}
        sites = {one.name: one.site for one in row.plan.origins} | {hop.piece: hop.site for hop in row.graph.hops}
        effects: list[Effect] = []
        for piece in row.waiting:
            hops = [hop for hop in row.graph.hops if hop.piece == piece]
            feeds = tuple((hop.before, sites.get(hop.before, "")) for hop in hops)
            told = Confirm(row.attempt, piece, feeds, bounds.get(piece, 0), by_us.get(piece, 0), row.turn)
            effects.append(Send(hops[0].site, told))
        return effects

    def on_confirmed(self, key: str, row: Asking, input: Any) -> list[Effect]:
        """When all are, it is admitted."""
        message: Confirmed = input.message
        if message.turn != row.turn or message.piece not in row.waiting:
            return []
        row.waiting.remove(message.piece)
        return [] if row.waiting else self.admit(key, row)

    def on_not_confirmed(self, key: str, row: Asking, input: Any) -> list[Effect]:
        """Another graph, then."""
        message: NotConfirmed = input.message
        if message.turn != row.turn:
            return []
        row.broken = least_broken((*row.broken, message.broken))
        return self.confirm(key, row)

    def on_unconfirmed(self, key: str, row: Asking, input: TimerFired) -> list[Effect]:
        """Says it again, and then takes another graph."""
        if row.tries < self.limits.tries:
            row.tries += 1
            return [*self.confirms(row), SetTimer(key, self.limits.confirm_ms)]
        sites = {hop.piece: hop.site for hop in row.graph.hops}
        row.broken = least_broken((*row.broken, *(Broken(SILENCE, sites[one], one) for one in row.waiting)))
        return self.confirm(key, row)

    def admit(self, key: str, row: Asking) -> list[Effect]:
        """Writes it down, lets it run, and releases all others."""
        row.state = RUNNING
        chosen = list(dict.fromkeys((hop.site, hop.piece) for hop in row.graph.hops))
        attempt = row.attempt
        effects: list[Effect] = [CancelTimer(key), Note(self.decided(key, row))]
        effects += [Send(site, Settle(attempt, piece)) for site, piece in chosen]
        effects += self.release(row, chosen)
        self.rest(row)
        return [*effects, Admitted(key, row.promised_us, row.graph, row.how)]

    def release(self, row: Asking, chosen: list[tuple[str, str]]) -> list[Effect]:
        """Frees what may be kept for an attempt and was not chosen."""
        return [Send(site, Free(row.attempt, piece)) for site, piece in row.touched if (site, piece) not in chosen]

    def rest(self, row: Asking) -> None:
        """Of a query that runs, no more is needed than where and for what."""
        row.plan, row.quest, row.instances, row.hosts, row.others = None, None, (), (), ()
        row.touched, row.graphs, row.broken, row.levels, row.shared, row.waiting = [], [], [], (), (), []
        row.serial = row.turn = row.tries = 0

    def fall_back(self, key: str, row: Asking) -> list[Effect]:
        """The next kind of attempt, in the published order."""
        effects: list[Effect] = [CancelTimer(key), *self.release(row, [])]
        after = {SHARED: ALONE, ALONE: WHOLE, WHOLE: DRY}
        how = after[row.how]
        if how == WHOLE and not self.limits.deploys:
            how = DRY
        if how == DRY and not (self.limits.tells and row.levels):
            return [*effects, *self.refuse(key, row, 0, released=True)]
        return [*effects, *self.attempt(key, row, how)]

    def refuse(self, key: str, row: Asking, nearest_us: int, released: bool = False) -> list[Effect]:
        """Says what would break, by how much, where, and what could be kept."""
        row.state = OVER
        effects: list[Effect] = [CancelTimer(key), *([] if released else self.release(row, []))]
        broken = next(iter(row.broken), Broken(SILENCE, "", ""))
        promised_us = max((level.latency_us for level in row.levels), default=0)
        return [*effects, Refused(key, why_refused(key, broken, promised_us, nearest_us), broken, nearest_us)]

    def on_depart(self, key: str, row: Asking, input: Depart) -> list[Effect]:
        """Leaves from its results back."""
        row.state, row.left = LEAVING, list(dict.fromkeys(hop.piece for hop in row.graph.hops))
        return self.go_on_leaving(key, row)

    def go_on_leaving(self, key: str, row: Asking) -> list[Effect]:
        """Asks those to end that nobody of this query reads any more."""
        if not row.left:
            row.state = OVER
            return [CancelTimer(key), Strike(key), Gone(key)]
        read = {hop.before for hop in row.graph.hops if hop.piece in row.left}
        last = [piece for piece in row.left if piece not in read]
        sites = {hop.piece: hop.site for hop in row.graph.hops}
        asks = [Send(sites[piece], Leave(row.attempt, piece)) for piece in last]
        return [Note(self.decided(key, row)), *asks, SetTimer(key, self.limits.leave_ms)]

    def on_left(self, key: str, row: Asking, input: Any) -> list[Effect]:
        """One has ended: those before it may."""
        message: Left = input.message
        if message.kept or message.piece not in row.left:
            return []
        row.left.remove(message.piece)
        return self.go_on_leaving(key, row)

    def on_ask_leaving(self, key: str, row: Asking, input: TimerFired) -> list[Effect]:
        """Asks again; what others lean on answers again that they do."""
        return self.go_on_leaving(key, row)

    def decided(self, key: str, row: Asking) -> Decided:
        """What must not be forgotten of a query."""
        leaving = row.state == LEAVING
        return Decided(key, row.attempt, row.promised_us, row.how, row.graph, tuple(row.left), leaving)

    def ignore(self, key: str, row: Asking, input: Input) -> list[Effect]:
        """It is under way."""
        return []


_NEXT = (PROBING, CONFIRMING, RUNNING, OVER)
Composer.STEPS = {
    (NEW, Begin): Step(Composer.on_begin, (NEW,)),
    (NEW, Ask): Step(Composer.on_ask, (FINDING,)),
    **{(state, Ask): Step(Composer.ignore, (state,)) for state in (FINDING, PROBING, CONFIRMING, LEAVING)},
    (RUNNING, Ask): Step(Composer.on_asked_again, (RUNNING,)),
    (FINDING, Found): Step(Composer.on_found, (FINDING, *_NEXT)),
    (FINDING, TimerFired): Step(Composer.on_not_found, (OVER,)),
    (PROBING, Answer): Step(Composer.on_answer, _NEXT),
    (PROBING, TimerFired): Step(Composer.on_silence, _NEXT),
    (CONFIRMING, Confirmed): Step(Composer.on_confirmed, _NEXT),
    (CONFIRMING, NotConfirmed): Step(Composer.on_not_confirmed, _NEXT),
    (CONFIRMING, TimerFired): Step(Composer.on_unconfirmed, _NEXT),
    (RUNNING, Depart): Step(Composer.on_depart, (LEAVING, OVER)),
    (LEAVING, Left): Step(Composer.on_left, (LEAVING, OVER)),
    (LEAVING, TimerFired): Step(Composer.on_ask_leaving, (LEAVING, OVER)),
}
