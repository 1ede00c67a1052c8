"""What a site has and who has how much of it: work, streams that come in, and how much must stay free for whom."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import field

from weft.plan.composing.impact import free_least, share, time_us
from weft.plan.composing.values import BANDWIDTH, CAPACITY, GONE, LATENCY, PROMISE, Broken, Graph
from weft.protocol.composing.branches import Branch, piece_of
from weft.protocol.composing.words import Confirm, End, Forget, Instance, Kept, Probe, Quest
from weft.protocol.machine import Effect, Machine, Row

ABSENT, PROBING, RESERVED, BARREN, CONFIRMED, HELD = (
    "absent", "probing", "reserved", "barren", "confirmed", "held",
)  # fmt: skip
STATES = (ABSENT, PROBING, RESERVED, BARREN, CONFIRMED, HELD)
NEVER_US = 1 << 60


class Feed(msgspec.Struct, array_like=True):
    """A stream that comes to a piece: which, from which site, how much it takes of the way, how long, its price."""

    before: str
    start: str
    kbps: int
    link_us: int = 0
    line: int = 0


class Spot(Row, array_like=True):
    """A piece of an attempt at this site."""

    state: str = ABSENT
    attempt: str = ""
    piece: str = ""
    owner: str = ""
    stream: str = ""
    quest: Quest | None = None
    load: int = 0
    cost_us: int = 0
    exec_us: int = 0
    own: int = 0
    leans: str = ""
    feeds: list[Feed] = field(default_factory=list)
    least_us: int = NEVER_US
    """The soonest that a record has come here, of all ways that were asked about."""
    asked_us: int = 0
    round: int = 0
    waits: list[tuple[str, str, str, int]] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    below: list[Graph] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    touched: list[tuple[str, str]] = field(default_factory=list)
    tight: bool = False
    chosen: list[tuple[str, str]] = field(default_factory=list)
    bound_us: int = 0
    by_us: int = 0
    leaving: bool = False

    def feed(self, before: str, start: str) -> Feed:
        """A stream that comes to it."""
        return next(one for one in self.feeds if (one.before, one.start) == (before, start))


def key_of(attempt: str, piece: str) -> str:
    """The name of a piece of an attempt, which is also that of its timer and of what runs."""
    return f"{attempt} {piece}"


class Room(Machine):
    """Counts what a site has, and what is taken of it."""

    __slots__ = ("capacity", "ended", "lines", "load", "loosed", "needs", "needs_most", "network")
    ROW: ClassVar[type[Row]] = Spot

    def __init__(self, name: str, capacity: int, network: Any, kept: tuple[Kept, ...] = ()) -> None:
        super().__init__(name)
        self.capacity, self.network = capacity, network
        self.ended: list[str] = []
        self.loosed: list[str] = []
        for one in kept:
            self.rows[key_of(one.attempt, one.piece)] = Spot(
                HELD if one.settled else CONFIRMED, one.attempt, one.piece, one.owner, one.stream, None, one.load,
                one.cost_us, leans=one.leans, feeds=[Feed(*feed) for feed in one.feeds],
                chosen=[(before, start) for before, start, _ in one.feeds], bound_us=one.bound_us, by_us=one.by_us,
                leaving=one.leaving,
            )  # fmt: skip
        self.recount()

    def set_extra(self, extra: Any) -> None:
        """What is counted follows from the rows."""
        self.ended, self.loosed = [], []
        self.recount()

    def recount(self) -> None:
        """Counts anew what all rows take."""
        self.load = sum(row.load for row in self.rows.values())  # one without a way on has given back all
        self.lines: dict[str, int] = {}
        self.needs: dict[str, int] = {}
        for key, row in self.rows.items():
            for feed in row.feeds if row.state != BARREN else ():
                self.line(feed, 1)
            if row.bound_us and row.cost_us:
                self.needs[key] = free_least(row.cost_us, row.bound_us)
        self.needs_most = max(self.needs.values(), default=0)

    def enter(self, key: str, row: Spot, quest: Quest, name: str) -> Broken | None:
        """Whether a piece can be here at all: room for its work, and time for all who run here."""
        piece = piece_of(quest, name)
        assert piece is not None
        lent = next((one for shared, one in quest.shared if shared == name and one.site == self.name), None)
        if lent is not None:
            made = self.rows.get(lent.name)
            if made is None or made.state != HELD or (quest.limit_us and not made.by_us):
                return Broken(GONE, self.name, name)
            row.leans, row.exec_us, work = lent.name, made.by_us, 0
        else:
            work = piece.load
            broken = self.too_much(name, work)
            if broken is not None:
                return broken
            exec_us = time_us(piece.cost_us, self.load + work, self.capacity) if piece.cost_us else 0
            if exec_us is None:
                return Broken(CAPACITY, self.name, name, self.load + work - self.capacity + 1, self.capacity)
            row.exec_us = exec_us
        row.attempt, row.piece, row.owner, row.quest = quest.attempt, name, quest.owner, quest
        row.stream, row.cost_us = piece.stream, 0 if lent is not None else piece.cost_us
        row.own = share(work, self.capacity - self.load - work)
        row.feeds, row.waits, row.touched = [], [], []
        return None

    def too_much(self, name: str, work: int) -> Broken | None:
        """What so much more work would break."""
        free = self.capacity - self.load - work
        if not work:
            return None
        if free < 0:
            return Broken(CAPACITY, self.name, name, -free, self.capacity)
        if free >= self.needs_most:
            return None
        key = max(self.needs, key=lambda one: (self.needs[one], one))
        held = self.rows[key]
        then_us = time_us(held.cost_us, self.load + work, self.capacity)
        by = NEVER_US >> 10 if then_us is None else then_us - held.bound_us
        return Broken(PROMISE, self.name, name, by, held.bound_us, held.attempt.partition("#")[0])

    def connect(self, row: Spot, probe: Probe) -> Feed | Broken:
        """The stream that a probe would bring; Broken where its way is full."""
        known = next((one for one in row.feeds if (one.before, one.start) == (probe.before, probe.start)), None)
        if known is not None:
            return known
        if not probe.start or probe.start == self.name:
            return Feed(probe.before, probe.start, 0)
        quest = probe.quest
        piece = piece_of(quest, probe.before)
        origins = (one for one in quest.plan.origins if one.name == probe.before)
        kbps = piece.kbps if piece is not None else next((one.kbps for one in origins), 0)
        most = self.network.kbps(probe.start, self.name)
        left = most - self.lines.get(probe.start, 0) - kbps
        if left < 0:
            return Broken(BANDWIDTH, self.name, probe.piece, -left, most, probe.start)
        delay_us = self.network.delay_us(probe.start, self.name)
        return Feed(probe.before, probe.start, 0 if quest.dry else kbps, delay_us, share(kbps, left))

    def reserve(self, key: str, row: Spot, feed: Feed, probe: Probe) -> None:
        """Takes what a probe asks for; what is asked dry takes nothing."""
        if row.state == ABSENT and not row.leans and not probe.quest.dry:
            piece = piece_of(probe.quest, probe.piece)
            assert piece is not None
            row.load = piece.load
            self.load += row.load
        if feed not in row.feeds:
            row.feeds = [*row.feeds, feed]
            if row.state != BARREN:
                self.line(feed, 1)

    def take_again(self, row: Spot) -> Broken | None:
        """Takes again what was given back when there was no way on; Broken where others have it now."""
        assert row.quest is not None
        piece = piece_of(row.quest, row.piece)
        assert piece is not None
        work = 0 if row.leans or row.quest.dry else piece.load
        broken = self.too_much(row.piece, work)
        for feed in row.feeds:
            left = self.network.kbps(feed.start, self.name) - self.lines.get(feed.start, 0) if feed.kbps else 0
            if left < feed.kbps:
                broken = broken or Broken(BANDWIDTH, self.name, row.piece, feed.kbps - left, 0, feed.start)
        if broken is None:
            row.load = work
            self.load += work
            for feed in row.feeds:
                self.line(feed, 1)
        return broken

    def give_back(self, key: str, row: Spot) -> None:
        """Takes nothing any more."""
        self.load -= row.load
        row.load = 0
        for feed in row.feeds:
            self.line(feed, -1)

    def line(self, feed: Feed, sign: int) -> None:
        """More or less comes from a site."""
        if feed.kbps:
            left = self.lines.get(feed.start, 0) + sign * feed.kbps
            if left:
                self.lines[feed.start] = left
            else:
                self.lines.pop(feed.start, None)

    def empty(self, key: str, row: Spot) -> None:
        """Nothing is kept for this any more."""
        if row.state != BARREN:
            self.give_back(key, row)
        self.bind(key, row, 0)
        if row.leans:
            self.loosed.append(row.leans)
        row.state = ABSENT
        self.ended.append(key)

    def wrong(self, row: Spot, asked: Confirm) -> Broken | None:
        """Why a piece cannot be confirmed so."""
        assert row.quest is not None or row.state == CONFIRMED
        known = {(feed.before, feed.start) for feed in row.feeds}
        if (row.quest is not None and row.quest.dry) or not {*asked.feeds} <= known:
            return Broken(GONE, self.name, asked.piece)
        if not row.cost_us or not asked.bound_us:
            return None
        then_us = time_us(row.cost_us, self.load, self.capacity)
        if then_us is None:
            return Broken(CAPACITY, self.name, asked.piece, self.load - self.capacity + 1, self.capacity)
        if then_us > asked.bound_us:
            return Broken(LATENCY, self.name, asked.piece, then_us - asked.bound_us, asked.bound_us)
        return None

    def bind(self, key: str, row: Spot, bound_us: int) -> None:
        """What a piece may take here from now on; 0: as long as it likes."""
        row.bound_us = bound_us
        if bound_us and row.cost_us:
            self.needs[key] = free_least(row.cost_us, bound_us)
            self.needs_most = max(self.needs.values())
        elif self.needs.pop(key, None) is not None:
            self.needs_most = max(self.needs.values(), default=0)

    def keep_chosen(self, row: Spot) -> None:
        """Streams that were not chosen are not kept."""
        for feed in row.feeds:
            if (feed.before, feed.start) not in row.chosen:
                self.line(feed, -1)
        row.feeds = [feed for feed in row.feeds if (feed.before, feed.start) in row.chosen]

    def kept(self, row: Spot) -> Kept:
        """What must not be forgotten of a piece."""
        feeds = tuple(
            (feed.before, feed.start, feed.kbps) for feed in row.feeds if (feed.before, feed.start) in row.chosen
        )
        return Kept(
            row.attempt, row.piece, row.owner, row.stream, row.load, row.cost_us, row.bound_us, row.by_us, feeds,
            row.leans, row.state == HELD, row.leaving,
        )  # fmt: skip

    def instance(self, key: str, row: Spot) -> Instance:
        """What runs, and the stream that it makes."""
        return Instance(row.stream, self.name, key)

    def leaners(self, key: str) -> list[str]:
        """What leans on an operator that runs here."""
        return [name for name, row in self.rows.items() if row.leans == key and row.state != ABSENT]

    def end(self, key: str, row: Spot) -> list[Effect]:
        """An operator, or what leans on one, ends."""
        ends: list[Effect] = [] if row.leans else [End(self.instance(key, row))]
        self.empty(key, row)
        return [Forget(row.attempt, row.piece), *ends]
