"""Worlds for the directory: sites that come, leave, crash and come back, offer and withdraw, under lost words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.bodies.explorer.world import Taken, View, World
from weft.bodies.explorer.worlds import strange
from weft.bodies.explorer.worlds.directory_ground import CALM, CLOCK, INVENTED, LEASE, TWICE, Act, Clock, Yard
from weft.bodies.explorer.worlds.timers import TIMED, timed
from weft.protocol import Input, Machine, Received, TimerFired
from weft.protocol.directory import (
    Beat,
    Begin,
    Directory,
    End,
    JoinRing,
    LeaveRing,
    Levels,
    Limits,
    Loaded,
    OffersAre,
    OffersHeld,
    PutOffers,
    Seek,
    TellOffers,
    site_key,
)

LEVELS = Levels(count=3, top=2.0, overlap=0.25)
EXACT = "after a calm everybody finds what is offered, and nothing else"
STALE = "nothing withdrawn or of a dead site is held for longer than a lease"
BAND = "after a calm a load that is shown lies in the level of the load that is"
AGES = "what is held grows older at every beat, and ends with its lease"
OLDER = "an older word never replaces a later one"
LIVES = "what a former life of a site offered ends when a greater one is heard of"
ANSWERED = "who has not answered the last word is waited for"
FAREWELL = "who has left is not believed to be there again in the same life"
BLANK = "of sites that are away nothing is waited for, and nothing is held without a lease"
ROUND = "of several sites that are away another one is asked at every beat"
TOLD = "who is to hold something and owes no word was told so in its present life"
SILENT = "who does not answer a question in time counts as away"
UNKNOWN = 99
SPARING = "a load within its level is told to nobody"


def looked_up(view: View, seeker: str, name: str) -> dict[str, float]:
    """What a site would find now: of the holders in its own eyes, the first that hold something."""
    machine = view.machine(seeker)
    for site in machine.holders(name):
        if site == seeker or site in view.ground.up:
            found = {one.site: one.load for one in view.machine(site).offers(name)}
            if found:
                return found
    return {}


def exact(view: View) -> bool:
    """Whether everybody who is up finds all that is offered and nothing else."""
    ground: Yard = view.ground
    names = sorted({name for script in ground.acts for _, fact in script
                    if isinstance(fact, OffersAre) for name in fact.names})  # fmt: skip
    wanted = {name: [site for site in ground.up if name in ground.of(site)] for name in names}
    wanted |= {site_key(site): [site] for site in ground.up}
    wanted |= {site_key(site): [] for site in ground.sites if site not in ground.up}
    return all(sorted(looked_up(view, seeker, name)) == sites for name, sites in wanted.items() for seeker in ground.up)


def banded(view: View) -> bool:
    """Whether loads that are shown lie in the levels of loads that are."""
    ground: Yard = view.ground
    for site in ground.up:
        machine = view.machine(site)
        low, high = LEVELS.band(machine.level)
        if not low <= ground.load(site) < high:
            return False
        for holder in ground.up:
            shown = view.machine(holder).offers(site_key(site))
            if any(not low <= one.load < high for one in shown):
                return False
    return True


def calm(view: View) -> bool:
    """Whether nothing is under way and nothing has happened for a while."""
    ground: Yard = view.ground
    return not view.busy and ground.calm >= CALM


def not_stale(view: View) -> bool:
    """Whether no site that is up holds what has been gone for more than a lease, and the beat that was under way."""
    ground: Yard = view.ground
    old = [(site, name) for site, name, age in ground.gone if age > LEASE + 1]
    if not old or view.busy:
        return True
    return not any(name in view.machine(one).rows.get(site, _NOBODY).names
                   for one in ground.up for site, name in old if one != site)  # fmt: skip


def told_in_this_life(view: View) -> bool:
    """Whether every site that is to hold something and owes no word has heard that since it began."""
    ground: Yard = view.ground
    return all(
        view.machine(site).rows.get(giver, _NOBODY).number >= 0
        for giver in ground.up
        for site, row in view.machine(giver).rows.items()
        if site != giver and site in ground.up and row.given and not row.waits and row.life == ground.life(site)
    )


class _Nobody:
    names: tuple[str, ...] = ()
    number = -1


_NOBODY = _Nobody()


def ages(taken: Taken) -> bool:
    """Whether leases run."""
    if not isinstance(taken.input, Beat):
        return True
    for site, row in taken.after.rows.items():
        before = taken.before.rows.get(site)
        if site == taken.after.name or before is None:
            continue
        if row.left != max(0, before.left - 1) or (row.names and not row.left):
            return False
    return True


def in_order(taken: Taken) -> bool:
    """Whether what is held of a site is not older than what was."""
    if not (isinstance(taken.input, Received) and isinstance(taken.input.message, PutOffers)):
        return True
    before, after = (one.rows.get(taken.input.sender) for one in (taken.before, taken.after))
    return before is None or after is None or (after.life, after.number) >= (before.life, before.number)


def reborn_anew(taken: Taken) -> bool:
    """Whether nothing is held of a former life when a greater one says that it is there."""
    if not (isinstance(taken.input, Received) and isinstance(taken.input.message, JoinRing)):
        return True
    sender, life = taken.input.sender, taken.input.message.life
    before = taken.before.rows.get(sender)
    return before is None or before.life >= life or not taken.after.rows[sender].names


def only_the_last_answered(taken: Taken) -> bool:
    """Whether a holder is waited for until it has answered the last word."""
    if not (isinstance(taken.input, Received) and isinstance(taken.input.message, OffersHeld)):
        return True
    before, after = (one.rows.get(taken.input.sender) for one in (taken.before, taken.after))
    said = taken.input.message
    answers = (said.of, said.number) == (taken.before.life, taken.before.number)
    return before is None or answers or before.life != after.life or not before.waits or bool(after.waits)


def silent_is_away(taken: Taken) -> bool:
    """Whether nobody is asked again who did not answer."""
    if not isinstance(taken.input, TimerFired) or taken.input.name not in getattr(taken.before, "asking", ()):
        return True
    return taken.after.rows[taken.before.asking[taken.input.name].asked[-1]].state not in ("new", "here")


def farewells_hold(taken: Taken) -> bool:
    """Whether a life that has said that it leaves is heard no more."""
    if not isinstance(taken.input, Received):
        return True
    before, after = (one.rows.get(taken.input.sender) for one in (taken.before, taken.after))
    return before is None or before.state != "left" or after.life > before.life or after.state == "left"


def stale(machine: Any) -> Iterator[Input]:
    """Words of lives that are over."""
    if not hasattr(machine, "levels"):
        return
    for site, row in machine.rows.items():
        if site != machine.name and row.life > 0:
            life = row.life - 1
            for word in (JoinRing(life), LeaveRing(life), OffersHeld(life, machine.life, machine.number)):
                yield Received(site, word)
            yield Received(site, PutOffers(life, row.number + 1, 0.0, ("late",)))
        if site != machine.name and row.life > 0 and row.given:
            yield Received(site, OffersHeld(row.life, machine.life - 1, machine.number))
        if site != machine.name and row.life > 0 and row.state == "here":
            yield Received(site, TellOffers(UNKNOWN, "late"))
            for number, asking in machine.asking.items():
                yield Received(site, TellOffers(int(number), "late"))
                if site != asking.asked[-1]:
                    yield Received(site, TellOffers(int(number), asking.name))


def blank(taken: Taken) -> bool:
    """Whether of sites that are away or have left nothing is waited for, and nothing is held without a lease."""
    return all(
        bool(row.names) <= bool(row.left) and (row.state not in ("away", "left") or not (row.given or row.waits))
        for site, row in taken.after.rows.items()
        if site != taken.after.name
    )


def probes_go_round(taken: Taken) -> bool:
    """Whether of several sites that are away another one is asked at every beat."""
    if not isinstance(taken.input, Beat):
        return True
    away = [site for site, row in taken.after.rows.items() if row.state == "away"]
    return not away or (taken.after.probed in away and (len(away) < 2 or taken.after.probed != taken.before.probed))


def questions(machine: Any) -> set[str]:
    """The timers of a directory: one for each question."""
    return {*machine.asking} if hasattr(machine, "asking") else {*machine.rows}


def sparing(taken: Taken) -> bool:
    """Whether loads are told only where they leave their level."""
    return not isinstance(taken.input, Loaded) or not (
        taken.effects and taken.before.levels.stays(taken.before.level, taken.input.load)
    )


def world(
    name: str,
    sites: str,
    acts: str,
    directory: type[Directory] = Directory,
    copies: int = 2,
    lossy: bool = False,
    absent: str = "",
    **faults: Any,
) -> World:
    """Sites that are there from the start, and what happens: scripts, `site word argument; ...` between commas.

    Those that are `absent` never come. Words are lost, doubled or overtake others at any time where it is `lossy`: then
    only the end is asked for, and what always holds.
    """
    names = tuple(sites.split())
    limits = Limits(copies=copies, lease=LEASE, patience=2)
    scripts = tuple(_script(text, names) for text in acts.split(", ") if text)
    begin: tuple[tuple[Act, ...], ...] = ((Act(CLOCK, Begin(())),),)
    started = {script[0].site for script in scripts if isinstance(script[0].fact, Begin)}
    begin += tuple((Act(site, Begin(names)),) for site in names if site not in {*started, *absent.split()})
    acts_ = (*begin, *scripts)
    ground = Yard(names, acts_, (0,) * len(acts_))

    def reborn(site: str, ground: Yard | None) -> Machine:
        return Clock(CLOCK) if site == CLOCK else directory(site, ground.life(site) if ground else 1, limits, LEVELS)

    def over(view: View) -> bool:
        held: Yard = view.ground
        acted = all(at == len(script) for at, script in zip(held.done, held.acts, strict=True))
        return acted and calm(view) and not held.seeking and exact(view) and banded(view)

    def machines() -> dict[str, Machine]:
        return {one: reborn(one, None) for one in (CLOCK, *names)}

    claims: dict[str, Any] = {
        **strange.passing(machines, names, stale),
        TWICE: lambda view: view.ground.fault != TWICE,
        INVENTED: lambda view: view.ground.fault != INVENTED,
        TOLD: told_in_this_life,
    }
    if not lossy:
        claims[STALE] = not_stale
        claims[EXACT] = lambda view: not calm(view) or exact(view)
        claims[BAND] = lambda view: not calm(view) or banded(view)
    return World(
        name,
        machines,
        ground,
        (),
        claims,
        over,
        reborn,
        steps={AGES: ages, OLDER: in_order, LIVES: reborn_anew, SPARING: sparing, ANSWERED: only_the_last_answered,
               SILENT: silent_is_away, FAREWELL: farewells_hold, BLANK: blank, ROUND: probes_go_round,
               TIMED: timed(questions)},
        **faults,
    )  # fmt: skip


def _script(text: str, names: tuple[str, ...]) -> tuple[Act, ...]:
    acts = []
    for part in text.split("; "):
        site, word, *rest = part.split()
        acts.append(Act(site, _fact(word, rest, names)))
    return tuple(acts)


def _fact(word: str, rest: list[str], names: tuple[str, ...]) -> Input:
    match word:
        case "begins":
            return Begin(names)
        case "offers":
            return OffersAre(tuple(rest))
        case "loaded":
            return Loaded(float(rest[0]))
        case "seeks":
            return Seek(int(rest[0]), rest[1])
    assert word == "ends", word
    return End()


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of the directory; as published it is a ring of Pastry's, which is not printed."""

    def of(name: str, sites: str, acts: str, **more: Any) -> World:
        return world(name, sites, acts, **machines, **more)

    usual = (
        of("offered and withdrawn", "a b", "a begins; a offers s; a offers t; a seeks 1 s"),
        of("loads", "a b", "a begins; a loaded 1.1; a loaded 0.8; a loaded 0.5; a loaded 5"),
        of("two offer the same", "a b", "a begins; a offers s, b begins; b offers s; b offers; b seeks 1 s"),
        of("one of two leaves", "a b", "a begins; a offers s; a ends"),
        of("one of three leaves", "a b c", "b begins; b offers s; b ends"),
        of("two of three never come", "a b c", "a begins", absent="b c"),
        of("a lost word", "a b", "a begins; a offers s, b begins; b seeks 1 s", lose=1, lossy=True),
        of("one copy, a lost word", "a b", "a begins; a offers s; a seeks 1 s, b begins; b seeks 2 s", copies=1, lose=1,
           lossy=True),
        of("a lost farewell", "a b", "a begins; a offers s; a ends", lose=1, lossy=True),
        of("a doubled word", "a b", "a begins; a offers s; a offers t", double=1),
        of("words that overtake", "a b", "a begins; a offers s; a offers", overtake=1),
        of("one leaves, a word that comes late", "a b", "a begins; a offers s; a ends", overtake=1, lossy=True),
        of("one who offers crashes", "a b", "a begins; a offers s; a offers", mortal=("a",), crash=1),
        of("one who holds crashes", "a b", "a begins; a offers s, b begins; b seeks 1 s", mortal=("b",), crash=1),
    )  # fmt: skip
    if not long:
        return usual
    return (
        *usual,
        of("three, one crashes", "a b c", "a begins; a offers s, b begins", mortal=("b",), crash=1,
           states_max=8_000_000),
        of("two words lost", "a b", "a begins; a offers s; a offers t, b begins; b seeks 1 s", lose=2, lossy=True),
    )  # fmt: skip
