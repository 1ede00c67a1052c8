"""What does a site do for the directory? It tells of its own streams and load, holds others', and finds (S6).

1. The site that offers is the only authority. To each holder of one of its names it says all that this one is to hold
   (`PutOffers`), which replaces what was said before; an older word than the last heard changes nothing.
2. Holders of a name are the first `copies` sites after it on the ring, of those that are not away in one's own eyes.
   When a site comes, goes or is silent, who offers something puts it where it belongs now; nobody copies for others.
3. What is held ends `lease` beats after it was last said. Who offers says it again at every beat.
4. Who does not answer for `patience` beats when told something, or a question in time, is away: others take its place.
   One of those away is asked at every beat whether it is back. Whoever is heard of is there.
5. A greater life of a site ends what its former one offered; a life that has said LeaveRing is over.
6. A load is told when it leaves its level, and with whatever else is said.
7. A question goes to one holder; to the next where that holds nothing or is silent; to 2 x `copies` at most. It ends.
8. Every site offers itself under its own name, so that everybody's load can be asked for.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.protocol.directory.levels import Levels
from weft.protocol.directory.ring import holders
from weft.protocol.directory.words import (
    AskOffers,
    Beat,
    Begin,
    End,
    Found,
    JoinRing,
    LeaveRing,
    Loaded,
    Offer,
    OffersAre,
    OffersHeld,
    PutOffers,
    Seek,
    TellOffers,
    WelcomeToRing,
    site_key,
)
from weft.protocol.machine import Machine, Row, Step, Steps
from weft.protocol.words import CancelTimer, Effect, Input, Received, Send, SetTimer, TimerFired

NEW, UP, OVER = "new", "up", "over"  # of the site itself
HERE, AWAY, LEFT = "here", "away", "left"  # of others
OTHERS = (NEW, HERE, AWAY, LEFT)


class Limits(msgspec.Struct, frozen=True):
    """How many copies, for how many beats, and how long a question waits for one answer."""

    copies: int = 3
    lease: int = 3
    patience: int = 2
    answer_ms: int = 2_000


class Known(Row):
    """What is known of one site: what it has said (held here), and what it was told."""

    state: str = NEW
    life: int = 0
    number: int = -1
    names: tuple[str, ...] = ()
    load: float = 0.0
    left: int = 0
    """Beats until what it has said ends."""
    given: tuple[str, ...] = ()
    """What it is to hold of this site's."""
    waits: int = 0
    """For how many beats it has owed an answer, and one more; 0 where it owes none."""


class Asking(msgspec.Struct, array_like=True):
    """A question under way: whom it was put to, the last of whom may yet answer."""

    name: str
    asked: list[str]


