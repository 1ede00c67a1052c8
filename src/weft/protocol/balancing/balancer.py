"""The balancer of a site in a tree: gives operators to its neighbours when overloaded, asks for some when underloaded.

After Kotsantis' negotiation (Neighbor §3, Listings 1-10), corrected:
1. A site keeps one row for each neighbour, and of each pair at most one negotiation is under way: so an operator and
   one that it reads never pass one another.
2. A site has one negotiation of its own at a time. While it has, it answers others with an explicit empty reply; only a
   demand that nothing was picked of yet gives way to an offer.
3. What is accepted is reserved, and what is lent is locked, until it is asked for, cleared or timed out; all count.
4. Of transfers that share an operator, one is chosen.
5. An operator is handed over only after it stopped. The giver writes down that it gives, says so until it is answered,
   and starts it again if it was not taken. The taker writes its answer down before it says it, and takes only what it
   has kept room for. So a crash on either side leaves one of them with it.
6. After a crash a site answers nobody before it has looked at its loads again.
7. Every wait is under a timer. Words of an earlier negotiation are told apart by numbers, which grow across crashes.
"""

from __future__ import annotations

from typing import Any

from weft.protocol.balancing.loads import fits, minus, plus
from weft.protocol.balancing.memory import BACK, DECLINED, GIVES, GONE, TOOK
from weft.protocol.balancing.refusals import refusal
from weft.protocol.balancing.stock import (
    ACCEPTED,
    DEMANDED,
    GIVING,
    HELD,
    IDLE,
    LENT,
    OFFERED,
    PROMISED,
    STATES,
    STOPPING,
    TAKING,
    Neighbour,
    Stock,
)
from weft.protocol.balancing.words import (
    Begin,
    Check,
    Clear,
    Demand,
    DemandReply,
    Handover,
    NotTaken,
    Offer,
    OfferReply,
    Pick,
    Refuse,
    Settle,
    Start,
    Stop,
    Stopped,
    Taken,
)
from weft.protocol.machine import CancelTimer, Effect, Received, Send, SetTimer, Step, TimerFired


