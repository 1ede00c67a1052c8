"""The ground under a change of placement: streams, checkpoints, half-written batches, fences, the journal.

A batch takes one record of what a piece reads, and has two steps: the first output is written; the others are, and the
checkpoint. What ends between the two leaves a half-written batch, which only its own checkpoint can complete.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.bodies.explorer.world import Choice
from weft.bodies.explorer.worlds.move_ahead import asked_ahead, goes_on, preparing
from weft.bodies.explorer.worlds.move_plan import CHANNEL, MoveCase, piece_of
from weft.bodies.explorer.worlds.move_words import (
    ALIVE,
    BOUNDARY,
    CARRIED,
    CROWDED,
    DESK,
    DOUBLED,
    ELSEWHERE,
    ENDABLE,
    ENDING,
    FINISHING,
    HALTING,
    HASTY,
    LAUNCHING,
    ORPHAN,
    REFUSED,
    STATE,
    TELLING,
    UNFENCED,
    VERDICT,
    Batch,
    Checkpoint,
    Held,
    Life,
    Written,
)
from weft.protocol import Effect, Input
from weft.protocol.hosting import (
    Died,
    Drained,
    Fence,
    FragmentUp,
    Halt,
    Halted,
    LastBatchBegun,
    Launch,
    Launched,
    Refused,
    Remember,
)
from weft.protocol.moving import (
    Carry,
    Change,
    Changed,
    Cool,
    Decide,
    Decided,
    Drain,
    InForce,
    LetIn,
    Moot,
    NotChanged,
    Start,
    Turn,
    Undecided,
    Warm,
    least_epoch,
)
from weft.protocol.words import Parcel


class Plant(Held, frozen=True):
    """The ground, and what may happen on it."""

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
            case Fence(_, epoch, task):
                return self.fence(task, epoch)
            case Launch(fragment, epoch, task):
                return self.launch(site, fragment, epoch, task)
            case Halt(fragment, epoch, clean, tells):
                waiting = any(not one.ready for one in self.warm)
                twice = clean and any(one[:3] == (site, fragment, epoch) and one.phase in ENDING for one in self.lives)
                phase = (TELLING if tells else FINISHING) if clean else HALTING
                halted = self.phase((site, fragment, epoch), ENDABLE, phase)
                return halted.but(cold=self.cold or (clean and waiting), fault=HASTY if twice else self.fault)
            case FragmentUp(fragment):
                alive = any(one.fragment == fragment and one.phase == ALIVE for one in self.lives)
                return self.but(missed=self.missed or not (alive or self.case.may_drain))
            case Turn(number):
                return self.but(turn=number)
            case Warm(number, fragment) | Carry(number, fragment) | Cool(number, fragment) | LetIn(number, fragment):
                return asked_ahead(self, site, number, fragment, effect)
            case Drain(number, channel, fragment, after):
                asked = {one for one in self.drains if one[2:4] != (channel, fragment)}
                return self.but(drains=tuple(sorted((*asked, (site, number, channel, fragment, after)))))
            case Decide(number):
                return self.but(deciding=number)
            case Changed(number, reason) | NotChanged(number, reason):
                return self.verdict(number, isinstance(effect, Changed), reason)
        return self

    def fence(self, task: Parcel, epoch: int) -> Plant:
        """The streams of a piece, fenced; an orphan that can write no more is gone."""
        fences = dict(self.fences)
        for stream in piece_of(task).writes:
            fences[stream] = max(epoch, fences.get(stream, 0))
        fenced = self.but(fences=tuple(sorted(fences.items())))
        return fenced.but(lives=tuple(one for one in self.lives if one.phase != ORPHAN or fenced.writes(one)))

    def launch(self, site: str, fragment: str, epoch: int, task: Parcel) -> Plant:
        """A launch, and what was wrong with it."""
        piece = piece_of(task)
        # A site that is not gone after all may not have heard of it.
        if piece.site != site or (self.plan.get(fragment) != piece and not self.was_taken_over(epoch)):
            return self.but(fault=ELSEWHERE)
        fences = dict(self.fences)
        fault = self.fault
        if any(epoch > fences.get(stream, 0) for stream in piece.writes):
            fault = UNFENCED
        elif any(one[:2] == (site, fragment) and one.phase != ORPHAN for one in self.lives):
            fault = CROWDED
        refused = any(epoch < fences[stream] for stream in piece.writes)
        life = Life(site, fragment, epoch, REFUSED if refused else LAUNCHING, piece)
        warm = tuple(one for one in self.warm if (one.fragment, one.site) != (fragment, site))
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
            starts = tuple(Start(name, piece.site, piece.task) for name, piece in self.plan.items())
            # What was heard of sites may be from before they started it last.
            before = self.found if self.case.outdated else ()
            older = tuple((fragment, epoch - 1) for fragment, epoch in before if epoch > 1)
            for found in dict.fromkeys((None, self.found or None, older or None)):
                yield Choice(DESK, InForce(self.number, starts, found), self.but(resuming=False, found=()))
        for choice in self.changing():
            yield choice
            assert isinstance(choice.after, Plant)
            if self.silent_left and choice.due and choice.heard:
                after = choice.after.but(silent_left=self.silent_left - 1)
                yield Choice(DESK, choice.fact, after, due=False, heard=False)
        yield from preparing(self)
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
        if self.deciding and self.deciding == self.number:
            tasks = tuple((name, piece.task) for name, piece in self.plan.items())
            yield Choice(DESK, Decided(self.number, tasks), self.but(deciding=0))
        elif self.deciding:
            yield Choice(DESK, Written(self.deciding), self.decided(self.deciding), heard=False)
            if self.undecided_left:
                after = self.but(deciding=0, undecided_left=self.undecided_left - 1)
                yield Choice(DESK, Undecided(self.deciding, "the disk is full"), after, due=False)

    def decided(self, number: int) -> Plant:
        """The journal written: the new plan, and a checkpoint for everything it starts, as it was carried over."""
        ends, starts, lost = self.case.change(self.sites, number)
        held, fault = dict(self.checkpoints), self.fault
        for end in ends:
            alive = any(one.fragment == end.fragment and self.writes(one) for one in self.lives)
            fault = BOUNDARY if held[end.fragment].half or alive else fault
        # What was lost goes on from its own checkpoint, though a batch be half written.
        begun = {one.fragment: goes_on(self, number, one.fragment) for one in starts if one.fragment not in lost}
        carried = {one[0]: one[3] for one in self.carried if one[1] == number}
        if begun != carried:
            fault = CARRIED
        kept = {name: checkpoint for name, checkpoint in held.items() if name not in [end.fragment for end in ends]}
        checkpoints = tuple(sorted({**kept, **begun}.items()))
        sites = self.case.after(self.sites, number)
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
        stands = Parcel(f"{fragment} {epoch}")
        if phase == TELLING:
            yield Choice(site, LastBatchBegun(fragment, epoch, stands), self.phase(life[:3], (TELLING,), FINISHING))
        match phase:
            case "launching":
                yield Choice(site, Launched(fragment, epoch, stands), self.phase(life[:3], (LAUNCHING,), ALIVE))
            case "halting":
                yield Choice(site, Halted(fragment, epoch, not half, stands), gone)
            case "finishing" | "telling" if not half:
                yield Choice(site, Halted(fragment, epoch, True, stands), gone)
            case "finishing" | "telling" | "alive" if fenced:
                # A launch meets the fence when it next commits; one without records may never do so.
                yield Choice(site, Died(fragment, epoch, "fenced"), gone, due=phase in ENDING)
        taken_all = not half and dict(self.checkpoints)[fragment].taken == self.case.records
        if self.case.may_drain and taken_all and phase != LAUNCHING:
            yield Choice(site, Drained(fragment, epoch, stands), gone, due=False)
        if self.deaths_left:
            dead = gone.but(deaths_left=self.deaths_left - 1)
            yield Choice(site, Died(fragment, epoch, "died"), dead, due=False)
            if phase in ENDING and half:
                yield Choice(site, Halted(fragment, epoch, clean=False), dead, due=False)

    def batch(self, life: Life, half: bool) -> Iterator[Choice]:
        """The next step of a batch, where one can be taken."""
        working = life.phase in (ALIVE, ORPHAN) or (life.phase in ENDING and half)
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
        """A site's launches live on unseen until they are fenced; of the desk only what it wrote down remains."""
        if site == DESK:
            runs = ((one.fragment, one.epoch) for one in self.lives if self.runs_as_planned(one))
            found = tuple(sorted(runs))
            return self.but(resuming=True, found=found, resumed=self.number, turn=0, deciding=0, said=())
        lives = []
        for one in self.lives:
            if one.site != site or one.phase == ORPHAN:
                lives.append(one)
            elif self.writes(one):
                lives.append(one._replace(phase=ORPHAN))
        warm, carrying = (tuple(one for one in those if one.site != site) for those in (self.warm, self.carrying))
        drains = tuple(one for one in self.drains if one[0] != site)
        return self.but(lives=tuple(sorted(lives)), warm=warm, carrying=carrying, drains=drains)

    def runs_as_planned(self, life: Life) -> bool:
        """Whether a site would say that it runs this, and the plan in force has it so."""
        return life.phase == ALIVE and self.plan.get(life.fragment) == life.piece

    def phase(self, where: tuple[str, str, int], before: tuple[str, ...], after: str) -> Plant:
        """The ground with one launch in another phase."""
        lives = (one._replace(phase=after) if one[:3] == where and one.phase in before else one for one in self.lives)
        return self.but(lives=tuple(sorted(lives)))


def plant(case: MoveCase) -> Plant:
    """The ground before anything has run."""
    checkpoints = tuple(sorted((name, Checkpoint()) for name in case.cut(case.sites)))
    return Plant(case, case.sites, checkpoints, *case.faults)