class Directory(Machine):
    """The directory at one site."""

    __slots__ = (
        "asking",
        "level",
        "levels",
        "life",
        "limits",
        "load",
        "number",
        "probed",
        "ring",
        "settled",
        "updates",
    )

    ROW: ClassVar[type[Row]] = Known

    def __init__(self, name: str, life: int, limits: Limits | None = None, levels: Levels | None = None) -> None:
        super().__init__(name)
        self.life = life
        self.limits = limits or Limits()
        self.levels = levels or Levels()
        self.number = 0
        self.load = 0.0
        self.level = 0
        self.probed = ""
        self.asking: dict[str, Asking] = {}
        self.ring: tuple[tuple[str, ...], frozenset[str]] | None = None
        """All sites and those away, until one of them changes; no part of the state."""
        self.settled = False
        """Whether every name is where it belongs, as far as nothing has changed since; no part of the state."""
        self.updates = 0
        """Loads told because they left their level; no part of the state."""

    def key(self, input: Any) -> str:
        """The site that an input is about: the sender of a message, else this one."""
        return input.sender if isinstance(input, Received) else self.name

    # What the site itself does and is told.

    def on_begin(self, key: str, row: Known, input: Begin) -> list[Effect]:
        """Everybody is told that the site is there."""
        row.state, row.names, row.life = UP, (site_key(self.name),), self.life
        effects: list[Effect] = []
        for site in input.members:
            if site != self.name:
                self.rows.setdefault(site, Known()).waits = 1
                effects.append(Send(site, JoinRing(self.life)))
        return effects + self.spread()

    def on_offers(self, key: str, row: Known, input: OffersAre) -> list[Effect]:
        """Other streams are made here than before."""
        row.names = tuple(sorted({site_key(self.name), *input.names}))
        self.settled = False
        return self.spread()

    def on_loaded(self, key: str, row: Known, input: Loaded) -> list[Effect]:
        """The load is told where it has left its level."""
        self.load = row.load = input.load
        if self.levels.stays(self.level, input.load):
            return []
        self.level = self.levels.level(input.load)
        self.number += 1
        effects = [self.put(site, other) for site, other in self.rows.items() if other.given]
        self.updates += len(effects)
        return effects

    def on_beat(self, key: str, row: Known, input: Beat) -> list[Effect]:
        """What others said grows older; what was said is said again; one of those away is asked whether it is back."""
        again: list[str] = []
        for site, other in self.rows.items():
            if site == self.name:
                continue
            if other.left:
                other.left -= 1
                if not other.left:
                    other.names = ()
            if other.state not in (NEW, HERE):
                continue
            if other.waits > self.limits.patience - 1:
                self.gone(other, AWAY)
            elif other.waits or other.given:
                again.append(site)
        effects = self.spread()
        told = {effect.to for effect in effects if isinstance(effect, Send)}
        for site in again:
            other = self.rows[site]
            if site in told:
                continue
            other.waits += 1
            effects.append(Send(site, JoinRing(self.life)) if other.state == NEW else self.word(other, site))
        return effects + self.probe()

    def probe(self) -> list[Effect]:
        """The next of those away is asked whether it is back."""
        away = sorted(site for site, other in self.rows.items() if other.state == AWAY)
        if not away:
            return []
        self.probed = next((site for site in away if site > self.probed), away[0])
        return [Send(self.probed, JoinRing(self.life))]

    def on_end(self, key: str, row: Known, input: End) -> list[Effect]:
        """The site leaves: nobody need wait for its lease to end, and its questions end."""
        row.state, row.names = OVER, ()
        effects: list[Effect] = [
            Send(site, LeaveRing(self.life)) for site, other in self.rows.items() if other.state in (NEW, HERE)
        ]
        for number in list(self.asking):
            effects += [CancelTimer(number), self.found(number, ())]
        return effects

    # What is told, and to whom.

    def around(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """All sites that were ever heard of, and those that hold nothing, as far as this one knows."""
        if self.ring is None:
            away = frozenset(site for site, other in self.rows.items() if other.state in (AWAY, LEFT, OVER))
            self.ring, self.settled = (tuple(sorted(self.rows)), away), False
        return self.ring

    def holders(self, name: str) -> tuple[str, ...]:
        """Who holds a name, as far as this site knows."""
        return holders(name, *self.around(), self.limits.copies)

    def spread(self) -> list[Effect]:
        """Puts every name where it belongs now, and takes it from where it does not."""
        own = self.rows[self.name]
        self.around()
        if own.state != UP or self.settled:
            return []
        self.settled = True
        wanted: dict[str, list[str]] = {}
        for name in own.names:
            for site in self.holders(name):
                wanted.setdefault(site, []).append(name)
        changed = [
            (site, other)
            for site, other in self.rows.items()
            if site != self.name and other.state in (NEW, HERE) and other.given != tuple(wanted.get(site, ()))
        ]
        if not changed:
            return []
        self.number += 1
        effects: list[Effect] = []
        for site, other in changed:
            other.given = tuple(wanted.get(site, ()))
            effects.append(self.put(site, other))
        return effects

    def put(self, site: str, other: Known) -> Effect:
        """Says to a holder what it is to hold, and waits for its word."""
        other.waits = max(1, other.waits)
        return self.word(other, site)

    def word(self, other: Known, site: str) -> Effect:
        """All that a holder is to hold."""
        return Send(site, PutOffers(self.life, self.number, self.load, other.given))

    def gone(self, other: Known, state: str) -> None:
        """A site holds nothing any more, as far as this one knows."""
        other.state, other.given, other.waits = state, (), 0
        self.ring = None

    # What others say.

    def heard(self, row: Known, life: int) -> bool:
        """Notes that a life of a site was heard of; False where it is over."""
        if life < row.life or (life == row.life and row.state == LEFT):
            return False
        if life > row.life:
            fresh = row.life > 0
            row.life, row.number, row.names, row.left = life, -1, (), 0
            if fresh:  # it has forgotten what it was given
                row.given, self.settled = (), False
        if row.state in (AWAY, LEFT):
            self.ring = None
        row.state = HERE
        return True

    def on_join(self, key: str, row: Known, input: Received) -> list[Effect]:
        """A site is there."""
        message: Any = input.message
        if not self.heard(row, message.life):
            return []
        return [Send(key, WelcomeToRing(self.life)), *self.spread()]

    def on_welcome(self, key: str, row: Known, input: Received) -> list[Effect]:
        """A site has answered: it is there, and owes nothing but word of what it is to hold."""
        message: Any = input.message
        if not self.heard(row, message.life):
            return []
        if not row.given:
            row.waits = 0
        return self.spread()

    def on_put(self, key: str, row: Known, input: Received) -> list[Effect]:
        """What a site offers, unless a later word of it was heard."""
        message: Any = input.message
        if not self.heard(row, message.life):
            return []
        if message.number >= row.number:
            row.number, row.names, row.load = message.number, message.names, message.load
            row.left = self.limits.lease if message.names else 0
        return [Send(key, OffersHeld(self.life, message.life, message.number)), *self.spread()]

    def on_held(self, key: str, row: Known, input: Received) -> list[Effect]:
        """A holder has what it was told last."""
        message: Any = input.message
        if not self.heard(row, message.life):
            return []
        if (message.of, message.number) == (self.life, self.number):
            row.waits = 0
        return self.spread()

    def on_bye(self, key: str, row: Known, input: Received) -> list[Effect]:
        """A site has left."""
        message: Any = input.message
        if message.life < row.life:
            return []
        row.life, row.names, row.left = message.life, (), 0
        self.gone(row, LEFT)
        return self.spread()

    def on_ask(self, key: str, row: Known, input: Received) -> list[Effect]:
        """Says who offers a name, as far as it is held here."""
        message: Any = input.message
        return [Send(key, TellOffers(message.number, message.name, self.offers(message.name)))]

    # Finding.

    def offers(self, name: str) -> tuple[Offer, ...]:
        """Who offers a name, as far as this site knows."""
        return tuple(Offer(site, row.load) for site, row in sorted(self.rows.items()) if name in row.names)

    def on_seek(self, key: str, row: Known, input: Seek) -> list[Effect]:
        """What this site holds itself needs no question."""
        self.asking[str(input.number)] = Asking(input.name, [])
        return self.ask(str(input.number))

    def ask(self, number: str) -> list[Effect]:
        """Puts a question to the next holder, if there is one."""
        asking = self.asking[number]
        able = self.holders(asking.name)
        if self.name in able and self.name not in asking.asked:  # it may have come to hold it since the question began
            asking.asked.insert(0, self.name)
            here = self.offers(asking.name)
            if here:
                return [self.found(number, here)]
        left = [site for site in able if site not in asking.asked]
        if not left or len(asking.asked) >= 2 * self.limits.copies:
            return [self.found(number, ())]
        asking.asked.append(left[0])
        return [Send(left[0], AskOffers(int(number), asking.name)), SetTimer(number, self.limits.answer_ms)]

    def found(self, number: str, offers: tuple[Offer, ...]) -> Effect:
        """A question is over."""
        return Found(int(number), self.asking.pop(number).name, offers)

    def on_answer(self, key: str, row: Known, input: Received) -> list[Effect]:
        """A holder has answered; where it holds nothing, the next is asked."""
        message: Any = input.message
        asking = self.asking.get(str(message.number))
        if asking is None or asking.name != message.name or not asking.asked or asking.asked[-1] != key:
            return []
        number = str(message.number)
        if message.offers:
            return [CancelTimer(number), self.found(number, message.offers)]
        return [CancelTimer(number), *self.ask(number)]

    def on_no_answer(self, key: str, row: Known, input: TimerFired) -> list[Effect]:
        """Who does not answer is away."""
        asking = self.asking.get(input.name)
        if asking is None:
            return []
        silent = self.rows[asking.asked[-1]]
        if silent.state in (NEW, HERE):
            self.gone(silent, AWAY)
        return [*self.spread(), *self.ask(input.name)]

    def ignore(self, key: str, row: Known, input: Input) -> list[Effect]:
        """A site that has left says nothing more."""
        return []

    def extra(self) -> Any:
        """All besides the rows, for the snapshot."""
        return self.life, self.number, self.load, self.level, self.probed, self.asking

    def set_extra(self, extra: Any) -> None:
        """Takes it back."""
        self.life, self.number, self.load, self.level, self.probed, asking = extra
        self.ring, self.settled = None, False
        self.asking = {number: Asking(name, list(asked)) for number, (name, asked) in asking.items()}

    def handle(self, input: Input) -> list[Effect]:
        """As any machine; one that has not begun, or has left, hears nobody."""
        own = self.rows.get(self.name)
        if isinstance(input, Received) and (own is None or own.state != UP):
            return []
        if self.key(input) not in self.rows:
            self.ring = None
        return super().handle(input)


def _steps() -> Steps:
    own: dict[type, Any] = {
        OffersAre: Directory.on_offers, Loaded: Directory.on_loaded, Beat: Directory.on_beat,
        Seek: Directory.on_seek, TimerFired: Directory.on_no_answer,
    }  # fmt: skip
    said: dict[type, Any] = {
        JoinRing: Directory.on_join, WelcomeToRing: Directory.on_welcome, PutOffers: Directory.on_put,
        OffersHeld: Directory.on_held, LeaveRing: Directory.on_bye, AskOffers: Directory.on_ask,
        TellOffers: Directory.on_answer,
    }  # fmt: skip
    steps: dict[tuple[str, type], Step] = {(NEW, Begin): Step(Directory.on_begin, (UP,))}
    steps |= {(UP, kind): Step(do, (UP,)) for kind, do in own.items()}
    steps |= {(OVER, kind): Step(Directory.ignore, (OVER,)) for kind in (*own, End)}
    steps[UP, End] = Step(Directory.on_end, (OVER,))
    steps |= {(state, kind): Step(do, OTHERS) for state in OTHERS for kind, do in said.items()}
    return steps


Directory.STEPS = _steps()
