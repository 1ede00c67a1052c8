"""What is really so around a directory: who is there and offers what, how loaded, how often all clocks have beaten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from weft.bodies.explorer.world import Choice
from weft.protocol import Effect, Input, Machine, SetTimer, TimerFired
from weft.protocol.directory import Beat, Begin, End, Found, Loaded, OffersAre, Seek
from weft.protocol.machine import Row, Step

CLOCK = "clock"
LEASE = 2
CALM = 2 * LEASE + 2
"""After so many beats without a disturbance all is where it belongs: patience, a lease, one to put it right."""
TWICE = "every question is answered, once"
INVENTED = "only what was offered at some time is found"


class Wound(Effect, frozen=True):
    """All clocks are to beat once."""


class Clock(Machine):
    """Time for all: a beat for everybody when nothing else is left to happen."""

    __slots__ = ()

    def key(self, input: Any) -> str:
        """The one thing that it looks after."""
        return CLOCK

    def on_begin(self, key: str, row: Row, input: Begin) -> list[Effect]:
        """Time begins."""
        row.state = "on"
        return [SetTimer(CLOCK, 1)]

    def on_timer(self, key: str, row: Row, input: TimerFired) -> list[Effect]:
        """A while has passed."""
        return [Wound(), SetTimer(CLOCK, 1)]


class ClockRow(Row):
    """Whether time has begun."""

    state: str = "off"


Clock.ROW = ClockRow
Clock.STEPS = {
    ("off", Begin): Step(Clock.on_begin, ("on",)),
    ("on", TimerFired): Step(Clock.on_timer, ("on",)),
}


class Act(NamedTuple):
    """Something that happens at a site, once, and that it is told."""

    site: str
    fact: Input


class Yard(msgspec.Struct, frozen=True):
    """The sites, what they offer, and who has yet to beat."""

    sites: tuple[str, ...]
    acts: tuple[tuple[Act, ...], ...]
    """What happens, in scripts: within one in order."""
    done: tuple[int, ...] = ()
    beats: tuple[str, ...] = ()
    calm: int = 0
    """Beats since something last happened; more than `CALM` count as that."""
    up: tuple[str, ...] = ()
    offers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    loads: tuple[tuple[str, float], ...] = ()
    gone: tuple[tuple[str, str, int], ...] = ()
    """What was offered once and is no more: site, name, beats since."""
    lives: tuple[tuple[str, int], ...] = ()
    seeking: tuple[int, ...] = ()
    fault: str = ""

    def of(self, site: str) -> tuple[str, ...]:
        """What a site offers."""
        return dict(self.offers).get(site, ())

    def load(self, site: str) -> float:
        """How loaded a site is."""
        return dict(self.loads).get(site, 0.0)

    def life(self, site: str) -> int:
        """Which life of a site this is."""
        return dict(self.lives).get(site, 1)

    def ever(self, site: str, name: str) -> bool:
        """Whether a site ever offered a name."""
        return name in self.of(site) or any(one[:2] == (site, name) for one in self.gone)

    def perform(self, site: str, effect: Effect) -> Yard:
        """The ground after an effect."""
        match effect:
            case Wound():
                gone = tuple((one, name, min(age + 1, CALM)) for one, name, age in self.gone)
                return self.but(beats=self.up, calm=min(CALM, self.calm + 1), gone=gone)
            case Found(number, name, offers):
                fault = "" if number in self.seeking else TWICE
                if any(not self.ever(one.site, name) for one in offers if not name.startswith("site ")):
                    fault = fault or INVENTED
                return self.but(fault=self.fault or fault, seeking=tuple(n for n in self.seeking if n != number))
        return self

    def choices(self) -> Iterator[Choice]:
        """Beats that are due, and what happens next in each script."""
        for site in self.beats:
            yield Choice(site, Beat(), self.but(beats=tuple(one for one in self.beats if one != site)))
        for which, script in enumerate(self.acts):
            at = self.done[which]
            if at < len(script):
                site, fact = script[at]
                done = (*self.done[:which], at + 1, *self.done[which + 1 :])
                yield Choice(site, fact, self.but(done=done).happened(site, fact))

    def happened(self, site: str, fact: Input) -> Yard:
        """The ground after something has happened at a site."""
        match fact:
            case Begin() if site != CLOCK:
                return self.but(up=tuple(sorted({*self.up, site})), calm=0)
            case OffersAre(names):
                return self.offering(site, names)
            case Loaded(load):
                return self.but(loads=tuple(sorted({**dict(self.loads), site: load}.items())), calm=0)
            case Seek(number):
                return self.but(seeking=(*self.seeking, number))
            case End():
                up = tuple(one for one in self.up if one != site)
                beats = tuple(one for one in self.beats if one != site)
                return self.offering(site, ()).but(up=up, beats=beats)
        return self

    def offering(self, site: str, names: tuple[str, ...]) -> Yard:
        """A site offers other things."""
        gone = {(one, name): age for one, name, age in self.gone}
        gone |= {(site, name): 0 for name in self.of(site) if name not in names}
        for name in names:
            gone.pop((site, name), None)
        offers = tuple(sorted({**dict(self.offers), site: names}.items()))
        return self.but(offers=offers, gone=tuple(sorted((*key, age) for key, age in gone.items())), calm=0)

    def crash(self, site: str) -> Yard:
        """A site is lost with all it knew, and comes back in a greater life; what it was told is told again."""
        lives = tuple(sorted({**dict(self.lives), site: self.life(site) + 1}.items()))
        scripts = tuple(0 if script[0].site == site else at for script, at in zip(self.acts, self.done, strict=True))
        asked = tuple(act.fact.number for script in self.acts for act in script
                      if act.site == site and isinstance(act.fact, Seek))  # fmt: skip
        seeking = tuple(number for number in self.seeking if number not in asked)
        up = tuple(one for one in self.up if one != site)
        beats = tuple(one for one in self.beats if one != site)
        return self.offering(site, ()).but(lives=lives, done=scripts, seeking=seeking, up=up, beats=beats, calm=0)

    def but(self, **changes: Any) -> Yard:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)
