"""What is around reports: sites where things happen, a desk that takes in and asks, and what was really so.

What happens at a site is text: `b` a batch, `c` a commit, `w` weights; they are numbered within a life of the site.
A site says again what the desk has not, when nothing else is under way; and at once what it is asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from weft.bodies.explorer.world import Choice
from weft.protocol import CancelTimer, Effect, Input, Machine, Message, Received, Send, SetTimer, TimerFired
from weft.protocol.machine import Row, Step, Steps
from weft.protocol.reporting import (
    AskReport,
    BatchDone,
    BatchWeighed,
    Committed,
    Event,
    FragmentNow,
    OutboxLimits,
    Report,
    Reported,
    SiteNow,
)
from weft.protocol.reporting.inbox import Heard
from weft.protocol.words import Parcel

DESK, FRAGMENT, REPORT, ASK = "desk", "f", "report", "ask"
UNSOUND = -99
"""How many batches one stands for that does not tell what they told."""
BATCHES, COMMITS, WEIGHTS = "b", "c", "w"

ONCE = "a desk takes every event once, in order"
GAP = "nothing is taken before what went before it"
SOUND = "what is taken is what happened"
WORK = "the work of all lives is counted, as far as it was told"


class Happens(Input, frozen=True):
    """Something happened at a site."""

    what: str
    number: int


class Begins(Input, frozen=True):
    """A site is there again."""


class AskAll(Input, frozen=True):
    """The desk wants to know all."""


class SiteGone(Input, frozen=True):
    """The desk hears that a site is gone."""

    site: str


class Letter(Message, frozen=True):
    """A report on its way; what stories show of it, and all of it."""

    life: str
    number: int
    first: int
    events: int
    answers: int
    whole: Parcel

    @property
    def report(self) -> Report:
        """The report."""
        return msgspec.json.decode(self.whole.text, type=Report)


class Asks(Effect, frozen=True):
    """The desk has asked all sites, for the first time under this number."""

    number: int


class Takes(Effect, frozen=True):
    """Events of a life of a site are new to the desk: kind, number, and how many batches it stands for."""

    site: str
    life: str
    events: tuple[tuple[str, int, int], ...]


class Hears(Effect, frozen=True):
    """The desk has heard a report: what it tells of work, and what the desk counts of it now."""

    site: str
    life: str
    number: int
    told_s: float
    counted_s: float


class Telling(Row):
    """How much has happened at a site, in this life."""

    state: str = "telling"
    happened: int = 0
    asked: bool = False


class Teller(Machine):
    """A site that reports."""

    __slots__ = ("box", "life")
    ROW: ClassVar[type[Row]] = Telling

    def __init__(self, name: str, life: int, box: Any) -> None:
        super().__init__(name)
        self.life, self.box = life, box

    def key(self, input: Any) -> str:
        """There is one outbox."""
        return REPORT

    def extra(self) -> Any:
        """All that the outbox holds."""
        return self.life, {name: list(one) if isinstance(one, deque) else one for name, one in vars(self.box).items()}

    def set_extra(self, extra: Any) -> None:
        """Takes it back."""
        self.life, held = extra
        for name, one in held.items():
            if name != "limits":
                setattr(self.box, name, deque(msgspec.convert(one, list[Event])) if isinstance(one, list) else one)

    def on_happens(self, key: str, row: Telling, input: Happens) -> list[Effect]:
        """It is to be told."""
        row.happened += 1
        self.box.add(_event(input.what, input.number))
        return [SetTimer(REPORT, 1)]

    def on_begins(self, key: str, row: Telling, input: Begins) -> list[Effect]:
        """It reports how it stands."""
        return [SetTimer(REPORT, 1)]

    def on_timer(self, key: str, row: Telling, input: TimerFired) -> list[Effect]:
        """Says what the desk has not."""
        return self.report(row, 0)

    def on_asked(self, key: str, row: Telling, input: Received) -> list[Effect]:
        """Says all."""
        row.asked = True
        return self.report(row, input.message.number)  # type: ignore[attr-defined]

    def on_reported(self, key: str, row: Telling, input: Received) -> list[Effect]:
        """The desk has some of it; there may be more to say."""
        answer: Any = input.message
        self.box.heard(answer.life, answer.upto)
        return [SetTimer(REPORT, 1)] if self.box.waits else []

    def report(self, row: Telling, answers: int) -> list[Effect]:
        """What is to be said now; again later, unless there is nothing."""
        now = SiteNow((FragmentNow(FRAGMENT, self.life, 0, taken=row.happened),), float(row.happened))
        reports = self.box.reports(now, float(self.life), answers)
        again: list[Effect] = [SetTimer(REPORT, 1)] if any(one.events for one in reports) or self.box.waits else []
        return [*(Send(DESK, _letter(one)) for one in reports), *again]

    STEPS: ClassVar[Steps] = {
        ("telling", Begins): Step(on_begins, ("telling",)),
        ("telling", Happens): Step(on_happens, ("telling",)),
        ("telling", TimerFired): Step(on_timer, ("telling",)),
        ("telling", AskReport): Step(on_asked, ("telling",)),
        ("telling", Reported): Step(on_reported, ("telling",)),
    }


class Hearing(Row):
    """The last question of a desk, 0 before it has asked."""

    state: str = "hearing"
    question: int = 0


class Listener(Machine):
    """A desk that takes reports in, and asks until it knows all."""

    __slots__ = ("box", "first", "sites")
    ROW: ClassVar[type[Row]] = Hearing

    def __init__(self, name: str, first: int, sites: tuple[str, ...], box: Any) -> None:
        super().__init__(name)
        self.first, self.sites, self.box = first, sites, box

    def key(self, input: Any) -> str:
        """There is one inbox."""
        return ASK

    def extra(self) -> Any:
        """All that the inbox holds."""
        return self.first, self.box.sites

    def set_extra(self, extra: Any) -> None:
        """Takes it back."""
        self.first = extra[0]
        self.box.sites = msgspec.convert(extra[1], dict[str, Heard])

    def on_report(self, key: str, row: Hearing, input: Received) -> list[Effect]:
        """What is new counts before it is answered."""
        report: Report = input.message.report  # type: ignore[attr-defined]
        events, answer = self.box.take(input.sender, report)
        new = tuple(_told(event) for event in events)
        taken: list[Effect] = [Takes(input.sender, report.life, new)] if new else []
        counted_s = self.box.cpu_s(input.sender)
        heard = Hears(input.sender, report.life, report.number, report.now.cpu_s, counted_s)
        return [*taken, heard, Send(input.sender, answer), *([] if self.missing(row) else [CancelTimer(ASK)])]

    def on_ask(self, key: str, row: Hearing, input: AskAll) -> list[Effect]:
        """Asks all; numbers are greater than any of an earlier life."""
        row.question = self.first
        return [Asks(row.question), *self.ask(row)]

    def on_timer(self, key: str, row: Hearing, input: TimerFired) -> list[Effect]:
        """Asks again."""
        return self.ask(row)

    def ask(self, row: Hearing) -> list[Effect]:
        """Asks those that have not told all."""
        return [*(Send(site, AskReport(row.question)) for site in self.missing(row)), SetTimer(ASK, 1)]

    def missing(self, row: Hearing) -> list[str]:
        """Who has not told all since it was asked."""
        held = self.box.sites
        return [site for site in self.sites if site not in held or held[site].complete < row.question]

    def on_gone(self, key: str, row: Hearing, input: SiteGone) -> list[Effect]:
        """How it stood tells nothing any more."""
        self.box.lose(input.site)
        return []

    STEPS: ClassVar[Steps] = {
        ("hearing", Letter): Step(on_report, ("hearing",)),
        ("hearing", AskAll): Step(on_ask, ("hearing",)),
        ("hearing", SiteGone): Step(on_gone, ("hearing",)),
        ("hearing", TimerFired): Step(on_timer, ("hearing",)),
    }


def _letter(report: Report) -> Letter:
    whole = Parcel(msgspec.json.encode(report).decode())
    return Letter(report.life, report.number, report.first, len(report.events), report.answers, whole)


def _event(what: str, number: int) -> Event:
    match what:
        case "b":
            return BatchDone(FRAGMENT, 0, number, 1, {"s": 1 << number}, {"s": 3}, {"o": 2}, {"s": number}, (1.0,))
        case "c":
            return Committed(FRAGMENT, "s", False, number, 1, number, 0.0)
    return BatchWeighed(FRAGMENT, "q", number)


def _adds_up(one: BatchDone) -> bool:
    """Whether batches that were joined tell what each of them told, and how large state is of the last."""
    which = one.sources.get("s", 0)  # a bit for each batch
    counts = (one.bad, one.operators, one.state_kb)
    wanted = ({"s": 3 * one.batches}, {"o": 2 * one.batches}, {"s": one.batch})
    summed = (which.bit_count(), which.bit_length() - 1, one.busy_ms, len(one.sync_ms))
    return counts == wanted and summed == (one.batches, one.batch, one.batches, one.batches)


def _told(event: Event) -> tuple[str, int, int]:
    match event:
        case BatchDone(batch=number, batches=batches):
            return BATCHES, number, batches if _adds_up(event) else UNSOUND
        case Committed(batch=number):
            return COMMITS, number, 1
    return WEIGHTS, event.start, 1


class Office(msgspec.Struct, frozen=True):
    """What is yet to happen, what happened in each life, and what desks have taken of it."""

    limits: OutboxLimits
    acts: tuple[tuple[str, str], ...]
    """By site, what is yet to happen."""
    happened: tuple[tuple[str, int, str], ...]
    """By site, which life this is, and what happened in it."""
    before: tuple[tuple[str, str, str], ...] = ()
    """By site and life, what happened in lives that are over."""
    taken: tuple[tuple[str, str, tuple[tuple[str, int, int], ...]], ...] = ()
    """By site and life, what desks have taken, the same more than once where a desk was lost."""
    upto: tuple[tuple[str, str, int], ...] = ()
    """By site and life, how many events the present desk has taken, or knew that a former one had."""
    work: tuple[tuple[str, str, int, float], ...] = ()
    """By site and life, the last report that the present desk has heard, and the work that it told of."""
    begins: tuple[str, ...] = ()
    """Sites that are there again, and do not know yet."""
    desk: int = 1
    asked: int = 0
    then: tuple[tuple[str, int, int], ...] = ()
    """When the desk asked: by site, which life it was, and how much had happened."""
    fault: str = ""

    @property
    def shrinks(self) -> bool:
        """Whether events may be joined, or given up."""
        return any(self.limits.waiting_max < len(what) for _, what in self.acts) or self.limits.waiting_max < 10

    def now(self, site: str) -> tuple[int, str]:
        """Which life of a site this is, and what happened in it."""
        return next((life, what) for one, life, what in self.happened if one == site)

    def perform(self, site: str, effect: Effect) -> Office:
        """The ground after an effect."""
        match effect:
            case Asks(number):
                return self.but(asked=number, then=tuple((one, life, len(what)) for one, life, what in self.happened))
            case Takes(whose, life, events):
                return self.take(whose, life, events)
            case Hears(whose, life, number, told_s, counted_s):
                return self.hear(whose, life, number, told_s, counted_s)
        return self

    def take(self, site: str, life: str, events: tuple[tuple[str, int, int], ...]) -> Office:
        """The desk has taken events."""
        fault = self.fault
        known = {(one, of): numbers for one, of, numbers in self.taken}
        held = known.get((site, life), ())
        said = {(one, of): count for one, of, count in self.upto}
        at = said.get((site, life))
        if not self.shrinks:
            what = {(one, of): all for one, of, all in self.before}
            what[site, str(self.now(site)[0])] = self.now(site)[1]
            for kind, number, _ in events:
                true = 0 < number <= len(what[site, life]) and what[site, life][number - 1] == kind
                if not true:
                    fault = fault or SOUND
                elif at is None and number > 1 and not any(one[1] == number - 1 for one in held):
                    fault = fault or GAP
                elif at is not None and number != at + 1:
                    fault = fault or (GAP if number > at else ONCE)
                at = number
        known[site, life] = tuple(sorted({*held, *events})) if not self.shrinks else (*held, *events)
        said[site, life] = at or 0
        return self.but(
            fault=fault, taken=tuple((*key, one) for key, one in sorted(known.items())),
            upto=tuple((*key, one) for key, one in sorted(said.items())),
        )  # fmt: skip

    def hear(self, site: str, life: str, number: int, told_s: float, counted_s: float) -> Office:
        """The desk has heard a report; of lives and reports that are over it tells no work."""
        work = self.work
        if not any(one == site and (of, at) >= (life, number) for one, of, at, _ in work):
            work = (*(one for one in work if one[:2] != (site, life)), (site, life, number, told_s))
        right = counted_s == sum(one[3] for one in work if one[0] == site)
        return self.but(work=tuple(sorted(work)), fault=self.fault or ("" if right else WORK))

    def choices(self) -> Iterator[Choice]:
        """What happens next at each site."""
        for site in self.begins:
            yield Choice(site, Begins(), self.but(begins=tuple(one for one in self.begins if one != site)))
        for site, acts in self.acts:
            if acts:
                rest = tuple((one, left[1:] if one == site else left) for one, left in self.acts)
                life, what = self.now(site)
                others = [one for one in self.happened if one[0] != site]
                happened = tuple(sorted([*others, (site, life, what + acts[0])]))
                yield Choice(site, Happens(acts[0], len(what) + 1), self.but(acts=rest, happened=happened))

    def crash(self, site: str) -> Office:
        """What a site had not told is lost with it; a desk knows nothing of what it has heard."""
        if site == DESK:
            return self.but(desk=self.desk + 1, upto=(), work=(), asked=0, then=())
        life, what = self.now(site)
        others = [one for one in self.happened if one[0] != site]
        return self.but(
            happened=tuple(sorted([*others, (site, life + 1, "")])), before=(*self.before, (site, str(life), what)),
            begins=tuple(sorted({*self.begins, site})),
        )  # fmt: skip

    def but(self, **changes: Any) -> Office:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)
