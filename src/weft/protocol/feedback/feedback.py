"""What does a site know of the delays of a query? What each of its sites has measured, fed back to all (S14).

1. Whoever measures is the only authority about it. A word bears the life of its site and a number that rises with what
   is measured; an older one than the last heard changes nothing, however often or late it comes.
2. Words go through one site of the query, its hub (published: that of the source), which hands each on to all others,
   renewals too. A word costs a query of n sites n-1 messages, as many as telling everybody would.
3. Nothing is acknowledged. At every beat a site says its own last word again: what was lost on either way is known a
   beat later, and a hub that crashed has all again.
4. A word that was not said again for `lease` beats is not believed any more: who knows less than all says so, and
   reckons with no delay of the dead. Its number stays, lest an old copy be taken for news. Beats of sites are not in
   step, so two may lie between renewals though nothing is lost: a lease is three at least.
5. When a query takes other sites, words of those that have left it end; their numbers are forgotten with them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.protocol.feedback.words import (
    DelayBeat,
    DelayMeasured,
    DelaysAre,
    DelayTold,
    DelayWord,
    LeavesOff,
    TakesPart,
)
from weft.protocol.machine import Machine, Row, Step, Steps
from weft.protocol.words import Effect, Received, Send

APART, PART = "apart", "part"
LEASE = 4


class Heard(msgspec.Struct, array_like=True):
    """The last word of a site, and for how many beats it was not said again; at the lease it counts no more."""

    word: DelayWord
    age: int = 0


class QueryDelays(Row):
    """What is known of one query."""

    state: str = APART
    hub: str = ""
    sites: tuple[str, ...] = ()
    number: int = 0
    heard: dict[str, Heard] = msgspec.field(default_factory=dict)


class Feedback(Machine):
    """The delays of all queries that a site takes part in."""

    __slots__ = ("lease", "life")
    ROW: ClassVar[type[Row]] = QueryDelays

    def __init__(self, name: str, life: int, lease: int = LEASE) -> None:
        super().__init__(name)
        self.life, self.lease = life, lease

    def key(self, input: Any) -> str:
        """The query that an input is about."""
        about: Any = input.message if isinstance(input, Received) else input
        query: str = about.query
        return query

    def extra(self) -> Any:
        """Which life this is."""
        return self.life

    def set_extra(self, extra: Any) -> None:
        """Takes back what `extra` gave."""
        self.life = extra

    def on_part(self, key: str, row: QueryDelays, input: TakesPart) -> list[Effect]:
        """The query runs here, or at other sites than before."""
        row.state, row.hub, row.sites = PART, input.hub, input.sites
        before = self.known(row)
        row.heard = {site: one for site, one in row.heard.items() if site in input.sites}
        return self.changed(key, row, before)

    def on_leave(self, key: str, row: QueryDelays, input: LeavesOff) -> list[Effect]:
        """The query runs elsewhere only; numbers of this life go on rising, should it come back."""
        row.state, row.hub, row.sites, row.heard = APART, "", (), {}
        return []

    def on_measured(self, key: str, row: QueryDelays, input: DelayMeasured) -> list[Effect]:
        """Something was measured here."""
        before = self.known(row)
        row.number += 1
        word = DelayWord(self.name, self.life, row.number, input.took_ms, input.delay_ms)
        row.heard[self.name] = Heard(word)
        return [*self.passed_on(key, row, word), *self.changed(key, row, before)]

    def on_told(self, key: str, row: QueryDelays, input: Received) -> list[Effect]:
        """A word has come: news, the same again, or an old copy."""
        message = input.message
        assert isinstance(message, DelayTold)
        word, before = message.word, self.known(row)
        if word.site not in row.sites or word.site == self.name:
            return []
        held = row.heard.get(word.site)
        if held is None or (word.life, word.number) > (held.word.life, held.word.number):
            row.heard[word.site] = Heard(word)
        elif (word.life, word.number) == (held.word.life, held.word.number):
            held.age = 0
        else:
            return []
        return [*self.passed_on(key, row, word), *self.changed(key, row, before)]

    def on_beat(self, key: str, row: QueryDelays, input: DelayBeat) -> list[Effect]:
        """Words of others grow older, one's own is said again."""
        before = self.known(row)
        for site, one in row.heard.items():
            one.age = 0 if site == self.name else min(one.age + 1, self.lease)
        own = row.heard.get(self.name)
        said = [] if own is None else self.passed_on(key, row, own.word)
        return [*said, *self.changed(key, row, before)]

    def passed_on(self, key: str, row: QueryDelays, word: DelayWord) -> list[Effect]:
        """A word to those who are to hear it from here: from the hub to all, from others their own to the hub."""
        told = DelayTold(key, word)
        if row.hub == self.name:
            return [Send(site, told) for site in row.sites if site not in (self.name, word.site)]
        return [Send(row.hub, told)] if word.site == self.name else []

    def known(self, row: QueryDelays) -> tuple[DelayWord, ...]:
        """What is believed."""
        return tuple(one.word for one in self.in_order(row) if one.age < self.lease)

    def in_order(self, row: QueryDelays) -> list[Heard]:
        """What was heard, in an order that does not depend on when."""
        return [row.heard[site] for site in sorted(row.heard)]

    def changed(self, key: str, row: QueryDelays, before: tuple[DelayWord, ...]) -> list[Effect]:
        """Says what is known where that is something else than before."""
        now = self.known(row)
        return [] if now == before else [DelaysAre(key, now)]

    STEPS: ClassVar[Steps] = {
        (APART, TakesPart): Step(on_part, (PART,)),
        (PART, TakesPart): Step(on_part, (PART,)),
        (APART, LeavesOff): Step(on_leave, (APART,)),
        (PART, LeavesOff): Step(on_leave, (APART,)),
        (PART, DelayMeasured): Step(on_measured, (PART,)),
        (APART, DelayMeasured): Step(lambda machine, key, row, input: [], (APART,)),
        (PART, DelayTold): Step(on_told, (PART,)),
        (APART, DelayTold): Step(lambda machine, key, row, input: [], (APART,)),
        (PART, DelayBeat): Step(on_beat, (PART,)),
        (APART, DelayBeat): Step(lambda machine, key, row, input: [], (APART,)),
    }