class Balancer(Stock):
    """Balances one site."""

    __slots__ = ()

    def key(self, input: Any) -> str:
        """The neighbour an input is about; the site itself where it is about all."""
        match input:
            case Received():
                return input.sender
            case TimerFired():
                return input.name
            case Stopped():
                return input.peer
        return self.name

    def late(self, key: str, row: Neighbour, input: Any) -> list[Effect] | None:
        """A message that does not fit is refused; a handover that never will is answered, so that its giver need not
        wait. Word that something else stopped is passed over."""
        if isinstance(input, Stopped) and (row.state != STOPPING or input.serial != row.serial):
            return []
        if not isinstance(input, Received) or not (why := refusal(self, key, row, input.message)):
            return None
        said: list[Effect] = [Refuse(key, type(input.message).__name__, why)]
        if isinstance(input.message, Handover) and key in self.peers and input.message.serial > self.last(key):
            said.append(Send(key, NotTaken(input.message.serial, why)))
        return said

    def on_begin(self, key: str, row: Neighbour, input: Begin) -> list[Effect]:
        """Runs what it answers for; handovers that an earlier life began are said again."""
        effects: list[Effect] = [Start(tuple(self.memory.here))]
        for peer in sorted(self.memory.giving):
            effects += self.hand_over(peer, self.rows[peer])
        return effects

    def on_check(self, key: str, row: Neighbour, input: Check) -> list[Effect]:
        """Overloaded it offers, underloaded it asks, unless it negotiates already."""
        self.memory, self.looked = self.memory.measured(input.loads), True
        if self.negotiates():
            return []
        if self.overloaded():
            return self.offer()
        return self.demand() if self.underloaded() else []

    def offer(self) -> list[Effect]:
        """Offers each neighbour what may go there and is not too much (Listing 3)."""
        offers = {peer: tuple(self.leaving(peer, self.marks.high)) for peer in self.free()}
        if not any(offers.values()):
            return []
        effects: list[Effect] = [self.count()]
        number = self.memory.count
        for peer, transfers in offers.items():
            if transfers:
                self.rows[peer].begin(OFFERED, number, transfers, self.standing("above", self.limits.high))
                effects += [Send(peer, Offer(number, transfers)), SetTimer(peer, self.limits.reply_ms_max)]
        return effects

    def demand(self) -> list[Effect]:
        """Asks each neighbour for operators (Listing 3, lines 17-21)."""
        free = self.free()
        if not free:
            return []
        effects: list[Effect] = [self.count()]
        number = self.memory.count
        room = minus(self.marks.target, self.committed())
        for peer in free:
            self.rows[peer].begin(DEMANDED, number, (), self.standing("below", self.limits.low))
            effects += [Send(peer, Demand(number, room)), SetTimer(peer, self.limits.reply_ms_max)]
        return effects

    def hear(self, peer: str, row: Neighbour, number: int) -> list[Effect]:
        """A neighbour begins anew: what was kept for it before is not wanted any more."""
        row.heard = number
        if row.state not in (HELD, LENT):
            return []
        row.rest()
        return [CancelTimer(peer)]

    def on_offer(self, peer: str, row: Neighbour, input: Any) -> list[Effect]:
        """Keeps room for what it can take, up to its highest mark (Listing 4)."""
        message: Offer = input.message
        effects = [*self.hear(peer, row, message.number), *self.give_way()]
        accepted: list[int] = []
        if self.can_answer(row):
            accepted = self.chosen(message.transfers, minus(self.marks.most, self.committed()))
        reply = OfferReply(message.number, tuple(accepted), self.underloaded())
        if accepted:
            row.begin(HELD, message.number, (message.transfers[place] for place in accepted))
            effects.append(SetTimer(peer, self.limits.keep_ms_max))
        return [*effects, Send(peer, reply)]

    def give_way(self) -> list[Effect]:
        """Drops a demand of its own that nothing was picked of yet."""
        mine = [peer for peer in self.peers if self.rows[peer].mine]
        if any(self.rows[peer].state not in (DEMANDED, PROMISED) for peer in mine):
            return []
        return [effect for peer in mine for effect in self.clear(peer, self.rows[peer])]

    def clear(self, peer: str, row: Neighbour) -> list[Effect]:
        """Ends what is under way with a neighbour, and says so."""
        number = row.number
        row.rest()
        return [CancelTimer(peer), Send(peer, Clear(number))]

    def on_demand(self, peer: str, row: Neighbour, input: Any) -> list[Effect]:
        """Keeps ready what it can give without falling below its target (Listing 8)."""
        message: Demand = input.message
        effects = self.hear(peer, row, message.number)
        if self.can_answer(row):
            transfers = self.leaving(peer, self.marks.target)
            rooms = (self.spare(self.marks.target), message.room)
            picked = [transfers[place] for place in self.chosen(transfers, *rooms)]
            if picked:
                row.begin(LENT, message.number, picked)
                effects.append(SetTimer(peer, self.limits.keep_ms_max))
        lent = row.transfers if row.state == LENT else ()
        return [*effects, Send(peer, DemandReply(message.number, lent, self.overloaded()))]

    def on_offer_reply(self, peer: str, row: Neighbour, input: Any) -> list[Effect]:
        """A neighbour would take some; nothing is chosen before all have answered (Listing 5)."""
        message: OfferReply = input.message
        return self.answered(peer, row, ACCEPTED, tuple(row.transfers[place] for place in message.accepted), message)

    def on_demand_reply(self, peer: str, row: Neighbour, input: Any) -> list[Effect]:
        """A neighbour would give some; nothing is chosen before all have answered (Listing 9)."""
        return self.answered(peer, row, PROMISED, input.message.transfers, input.message)

    def answered(self, peer: str, row: Neighbour, state: str, transfers: Any, message: Any) -> list[Effect]:
        """Keeps an answer; an empty one ends it with this neighbour."""
        row.state, row.transfers, row.urgent = state, transfers, message.urgent
        if not transfers:
            row.rest()
        return [CancelTimer(peer)]

    def on_silence(self, peer: str, row: Neighbour, input: TimerFired) -> list[Effect]:
        """No answer: as if it were empty."""
        return self.clear(peer, row)

    def concluding(self) -> list[Effect]:
        """When all have answered, chooses: urgent answers first (Listings 5 and 9)."""
        states = {peer: self.rows[peer].state for peer in self.peers}
        ready = [peer for peer in self.peers if states[peer] in (ACCEPTED, PROMISED)]
        if not ready or OFFERED in states.values() or DEMANDED in states.values():
            return []
        ready.sort(key=lambda peer: (not self.rows[peer].urgent, peer))
        taking = states[ready[0]] == PROMISED
        room = minus(self.marks.target, self.committed()) if taking else self.spare(self.marks.high)
        given = [(peer, place) for peer in ready for place in range(len(self.rows[peer].transfers))]
        transfers = [self.rows[peer].transfers[place] for peer, place in given]
        if not taking:
            transfers = [self.now(part.operator for part in transfer) for transfer in transfers]
        places = [given[at] for at in self.chosen(transfers, room)]
        effects: list[Effect] = []
        for peer in ready:
            chosen = tuple(place for whose, place in places if whose == peer)
            step = self.STEPS[states[peer], Settle]
            effects += step.do(self, peer, self.rows[peer], Settle(chosen))
            assert self.rows[peer].state in step.to
        return effects

    def on_settle_offer(self, peer: str, row: Neighbour, input: Settle) -> list[Effect]:
        """Stops what a neighbour will get; one that gets nothing is told so."""
        return self.stop(peer, row, input.chosen) if input.chosen else self.clear(peer, row)

    def on_settle_demand(self, peer: str, row: Neighbour, input: Settle) -> list[Effect]:
        """Asks a neighbour for what was chosen of its operators; one that was not chosen is told so."""
        if not input.chosen:
            return self.clear(peer, row)
        row.state, row.transfers = TAKING, tuple(row.transfers[place] for place in input.chosen)
        return [Send(peer, Pick(row.number, input.chosen)), SetTimer(peer, self.limits.keep_ms_max)]

    def on_pick(self, peer: str, row: Neighbour, input: Any) -> list[Effect]:
        """Stops what was picked; where it is not kept ready any more, says so."""
        message: Pick = input.message
        if row.state != LENT:
            return [Send(peer, Clear(message.number))]
        return self.stop(peer, row, message.picked)

    def stop(self, peer: str, row: Neighbour, places: tuple[int, ...]) -> list[Effect]:
        """Lets operators end before they are handed over."""
        row.state, row.transfers = STOPPING, tuple(row.transfers[place] for place in places)
        note = self.count()
        row.serial = self.memory.count
        return [note, *self.ask_to_stop(peer, row)]

    def ask_to_stop(self, peer: str, row: Neighbour) -> list[Effect]:
        """Asks the body to stop operators, until it has."""
        names = tuple(part.operator for part in row.parts())
        return [Stop(peer, row.serial, names), SetTimer(peer, self.limits.stop_ms_max)]

    def on_stop_timer(self, peer: str, row: Neighbour, input: TimerFired) -> list[Effect]:
        """The body has kept silent."""
        return self.ask_to_stop(peer, row)

    def on_stopped(self, peer: str, row: Neighbour, input: Stopped) -> list[Effect]:
        """They run nowhere now: writes down to whom they go, and says so."""
        parts = self.now(part.operator for part in row.parts())
        row.state, row.transfers = GIVING, (parts,)
        return [self.remember(GIVES, peer, row.serial, row.number, parts, row.reason), *self.hand_over(peer, row)]

    def hand_over(self, peer: str, row: Neighbour) -> list[Effect]:
        """Says what is handed over, until it is answered."""
        message = Handover(row.number, row.serial, row.parts(), row.reason)
        return [Send(peer, message), SetTimer(peer, self.limits.answer_ms_max)]

    def on_giving_timer(self, peer: str, row: Neighbour, input: TimerFired) -> list[Effect]:
        """A neighbour that keeps silent must not keep this site from negotiating with others."""
        row.mine = False
        return self.hand_over(peer, row)

    def on_handover(self, peer: str, row: Neighbour, input: Any) -> list[Effect]:
        """Takes what it has kept room for, if there still is; one handover has one answer, however often it is said."""
        message: Handover = input.message
        if message.serial == self.last(peer):
            took = self.memory.answers[peer].took
            return [Send(peer, Taken(message.serial) if took else NotTaken(message.serial))]
        kept = row.state in (HELD, TAKING) and row.number == message.number
        effects: list[Effect] = []
        if kept:
            named = {part.operator for part in row.parts()}
            reason = row.reason or message.reason
            row.rest()
            effects.append(CancelTimer(peer))
            room = fits(plus(self.committed(), self.size(message.operators)), self.marks.most)
            if room and all(part.operator in named for part in message.operators):
                names = tuple(part.operator for part in message.operators)
                note = self.remember(TOOK, peer, message.serial, parts=message.operators, reason=reason)
                return [*effects, note, Start(names, peer, reason), Send(peer, Taken(message.serial))]
        why = "there is no room any more" if kept else "no room is kept for it"
        return [*effects, self.remember(DECLINED, peer, message.serial), Send(peer, NotTaken(message.serial, why))]

    def on_taken(self, peer: str, row: Neighbour, input: Any) -> list[Effect]:
        """They run there."""
        parts = row.parts()
        serial = row.serial
        row.rest()
        return [CancelTimer(peer), self.remember(GONE, peer, serial, parts=parts)]

    def on_not_taken(self, peer: str, row: Neighbour, input: Any) -> list[Effect]:
        """They run here again."""
        parts = row.parts()
        serial = row.serial
        row.rest()
        names = tuple(part.operator for part in parts)
        return [CancelTimer(peer), self.remember(BACK, peer, serial, parts=parts), Start(names)]

    def on_clear(self, peer: str, row: Neighbour, input: Any) -> list[Effect]:
        """Forgets what was kept."""
        row.rest()
        return [CancelTimer(peer)]

    def on_keep_timer(self, peer: str, row: Neighbour, input: TimerFired) -> list[Effect]:
        """Nothing came of it."""
        row.rest()
        return []


