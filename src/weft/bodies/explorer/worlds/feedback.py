"""Worlds for delays that are fed back: words lost, doubled, late and overtaken; sites that crash, the hub among them.

Site names are letters; the hub is the first of those that a query is told to run at. Time is the directory's clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from weft.bodies.explorer.world import Choice, Taken, View, World
from weft.bodies.explorer.worlds import strange
from weft.bodies.explorer.worlds.directory_ground import CLOCK, Act, Clock, Wound
from weft.protocol import Effect, Input, Machine, Received, Send
from weft.protocol.directory import Begin
from weft.protocol.feedback import (
    DelayBeat,
    DelayMeasured,
    DelaysAre,
    DelayTold,
    DelayWord,
    Feedback,
    LeavesOff,
    TakesPart,
)

QUERY = "q"
LEASE = 3
CALM = LEASE + 2
INVENTED = "only what was measured is known, as it was measured"
NEWER = "an older word never takes the place of a later one"
DEAD = "nothing is believed of a life that has been over for longer than a lease"
EXACT = "after a calm every site knows the last word of each that is there, and nothing else"
TOLD = "what is known is told, and nothing else"
AGES = "words of others grow older by one at every beat"
LEFT = "nothing is kept of a query that has left, and of sites that it has left"
AT_ONCE = "what is measured is told at once, and what is said again is believed as long as news"


class Rooms(msgspec.Struct, frozen=True):
    """What sites have measured and been told, who is there, and who has yet to beat."""

    sites: tuple[str, ...]
    acts: tuple[tuple[Act, ...], ...]
    done: tuple[int, ...]
    beats: tuple[str, ...] = ()
    calm: int = 0
    lives: tuple[tuple[str, int], ...] = ()
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """By site, the sites that it was told the query runs at."""
    said: tuple[DelayWord, ...] = ()
    known: tuple[tuple[str, tuple[DelayWord, ...]], ...] = ()
    over: tuple[tuple[str, int, int], ...] = ()
    """Lives that are over: site, life, beats since."""
    fault: str = ""

    def life(self, site: str) -> int:
        """Which life of a site this is."""
        return dict(self.lives).get(site, 1)

    def last(self, site: str) -> DelayWord | None:
        """What a site has measured last, in this life."""
        own = [one for one in self.said if one.site == site and one.life == self.life(site)]
        return own[-1] if own else None

    def wanted(self, site: str) -> tuple[DelayWord, ...]:
        """What a site is to know in the end: of those that it runs the query with, and that run it too."""
        sites = sorted(dict(self.parts).get(site, ()))
        words = [self.last(one) for one in sites if dict(self.parts).get(one)]
        return tuple(one for one in words if one is not None)

    def perform(self, site: str, effect: Effect) -> Rooms:
        """The ground after an effect."""
        match effect:
            case Wound():
                over = tuple((one, life, min(age + 1, CALM)) for one, life, age in self.over)
                return self.but(beats=tuple(sorted(dict(self.parts))), calm=min(CALM, self.calm + 1), over=over)
            case DelaysAre(words=words):
                fault = INVENTED if any(word not in self.said for word in words) else ""
                known = tuple(sorted({**dict(self.known), site: words}.items()))
                return self.but(known=known, fault=self.fault or fault)
        return self

    def choices(self) -> Iterator[Choice]:
        """Beats that are due, and what happens next in each script."""
        for site in self.beats:
            yield Choice(site, DelayBeat(QUERY), self.but(beats=tuple(one for one in self.beats if one != site)))
        for which, script in enumerate(self.acts):
            at = self.done[which]
            if at < len(script):
                site, fact = script[at]
                done = (*self.done[:which], at + 1, *self.done[which + 1 :])
                yield Choice(site, fact, self.but(done=done).happened(site, fact))

    def happened(self, site: str, fact: Input) -> Rooms:
        """The ground after something has happened at a site."""
        match fact:
            case TakesPart(sites=sites):
                return self.but(parts=tuple(sorted({**dict(self.parts), site: sites}.items())), calm=0)
            case LeavesOff():
                parts = tuple(one for one in self.parts if one[0] != site)
                known = tuple(one for one in self.known if one[0] != site)
                return self.but(parts=parts, known=known, calm=0)
            case DelayMeasured(took_ms=took_ms, delay_ms=delay_ms) if site in dict(self.parts):
                before = self.last(site)
                number = 1 if before is None else before.number + 1
                word = DelayWord(site, self.life(site), number, took_ms, delay_ms)
                return self.but(said=(*self.said, word), calm=0)
        return self

    def crash(self, site: str) -> Rooms:
        """A site is lost with all it knew, and comes back in a greater life; what it was told is told again."""
        lives = tuple(sorted({**dict(self.lives), site: self.life(site) + 1}.items()))
        done = tuple(0 if script[0].site == site else at for script, at in zip(self.acts, self.done, strict=True))
        return self.but(
            lives=lives, done=done, calm=0, over=(*self.over, (site, self.life(site), 0)),
            beats=tuple(one for one in self.beats if one != site),
            parts=tuple(one for one in self.parts if one[0] != site),
            known=tuple(one for one in self.known if one[0] != site),
        )  # fmt: skip

    def but(self, **changes: Any) -> Rooms:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)


def believed(view: View, site: str) -> tuple[DelayWord, ...]:
    """What a site believes of the query."""
    machine = view.machine(site)
    row = machine.rows.get(QUERY)
    return () if row is None else tuple(machine.known(row))


def calm(view: View) -> bool:
    """Whether nothing is under way and nothing has happened for a while."""
    return not view.busy and view.ground.calm >= CALM


def exact(view: View) -> bool:
    """Whether everybody knows the last words of all."""
    ground: Rooms = view.ground
    return all(believed(view, site) == ground.wanted(site) for site, _ in ground.parts)


def buried(view: View) -> bool:
    """Whether nobody believes the dead."""
    ground: Rooms = view.ground
    dead = {(site, life) for site, life, age in ground.over if age > LEASE}
    if not dead or view.busy:
        return True
    return not any((word.site, word.life) in dead for site, _ in ground.parts for word in believed(view, site))


def told(view: View) -> bool:
    """Whether bodies were told all that is believed."""
    ground: Rooms = view.ground
    return all(dict(ground.known).get(site, ()) == believed(view, site) for site, _ in ground.parts)


def in_order(taken: Taken) -> bool:
    """Whether what is held of a site is not older than what was."""
    before, after = (one.rows.get(QUERY) for one in (taken.before, taken.after))
    if before is None or not isinstance(taken.input, Received):
        return True
    return all(
        site in after.heard
        and (after.heard[site].word.life, after.heard[site].word.number) >= (one.word.life, one.word.number)
        for site, one in before.heard.items()
    )


def left_behind(taken: Taken) -> bool:
    """Whether nothing is kept of a query that has left, and of sites that it has left."""
    row = taken.after.rows.get(QUERY)
    if row is None:
        return True
    blank = row.state == "part" or (row.hub, row.sites, row.heard) == ("", (), {})
    return blank and {*row.heard} <= {*row.sites, taken.after.name}


def said_at_once(taken: Taken) -> bool:
    """Whether what is measured is told to all who are to hear it, and what is said again is believed as long."""
    row = taken.after.rows.get(QUERY)
    if row is None or row.state != "part":
        return True
    if isinstance(taken.input, DelayMeasured):
        to = {*row.sites} - {row.hub} if row.hub == taken.after.name else {row.hub}
        word = row.heard[taken.after.name].word
        said = [one for one in taken.effects if isinstance(one, Send)]
        return {one.to for one in said if one.message == DelayTold(QUERY, word)} == to
    if isinstance(taken.input, Received):
        word = taken.input.message.word  # type: ignore[attr-defined]
        held = row.heard.get(word.site)
        return held is None or held.word != word or held.age == 0
    return True


def ages(taken: Taken) -> bool:
    """Whether words of others grow older by one at every beat."""
    before, after = (one.rows.get(QUERY) for one in (taken.before, taken.after))
    if not isinstance(taken.input, DelayBeat) or before is None or before.state != "part":
        return True
    return all(
        after.heard[site].age == min(one.age + 1, LEASE)
        for site, one in before.heard.items()
        if site != taken.after.name
    )


def stale(machine: Any) -> Iterator[Input]:
    """Words of nobody, of oneself, and older ones than the last."""
    if not hasattr(machine, "lease"):
        return
    for query, row in machine.rows.items():
        words = [DelayWord("nobody", 1, 1), DelayWord(machine.name, machine.life + 1, 1)]
        for site, one in row.heard.items():
            if site != machine.name:
                words += [DelayWord(site, one.word.life, one.word.number - 1), DelayWord(site, one.word.life - 1, 9)]
        yield from (Received(row.hub or "a", DelayTold(query, word)) for word in words)


def world(name: str, acts: str, machine: type[Feedback] = Feedback, lossy: bool = False, **faults: Any) -> World:
    """What happens at sites: scripts, `site word argument; ...` between commas.

    Where words are lost, at any time, only the end is asked for, and what always holds.
    """
    scripts = tuple(_script(text) for text in acts.split(", "))
    names = tuple(sorted({script[0].site for script in scripts}))
    acts_ = ((Act(CLOCK, Begin(())),), *scripts)
    ground = Rooms(names, acts_, (0,) * len(acts_))

    def reborn(site: str, ground: Rooms | None) -> Machine:
        return Clock(CLOCK) if site == CLOCK else machine(site, ground.life(site) if ground else 1, LEASE)

    def over(view: View) -> bool:
        held: Rooms = view.ground
        acted = all(at == len(script) for at, script in zip(held.done, held.acts, strict=True))
        return acted and calm(view) and exact(view)

    def machines() -> dict[str, Machine]:
        return {one: reborn(one, None) for one in (CLOCK, *names)}

    claims: dict[str, Any] = {INVENTED: lambda view: not view.ground.fault, DEAD: buried, TOLD: told}
    claims |= strange.passing(machines, names, stale)
    if not lossy:
        claims[EXACT] = lambda view: not calm(view) or exact(view)
    return World(
        name, machines, ground, (), claims, over, reborn,
        steps={NEWER: in_order, LEFT: left_behind, AT_ONCE: said_at_once, AGES: ages}, **faults,
    )  # fmt: skip


def _script(text: str) -> tuple[Act, ...]:
    acts = []
    for part in text.split("; "):
        site, word, *rest = part.split()
        acts.append(Act(site, _fact(word, rest)))
    return tuple(acts)


def _fact(word: str, rest: list[str]) -> Input:
    match word:
        case "runs":
            return TakesPart(QUERY, rest[0][0], tuple(rest[0]))
        case "measures":
            return DelayMeasured(QUERY, (("o", int(rest[0])),), int(rest[1]) if len(rest) > 1 else None)
    assert word == "leaves", word
    return LeavesOff(QUERY)


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of feedback; the source prints no protocol for it."""
    both = "a runs ab; a measures 1, b runs ab; b measures 2; b measures 3 9"
    three = "a runs abc, b runs abc; b measures 2; b measures 3, c runs abc"

    def of(name: str, acts: str, **more: Any) -> World:
        return world(name, acts, **machines, **more)

    usual = (
        of("two sites", both),
        of("through the hub", three),
        of("a lost word", "a runs abc, b runs abc; b measures 2, c runs abc", lose=1, lossy=True),
        of("a doubled word", three, double=1),
        of("words that overtake", three, overtake=1),
        of("late and twice", both, overtake=1, double=1),
        of("one who measures crashes", both, mortal=("b",), crash=1),
        of("one who listens crashes", three, mortal=("c",), crash=1),
        of("one comes back and measures nothing", "a runs ab; b measures 2, b runs ab", mortal=("b",), crash=1),
        of("the hub crashes", both, mortal=("a",), crash=1),
        of("an operator moves", "a runs ab; a measures 1; a runs ac, b runs ab; b measures 2; b leaves, "
           "c runs ac; c measures 3"),
        of("a crash and a late word", "a runs ab, b runs ab; b measures 2", mortal=("b",), crash=1, overtake=1,
           double=1),
    )  # fmt: skip
    if not long:
        return usual
    return (
        *usual,
        of("three measure", "a runs abc; a measures 1, b runs abc; b measures 2, c runs abc; c measures 3"),
        of("a lost and a doubled word", both, lose=1, double=1, lossy=True),
        of("the hub of three crashes", three, mortal=("a",), crash=1, states_max=8_000_000),
    )
