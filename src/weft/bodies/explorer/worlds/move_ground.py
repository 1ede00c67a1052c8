"""The ground under a change of placement: streams, checkpoints, half-written batches, fences, the journal.

A batch takes one record of what a piece reads, and has two steps: the first output is written; the others are, and the
checkpoint. What ends between the two leaves a half-written batch, which only its own checkpoint can complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from weft.bodies.explorer.world import Choice
from weft.bodies.explorer.worlds.move_plan import CHANNEL, MoveCase, Piece, Sites
from weft.protocol import Effect, Input
from weft.protocol.hosting import Died, Drained, Fence, FragmentUp, Halt, Halted, Launch, Launched, Refused, Remember
from weft.protocol.moving import (
    Change,
    Changed,
    ChannelDrained,
    Cool,
    Decide,
    Decided,
    Drain,
    InForce,
    Moot,
    NotChanged,
    NotWarmed,
    Start,
    Turn,
    Undecided,
    Warm,
    Warmed,
    least_epoch,
)

DESK = "conductor"
LAUNCHING, ALIVE, FINISHING, HALTING = "launching", "alive", "finishing", "halting"
REFUSED, ORPHAN = "refused", "orphan"
ENDABLE = (LAUNCHING, ALIVE, FINISHING)

UNFENCED = "a piece is launched only behind its own fence"
CROWDED = "a site has at most one launch of a piece alive"
ELSEWHERE = "only what the plan in force has is launched, and only where it has it"
DOUBLED = "no record is written twice to a stream, none is skipped"
STATE = "state has seen every record before the one it sees, once"
BOUNDARY = "a plan is decided only when all it ends has ended, at a batch boundary"
HASTY = "a clean halt is asked for once; again would be force"
VERDICT = "a change is called changed or not changed once, and as the journal has it"
FAULTS = (UNFENCED, CROWDED, ELSEWHERE, DOUBLED, STATE, BOUNDARY, HASTY, VERDICT)


class Batch(Input, frozen=True):
    """A step of a batch, of which no machine hears."""

    fragment: str
    epoch: int
    step: str


class Written(Input, frozen=True):
    """The journal is written, and nobody knows yet."""

    number: int


class Checkpoint(NamedTuple):
    """How far a piece has come: records taken, whether a batch is half written, and what the state has seen."""

    taken: int = 0
    half: bool = False
    state: int = 0


class Life(NamedTuple):
    """A launch."""

    site: str
    fragment: str
    epoch: int
    phase: str
    piece: Piece


class Plant(msgspec.Struct, frozen=True):
    """What really is: what runs where, what streams, checkpoints, disks and the journal hold."""

    case: MoveCase
    sites: Sites
    checkpoints: tuple[tuple[str, Checkpoint], ...]
    deaths_left: int = 0
    undecided_left: int = 0
    silent_left: int = 0
    number: int = 0
    sinks: tuple[tuple[str, int], ...] = ()
    channel: tuple[int, ...] = ()
    fences: tuple[tuple[str, int], ...] = ()
    lives: tuple[Life, ...] = ()
    disks: tuple[tuple[str, str, int], ...] = ()
    resuming: bool = True
    resumed: int = 0
    turn: int = 0
    warm: tuple[tuple[int, str, str, bool], ...] = ()
    drains: tuple[tuple[int, str, str], ...] = ()
    deciding: int = 0
    said: tuple[tuple[int, bool], ...] = ()
    cold: bool = False
    refusals: bool = False
    missed: bool = False
    fault: str = ""

    @property
    def plan(self) -> dict[str, Piece]:
        """The pieces in force."""
        return self.case.cut(self.sites)

    def writes(self, life: Life) -> bool:
        """Whether a launch could commit something now."""
        fences = dict(self.fences)
        return life.phase != REFUSED and any(life.epoch >= fences.get(stream, 0) for stream in life.piece.writes)

    def writers(self, operator: str) -> list[Life]:
        """The launches that could commit something of an operator now."""
        return [life for life in self.lives if operator in life.piece.operators and self.writes(life)]

    def perform(self, site: str, effect: Effect) -> Plant:
        """The ground after an effect."""
        match effect:
            case Remember(fragment, epoch):
                held = {one[:2]: one[2] for one in self.disks}
                held[site, fragment] = max(epoch, held.get((site, fragment), 0))
                return self.but(disks=tuple(sorted((*key, greatest) for key, greatest in held.items())))
            case Fence(fragment, epoch):
                return self.fence(fragment, epoch)
            case Launch(fragment, epoch):
                return self.launch(site, fragment, epoch)
            case Halt(fragment, epoch, clean):
                waiting = any(not ready for *_, ready in self.warm)
                twice = clean and any(one[:4] == (site, fragment, epoch, FINISHING) for one in self.lives)
                halted = self.phase((site, fragment, epoch), ENDABLE, FINISHING if clean else HALTING)
                return halted.but(cold=self.cold or (clean and waiting), fault=HASTY if twice else self.fault)
            case FragmentUp(fragment):
                alive = any(one.fragment == fragment and one.phase == ALIVE for one in self.lives)
                return self.but(missed=self.missed or not (alive or self.case.may_drain))
            case Turn(number):
                return self.but(turn=number)
            case Warm(number, fragment, where):
                return self.but(warm=tuple(sorted((*self.warm, (number, fragment, where, False)))))
            case Cool(number, fragment, where):
                return self.but(warm=tuple(one for one in self.warm if one[:3] != (number, fragment, where)))
            case Drain(number, channel, fragment):
                return self.but(drains=tuple(sorted((*self.drains, (number, channel, fragment)))))
            case Decide(number):
                return self.but(deciding=number)
            case Changed(number, reason) | NotChanged(number, reason):
                return self.verdict(number, isinstance(effect, Changed), reason)
        return self

    def fence(self, fragment: str, epoch: int) -> Plant:
        """The streams of the piece in force, fenced; an orphan that can write no more is gone."""
        fences = dict(self.fences)
        if fragment in self.plan:
            for stream in self.plan[fragment].writes:
                fences[stream] = max(epoch, fences.get(stream, 0))
        fenced = self.but(fences=tuple(sorted(fences.items())))
        return fenced.but(lives=tuple(one for one in self.lives if one.phase != ORPHAN or fenced.writes(one)))

    def launch(self, site: str, fragment: str, epoch: int) -> Plant:
        """A launch, and what was wrong with it."""
        piece = self.plan.get(fragment)
        if piece is not None and piece.site != site and self.was_taken_over(epoch):
            piece = piece._replace(site=site)  # a site that is not gone after all, and has not heard of it
        if piece is None or piece.site != site:
            return self.but(fault=ELSEWHERE)
        fences = dict(self.fences)
        fault = self.fault
        if any(epoch > fences.get(stream, 0) for stream in piece.writes):
            fault = UNFENCED
        elif any(one[:2] == (site, fragment) and one.phase != ORPHAN for one in self.lives):
            fault = CROWDED
        refused = any(epoch < fences[stream] for stream in piece.writes)
        life = Life(site, fragment, epoch, REFUSED if refused else LAUNCHING, piece)
        warm = tuple(one for one in self.warm if one[1:3] != (fragment, site) or one[0] > self.number)
        lives = tuple(sorted((*self.lives, life)))
        refusals = self.refusals or (refused and not self.was_taken_over(epoch))
        return self.but(lives=lives, warm=warm, fault=fault, refusals=refusals)

    def was_taken_over(self, epoch: int) -> bool:
        """True if an epoch is from before some site was taken to be gone."""
        return any(number <= self.number and epoch <= least_epoch(number) for number in self.case.taken_over)

    def verdict(self, number: int, changed: bool, reason: str) -> Plant:
        """What was said of a change, and whether it is so."""
        made = self.number == number > self.resumed
        wrong = changed != made or number in dict(self.said)
        said = tuple(sorted((*self.said, (number, changed))))
        missed = self.missed or "does not run yet" in reason
        return self.but(said=said, fault=VERDICT if wrong else self.fault, missed=missed)

    def choices(self) -> Iterator[Choice]:
        """What may happen next."""
        if self.resuming:
            starts = tuple(Start(name, piece.site) for name, piece in self.plan.items())
            yield Choice(DESK, InForce(self.number, starts), self.but(resuming=False))
        for choice in self.changing():
            yield choice
            assert isinstance(choice.after, Plant)
            if self.silent_left and choice.due and choice.heard:
                after = choice.after.but(silent_left=self.silent_left - 1)
                yield Choice(DESK, choice.fact, after, due=False, heard=False)
        for life in self.lives:
            yield from self.living(life)

    def changing(self) -> Iterator[Choice]:
        """What the body may answer to a change under way."""
        case = self.case
        if self.turn:
            answer: Input = Moot(self.turn, "it cannot be, or is so already")
            if self.turn not in case.refused and self.turn > self.number:
                ends, starts, lost = case.change(self.sites, self.turn)
                answer = Change(self.turn, ends, starts, lost or None)
            yield Choice(DESK, answer, self.but(turn=0))
        for one in self.warm:
            number, fragment, _, ready = one
            if not ready:
                rest = tuple(other for other in self.warm if other != one)
                warmed = self.but(warm=tuple(sorted((*rest, (*one[:3], True)))))
                if number in case.impossible:
                    yield Choice(DESK, NotWarmed(number, fragment, "it cannot run there", True), warmed)
                    continue
                yield Choice(DESK, Warmed(number, fragment), warmed)
                if case.soft:
                    yield Choice(DESK, NotWarmed(number, fragment, "busy"), warmed, due=False)
        for drain in self.drains:
            checkpoint = dict(self.checkpoints).get(drain[2], Checkpoint())
            if checkpoint.taken == len(self.channel) and not checkpoint.half:
                after = self.but(drains=tuple(other for other in self.drains if other != drain))
                yield Choice(DESK, ChannelDrained(*drain), after)
        if self.deciding and self.deciding == self.number:
            yield Choice(DESK, Decided(self.number), self.but(deciding=0))
        elif self.deciding:
            yield Choice(DESK, Written(self.deciding), self.decided(self.deciding), heard=False)
            if self.undecided_left:
                after = self.but(deciding=0, undecided_left=self.undecided_left - 1)
                yield Choice(DESK, Undecided(self.deciding, "the disk is full"), after, due=False)

    def decided(self, number: int) -> Plant:
        """The journal written: the new plan, and a checkpoint for everything it starts."""
        ends, starts, lost = self.case.change(self.sites, number)
        old, held = self.plan, dict(self.checkpoints)
        sites = self.case.after(self.sites, number)
        new = self.case.cut(sites)
        fault = self.fault
        for end in ends:
            if held[end.fragment].half or any(one.fragment == end.fragment for one in self.lives):
                fault = BOUNDARY
        ended = {end.fragment: held.pop(end.fragment) for end in ends}
        for start in starts:
            if start.fragment in lost:
                continue  # it goes on from its own checkpoint, though a batch be half written
            reads, state = new[start.fragment].reads, 0
            taken = len(self.channel) if reads == CHANNEL else 0
            for name, checkpoint in ended.items():
                taken = checkpoint.taken if old[name].reads == reads else taken
                state = checkpoint.state if "2" in old[name].operators else state
            held[start.fragment] = Checkpoint(taken, False, state if "2" in new[start.fragment].operators else 0)
        checkpoints = tuple(sorted(held.items()))
        return self.but(number=number, sites=sites, checkpoints=checkpoints, fault=fault)

    def living(self, life: Life) -> Iterator[Choice]:
        """What one launch may do next."""
        site, fragment, epoch, phase, _ = life
        fences = dict(self.fences)
        gone = self.but(lives=tuple(one for one in self.lives if one != life))
        half = dict(self.checkpoints)[fragment].half if fragment in dict(self.checkpoints) else False
        if phase == REFUSED:
            fence = max(fences.get(stream, 0) for stream in life.piece.writes)
            yield Choice(site, Refused(fragment, epoch, fence), gone)
            return
        yield from self.batch(life, half)
        if phase == ORPHAN:
            return
        fenced = any(epoch < fences.get(stream, 0) for stream in life.piece.writes)
        match phase:
            case "launching":
                yield Choice(site, Launched(fragment, epoch), self.phase(life[:3], (LAUNCHING,), ALIVE))
            case "halting":
                yield Choice(site, Halted(fragment, epoch, clean=not half), gone)
            case "finishing" if not half:
                yield Choice(site, Halted(fragment, epoch, clean=True), gone)
            case "finishing" | "alive" if fenced:
                # A launch meets the fence when it next commits; one without records may never do so.
                yield Choice(site, Died(fragment, epoch, "fenced"), gone, due=phase == FINISHING)
        taken_all = not half and dict(self.checkpoints)[fragment].taken == self.case.records
        if self.case.may_drain and taken_all and phase != LAUNCHING:
            yield Choice(site, Drained(fragment, epoch), gone, due=False)
        if self.deaths_left:
            dead = gone.but(deaths_left=self.deaths_left - 1)
            yield Choice(site, Died(fragment, epoch, "died"), dead, due=False)
            if phase == FINISHING and half:
                yield Choice(site, Halted(fragment, epoch, clean=False), dead, due=False)

    def batch(self, life: Life, half: bool) -> Iterator[Choice]:
        """The next step of a batch, where one can be taken."""
        working = life.phase in (ALIVE, ORPHAN) or (life.phase == FINISHING and half)
        checkpoint = dict(self.checkpoints).get(life.fragment)
        if not working or checkpoint is None:
            return
        piece, fences = life.piece, dict(self.fences)
        there = len(self.channel) if piece.reads == CHANNEL else self.case.records
        targets = piece.writes[1:] if half else piece.writes[:1]
        if checkpoint.taken >= there or any(life.epoch < fences.get(stream, 0) for stream in targets):
            return
        record = self.channel[checkpoint.taken] if piece.reads == CHANNEL else checkpoint.taken
        sinks, channel, fault = dict(self.sinks), self.channel, self.fault
        for stream in targets:
            before = channel[-1] + 1 if channel else 0
            if record < before if stream == CHANNEL else record != sinks.get(stream, 0):
                fault = DOUBLED
            if stream == CHANNEL:
                channel = (*channel, record)
            else:
                sinks[stream] = record + 1
        state = checkpoint.state
        if half and "2" in piece.operators:
            fault = STATE if state != record else fault
            state += 1
        after = Checkpoint(checkpoint.taken + half, not half, state)
        checkpoints = tuple(sorted({**dict(self.checkpoints), life.fragment: after}.items()))
        ground = self.but(checkpoints=checkpoints, sinks=tuple(sorted(sinks.items())), channel=channel, fault=fault)
        told = Batch(life.fragment, life.epoch, "committed" if half else "half written")
        yield Choice(life.site, told, ground, due=life.phase != ORPHAN, heard=False)

    def crash(self, site: str) -> Plant:
        """An agent's launches live on unseen until they are fenced; of the desk only what it wrote down remains."""
        if site == DESK:
            return self.but(resuming=True, resumed=self.number, turn=0, warm=(), drains=(), deciding=0, said=())
        lives = []
        for one in self.lives:
            if one.site != site or one.phase == ORPHAN:
                lives.append(one)
            elif self.writes(one):
                lives.append(one._replace(phase=ORPHAN))
        return self.but(lives=tuple(sorted(lives)))

    def phase(self, where: tuple[str, str, int], before: tuple[str, ...], after: str) -> Plant:
        """The ground with one launch in another phase."""
        lives = (one._replace(phase=after) if one[:3] == where and one.phase in before else one for one in self.lives)
        return self.but(lives=tuple(sorted(lives)))

    def but(self, **changes: Any) -> Plant:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)


def plant(case: MoveCase) -> Plant:
    """The ground before anything has run."""
    checkpoints = tuple(sorted((name, Checkpoint()) for name in case.cut(case.sites)))
    return Plant(case, case.sites, checkpoints, *case.faults)