Balancer.STEPS = {
    **{(state, Offer): Step(Balancer.on_offer, (state,)) for state in STATES},
    **{(state, Demand): Step(Balancer.on_demand, (state,)) for state in STATES},
    **{(state, Pick): Step(Balancer.on_pick, (state,)) for state in STATES if state not in (HELD, STOPPING, GIVING)},
    **{(state, Handover): Step(Balancer.on_handover, (state,)) for state in STATES},
    (IDLE, Begin): Step(Balancer.on_begin, (IDLE,)),
    (IDLE, Check): Step(Balancer.on_check, (IDLE, OFFERED, DEMANDED)),
    **{(state, Offer): Step(Balancer.on_offer, (IDLE, HELD)) for state in (IDLE, HELD, LENT)},
    **{(state, Offer): Step(Balancer.on_offer, (state, IDLE, HELD)) for state in (DEMANDED, PROMISED)},
    **{(state, Demand): Step(Balancer.on_demand, (IDLE, LENT)) for state in (IDLE, HELD, LENT)},
    (OFFERED, OfferReply): Step(Balancer.on_offer_reply, (IDLE, ACCEPTED)),
    (DEMANDED, DemandReply): Step(Balancer.on_demand_reply, (IDLE, PROMISED)),
    (OFFERED, TimerFired): Step(Balancer.on_silence, (IDLE,)),
    (DEMANDED, TimerFired): Step(Balancer.on_silence, (IDLE,)),
    (ACCEPTED, Settle): Step(Balancer.on_settle_offer, (STOPPING, IDLE)),
    (PROMISED, Settle): Step(Balancer.on_settle_demand, (TAKING, IDLE)),
    (LENT, Pick): Step(Balancer.on_pick, (STOPPING,)),
    (STOPPING, Stopped): Step(Balancer.on_stopped, (GIVING,)),
    (STOPPING, TimerFired): Step(Balancer.on_stop_timer, (STOPPING,)),
    (GIVING, TimerFired): Step(Balancer.on_giving_timer, (GIVING,)),
    (GIVING, Taken): Step(Balancer.on_taken, (IDLE,)),
    (GIVING, NotTaken): Step(Balancer.on_not_taken, (IDLE,)),
    **{(state, Handover): Step(Balancer.on_handover, (state, IDLE)) for state in (HELD, TAKING)},
    **{(state, Clear): Step(Balancer.on_clear, (IDLE,)) for state in (HELD, LENT, TAKING)},
    **{(state, TimerFired): Step(Balancer.on_keep_timer, (IDLE,)) for state in (HELD, LENT, TAKING)},
}
