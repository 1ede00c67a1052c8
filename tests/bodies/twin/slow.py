"""The twin again, slow and obvious: plain lists, one heap of events, every rule written out once.

Chance and arrival steps are the twin's own (they are inputs here); all that happens to records is done anew.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

import numpy as np

from weft.bodies.twin.loop import chance
from weft.bodies.twin.loop.columns import HANDED_ON
from weft.bodies.twin.setup.flows import is_random, steps_of
from weft.model import Cost, Deployment, Node, Operator, Placement, Query, dataflow
from weft.plan.dataflow.intervals import interval_ms
from weft.plan.dataflow.rates import ideal_rates, output_rate
from weft.plan.dataflow.record_sizes import record_bytes
from weft.plan.network.paths import Paths

END, HOP, ARRIVE, BATCH = range(4)
MS = 1_000_000
NEVER = 1 << 61


@dataclass(eq=False)
class Record:
    birth: int
    maker: Maker
    number: int = 0
    readers: list[Reader] = field(default_factory=list)
    at: Reader | None = None
    seq: int = 0
    way: list[Way] = field(default_factory=list)
    to: Place | None = None
    released: bool = False
    ends: int = 0


@dataclass(eq=False)
class Place:
    name: str
    speed: float
    serving: Record | None = None
    started: int = 0
    waiting: list[Record] = field(default_factory=list)
    waiting_max: int = 0
    busy: int = 0
    down: bool = False
    # in batches
    interval: int = -1
    fixed: int = 0
    batching: bool = False
    first: bool = False
    later: list[Record] = field(default_factory=list)
    parked: list[Record] = field(default_factory=list)
    out: list[Record] = field(default_factory=list)
    trigger: int = 0
    looks: bool = False

    def all_waiting(self) -> list[Record]:
        return self.waiting + self.later + self.parked


@dataclass(eq=False)
class Maker:
    """A source or an operator."""

    name: str
    rank: int
    place: Place
    bytes: float
    readers: list[Reader] = field(default_factory=list)
    numbers: int = 0
    held: int = 0
    # a source
    steps: list[tuple[int, float]] = field(default_factory=list)
    random: bool = False
    key: np.uint64 = np.uint64(0)
    at: float = 0.0
    step: int = 0
    born: int = 0
    backlog: list[Record] = field(default_factory=list)
    # an operator
    operator: Operator | None = None
    query: Query | None = None
    first: Maker | None = None
    sharing: list[Maker] = field(default_factory=list)
    key_cost: np.uint64 = np.uint64(0)
    key_selectivity: np.uint64 = np.uint64(0)
    arrived: int = 0
    begun: int = 0
    ended: int = 0
    dropped: int = 0
    due: int = 1 << 60
    outside: list[Record] = field(default_factory=list)
    seen: tuple[list[tuple[int, int]], list[tuple[int, int]]] = field(default_factory=lambda: ([], []))
    windows: dict[int, list[int]] = field(default_factory=dict)
    low: int = 0
    greatest: int = 0

    def waits(self) -> int:
        return sum(1 for record in self.place.all_waiting() if record.at is not None and record.at.maker is self)


@dataclass(eq=False)
class Reader:
    maker: Maker | None
    side: int
    sink: int = -1
    sink_place: Place | None = None

    @property
    def place(self) -> Place:
        if self.maker is not None:
            return self.maker.place
        assert self.sink_place is not None
        return self.sink_place


@dataclass(eq=False)
class Way:
    """A link, or a gate that a partition shuts."""

    delay: int
    per_byte: float
    free: int = 0
    cut_until: int = 0
    sent: int = 0


class SlowPlane:
    def __init__(  # noqa: PLR0912
        self, deployment: Deployment, placement: Placement, seconds: float, seed: int, discipline: str = "fcfs",
        contributing: bool = False, drop_late: bool = False,
    ) -> None:  # fmt: skip
        self.drop_late = drop_late
        self.sizes = record_bytes(deployment, ideal_rates(deployment))
        self.deployment, self.discipline, self.contributing = deployment, discipline, contributing
        self.now_ns = 0
        self.log: list[tuple[int, int, int]] = []
        self.events = self.accepts = self.lost = self._tie = 0
        self.heap: list[tuple[int, int, int, int, int, int, int, object]] = []
        self.todo: list[Maker] = []
        self.places = {site.name: Place(site.name, site.capacity) for site in deployment.sites}
        for site in deployment.sites:
            if site.batch is not None:
                self.places[site.name].interval = round(site.batch.interval_ms * MS)
                self.places[site.name].fixed = round(site.batch.fixed_ms * MS)
        self.paths = Paths(deployment)
        self.links: dict[tuple[str, str], Way] = {}
        for link in deployment.links:
            for pair in [(link.from_, link.to)] + ([] if link.oneway else [(link.to, link.from_)]):
                per_byte = 0.0 if link.bandwidth_kbps is None else 8e6 / link.bandwidth_kbps
                if pair not in self.links or round(link.delay_ms * MS) < self.links[pair].delay:
                    self.links[pair] = Way(round(link.delay_ms * MS), per_byte)
        self.gates: dict[tuple[str, str], Way] = {}
        for what in deployment.scenario:
            for pair in (getattr(what, "partition", None) or (None, None),):
                if pair[0] is not None:
                    self.gates[pair] = Way(0, 0.0)
                    self.gates[pair[1], pair[0]] = Way(0, 0.0)
        self.makers: dict[str, Maker] = {}
        until = round(seconds * 1e9)
        for source in deployment.sources:
            maker = Maker(source.name, len(self.makers), self.places[source.site], source.record_bytes)
            maker.steps = steps_of(source, deployment.scenario, until, seed)
            maker.random = source.arrivals is not None and is_random(source.arrivals)
            maker.key = np.uint64(chance.key_of(seed, "gap", source.name))
            self.makers[source.name] = maker
        self.most = {name: 2 * 1_000_000_000 * max(rate for _, rate in one.steps) for name, one in self.makers.items()}
        self.operators: dict[tuple[str, str], Maker] = {}
        self.further: dict[tuple[str, str], list[Maker]] = {}
        self.followers: dict[tuple[str, str], list[Reader]] = {}
        flow = dataflow(deployment)
        for node in flow.nodes:
            self._operator(deployment.query(node.queries[0]), node, placement, seed)
        for number, outlet in enumerate(flow.outlets):
            reader = Reader(None, -1, number, self.places[outlet.site(flow, placement.homes)])
            self.makers[outlet.stream].readers.append(reader)
            if outlet.sink.site is None and flow.makes(outlet.stream):
                self.followers.setdefault((outlet.query, outlet.sink.from_), []).append(reader)
        for query in deployment.queries:
            for node in flow.behind(query.name):
                if query.promise.latency_ms is not None:
                    maker = self.makers[node.stream]
                    maker.due = min(maker.due, round(query.promise.latency_ms * MS))
        if discipline == "slack":
            self._slack(placement)
        for maker in self.makers.values():
            if maker.operator is None:
                self._plan_birth(maker)

    def _operator(self, query: Query, node: Node, placement: Placement, seed: int) -> None:
        operator, inputs = node.operator, [self.makers[stream] for stream in node.inputs]
        size = self.sizes[node.stream]
        place = self.places[placement.home(f"{query.name}.{operator.name}")]
        maker = Maker(f"{query.name}.{operator.name}", len(self.makers), place, size)
        maker.operator, maker.query = operator, query
        maker.key_cost = np.uint64(chance.key_of(seed, "cost", query.name, operator.name))
        maker.key_selectivity = np.uint64(chance.key_of(seed, "selectivity", query.name, operator.name))
        for side, one in enumerate(inputs):
            one.readers.append(Reader(maker, min(side, 1)))
        self.most[maker.name] = output_rate(operator, [self.most[one.name] for one in inputs])
        self.makers[maker.name] = self.operators[query.name, operator.name] = maker

    def _slack(self, placement: Placement) -> None:
        flow = dataflow(self.deployment)
        left: dict[str, int] = {}
        for node in reversed(flow.nodes):
            maker, here = self.makers[node.stream], placement.home(node.stream)
            rest = 0
            for reader in flow.readers(node.stream):
                rest = max(rest, self._delay(here, placement.home(reader.stream)) + left[reader.stream])
            for outlet in flow.shown(node.stream):
                if outlet.sink.site:
                    rest = max(rest, self._delay(here, outlet.sink.site))
            cost = maker.operator.cost_ms.mean_ms if maker.operator and maker.operator.cost_ms else 0.1
            left[node.stream] = round(cost * MS / maker.place.speed) + rest
            if maker.due < 1 << 60:
                maker.due -= left[node.stream]

    def _delay(self, start: str, end: str) -> int:
        path = self.paths.between(start, end)
        if path is None:
            return 0
        return sum(self.links[pair].delay for pair in zip(path.sites, path.sites[1:], strict=False))

    # events

    def _push(self, time: int, kind: int, rank: int, number: int, what: object) -> None:
        self._tie += 1
        to = what.to if isinstance(what, Record) and kind != END else None
        if kind == END and isinstance(what, Record) and what.at is not None:
            to = what.at.place
        site = list(self.places.values()).index(to) if to is not None else 0
        # Copies of one record for one site: of readers that have moved there, each has its own.
        reader = what.maker.readers.index(what.readers[0]) if isinstance(what, Record) and kind != END else 0
        heapq.heappush(self.heap, (time, kind, rank, number, site, reader, self._tie, what))

    def advance(self, until: int) -> None:
        self._work_off()
        while self.heap and self.heap[0][0] < until:
            time, kind, *_, what = heapq.heappop(self.heap)
            if kind == END and (not isinstance(what, Record) or what.ends != time or what.to is not None):
                continue  # broken off
            self.now_ns = time
            self.events += 1
            if isinstance(what, Maker):
                self._bear(what)
            elif isinstance(what, Place):
                self._look(what)
            elif isinstance(what, Record):
                if kind == END:
                    self._end(what)
                elif kind == HOP:
                    self._hop(what)
                else:
                    self._arrive(what)
            self._work_off()
        self.now_ns = until

    def _work_off(self) -> None:
        while self.todo:
            maker = self.todo.pop(0)
            if maker.operator is None:
                while not maker.held and maker.backlog:
                    self._deliver(maker.backlog.pop(0), maker.place, True)
            elif not maker.held:
                self._unpark(maker)
                if maker.place.serving is None:
                    self._start_next(maker.place)
                self._look_next(maker.place)

    def _plan_birth(self, maker: Maker) -> None:
        left = chance.exponential(maker.key, maker.born) if maker.random else float(maker.born > 0)
        at = maker.at
        while True:
            end, rate = maker.steps[maker.step]
            if rate > 0.0:
                there = at + left / rate
                if there < float(end):
                    break
                left = max(0.0, left - (float(end) - at) * rate)
            if maker.step + 1 == len(maker.steps):
                return
            at = float(end)
            maker.step += 1
        maker.at = there
        self._push(int(there + 0.5), ARRIVE, maker.rank, maker.born, maker)

    def _bear(self, maker: Maker) -> None:
        record = Record(self.now_ns, maker)
        maker.born += 1
        if maker.held:
            maker.backlog.append(record)
        else:
            self._deliver(record, maker.place, True)
        self._plan_birth(maker)

    # streams

    def _deliver(self, record: Record, start: Place, arriving: bool) -> None:
        maker = record.maker
        record.number = maker.numbers
        maker.numbers += 1
        places: list[Place] = []
        chosen = [(one, self._instance(one, record.number).place) for one in maker.readers]
        for _, place in chosen:
            if place not in places:
                places.append(place)
        for place in places:
            copy = replace(record, readers=[one for one, where in chosen if where is place], way=[], to=place)
            if place is not start:
                self._send(copy, start, place)
            elif arriving:
                self.events += 1
                self._arrive(copy)
            else:
                self._push(self.now_ns, ARRIVE, maker.rank, copy.number, copy)

    @staticmethod
    def _instance(reader: Reader, number: int) -> Reader:
        if reader.maker is None or not reader.maker.sharing:
            return reader
        return Reader(reader.maker.sharing[number % len(reader.maker.sharing)], reader.side)

    def start_instance(self, operator: tuple[str, str], site: str) -> None:
        first = self.operators[operator]
        one = replace(first, place=self.places[site], first=first, sharing=[], outside=[], held=0, arrived=0, dropped=0)
        first.sharing = [*(first.sharing or [first]), one]
        self.further.setdefault(operator, []).append(one)

    def stop_instance(self, operator: tuple[str, str], site: str) -> None:
        first = self.operators[operator]
        there = [one for one in first.sharing[1:] if one.place is self.places[site]]
        if not there:
            raise ValueError(f"no further instance of {'.'.join(operator)} runs at {site}")
        gone = there[-1]
        first.sharing = [one for one in first.sharing if one is not gone]
        place = gone.place
        # In the order of their turns: the running batch comes before the next one.
        queues = (sorted(queue, key=self._turn) for queue in (place.waiting, place.later, place.parked))
        mine = [one for queue in queues for one in queue if one.at and one.at.maker is gone]
        place.waiting = [one for one in place.waiting if one not in mine]
        place.later = [one for one in place.later if one not in mine]
        place.parked = [one for one in place.parked if one not in mine]
        for record in mine:
            assert record.at is not None
            gone.arrived -= 1
            reader = next(one for one in record.maker.readers if one.maker is first and one.side == record.at.side)
            again = replace(record, readers=[reader], number=HANDED_ON | record.seq, at=None, way=[], released=False)
            target = self._instance(reader, again.number)
            if target.place is place:
                self._accept(target, again)
            else:
                self._send(again, place, target.place)
        self._work_off()

    def total(self, operator: tuple[str, str], name: str) -> int:
        rows = [self.operators[operator], *self.further.get(operator, [])]
        return sum(row.waits() if name == "waits" else getattr(row, name) for row in rows)

    def _send(self, record: Record, start: Place, end: Place) -> None:
        path = self.paths.between(start.name, end.name)
        if path is None:
            self.lost += 1
            return
        record.to = end
        if self._kept(record, start):
            start.out.append(record)
            return
        record.released = True  # no batch keeps what is on its way
        pairs = list(zip(path.sites, path.sites[1:], strict=False))
        way: list[Way] = []
        if (start.name, end.name) in self.gates and (start.name, end.name) not in pairs:
            way.append(self.gates[start.name, end.name])
        for pair in pairs:
            if pair in self.gates:
                way.append(self.gates[pair])
            way.append(self.links[pair])
        limited = any(one.per_byte > 0 or one in self.gates.values() for one in way)
        if not limited:
            delay = sum(one.delay for one in way)
            self._push(self.now_ns + delay, ARRIVE, record.maker.rank, record.number, record)
            return
        record.way = way
        self._push(self.now_ns, HOP, record.maker.rank, record.number, record)

    def _hop(self, record: Record) -> None:
        at = self.now_ns
        while record.way:
            if at > self.now_ns:
                self._push(at, HOP, record.maker.rank, record.number, record)
                return
            link = record.way.pop(0)
            sends = max(at, link.free, link.cut_until)
            link.free = sends + int(record.maker.bytes * link.per_byte + 0.5)
            link.sent += 1
            at = link.free + link.delay
        self._push(at, ARRIVE, record.maker.rank, record.number, record)

    def _arrive(self, record: Record) -> None:
        here = record.to
        assert here is not None
        for wanted in record.readers:
            copy = replace(record, readers=[wanted], way=[], to=None)
            reader = self._instance(wanted, record.number)
            if reader.place is not here:
                self._send(copy, here, reader.place)
            elif reader.maker is None and self._kept(record, here):
                here.out.append(replace(copy, to=here))
            elif reader.maker is None:
                self.log.append((reader.sink, self.now_ns, self.now_ns - record.birth))
            else:
                self._accept(reader, copy)

    # stations

    def _accept(self, reader: Reader, record: Record) -> None:
        maker = reader.maker
        assert maker is not None
        assert maker.operator is not None
        place = maker.place
        record.at = reader
        maker.arrived += 1
        queue = maker.operator.queue
        ready = not place.down and not maker.held
        fused = place.batching and record.maker.operator is not None and record.maker.place is place and ready
        if ready and place.serving is None and (fused or place.interval < 0):
            if place.interval < 0 and self._late(record):
                self._drop(maker)
                return
            self._seq(record)
            self._begin(place, record)
        elif fused:
            self._wait(place, record, place.waiting)
        elif queue is None or maker.waits() < queue.length:
            self._wait(place, record)
            if not place.batching:
                self._look_next(place)
        elif queue.when_full == "block":
            maker.outside.append(record)
            record.maker.held += 1
        else:
            self._drop(maker)

    def _seq(self, record: Record) -> None:
        record.seq = self.accepts
        self.accepts += 1

    def _drop(self, maker: Maker) -> None:
        maker.dropped += 1

    def _late(self, record: Record) -> bool:
        maker = record.at.maker if record.at else None
        assert maker is not None
        assert maker.query is not None
        if not self.drop_late or self.now_ns <= record.birth + maker.due:
            return False
        return all(self._may_lose(query) for query in self.deployment.queries if maker.name in self._behind(query))

    def _behind(self, query: Query) -> list[str]:
        return [node.stream for node in dataflow(self.deployment).behind(query.name)]

    def _may_lose(self, query: Query) -> bool:
        read = dataflow(self.deployment).sources_of(query.name)
        keys = [key for key, one in self.operators.items() if one.name in self._behind(query)]
        lost, born = sum(self.total(key, "dropped") for key in keys), sum(self.makers[name].born for name in read)
        return lost + 1 <= (query.promise.loss or 0.0) * born

    def _wait(self, place: Place, record: Record, queue: list[Record] | None = None) -> None:
        self._seq(record)
        if queue is None:
            queue = place.waiting if place.interval < 0 else place.later
        queue.append(record)
        place.waiting_max = max(place.waiting_max, len(place.all_waiting()))

    # batches

    def _park(self, place: Place, chosen: Record | None) -> None:
        """Records of held operators whose turn came before that of the chosen one wait for another batch."""
        if place.interval >= 0:
            turn = None if chosen is None else self._turn(chosen)
            passed = [one for one in place.waiting if turn is None or self._turn(one) < turn]
            place.waiting = [one for one in place.waiting if one not in passed]
            place.parked += passed

    def _unpark(self, maker: Maker) -> None:
        place = maker.place
        mine = [one for one in place.parked if one.at and one.at.maker is maker]
        place.parked = [one for one in place.parked if one not in mine]
        place.later += mine

    def _kept(self, record: Record, place: Place) -> bool:
        mine = record.maker.operator is not None and record.maker.place is place
        return place.batching and mine and not record.released

    def _look_at(self, place: Place, at: int) -> None:
        if place.interval >= 0 and not place.looks:
            place.looks = True
            self._push(at, BATCH, list(self.places.values()).index(place), 0, place)

    def _look_next(self, place: Place) -> None:
        if place.interval >= 0 and not place.batching:
            at = max(self.now_ns, place.trigger)
            while place.interval and at % place.interval:
                at += place.interval - at % place.interval
            self._look_at(place, at)

    def _look(self, place: Place) -> None:
        place.looks = False
        if place.down or place.serving is not None:
            return
        if place.batching:
            if place.waiting:
                self._start_next(place)
                return
            place.batching = False
            out, place.out = place.out, []
            for record in out:
                record.released = True
                assert record.to is not None
                if record.to is place:
                    self._push(self.now_ns, ARRIVE, record.maker.rank, record.number, record)
                else:
                    self._send(record, place, record.to)
        if place.later and self.now_ns < place.trigger:
            self._look_at(place, place.trigger)
        elif place.later:
            place.batching = place.first = True
            place.waiting, place.later = place.later, []
            place.trigger = self.now_ns
            if place.interval:
                place.trigger = (self.now_ns // place.interval + 1) * place.interval
            self._start_next(place)

    def _turn(self, record: Record) -> tuple[int, int]:
        assert record.at is not None
        assert record.at.maker is not None
        return (0 if self.discipline == "fcfs" else record.birth + record.at.maker.due), record.seq

    def _start_next(self, place: Place) -> None:
        if place.down or (place.interval >= 0 and not place.batching):
            return
        while True:
            ready = [one for one in place.waiting if one.at and one.at.maker and not one.at.maker.held]
            if not ready:
                break
            record = min(ready, key=self._turn)
            self._park(place, record)
            place.waiting.remove(record)
            maker = record.at.maker if record.at else None
            assert maker is not None
            late = self._late(record)
            if late:
                self._drop(maker)
            else:
                self._begin(place, record)
            if maker.outside:
                entering = maker.outside.pop(0)
                self._wait(place, entering)
                self._let_go(entering.maker)
            if not late:
                return
        if place.interval >= 0:
            self._park(place, None)
            self._look_at(place, self.now_ns)

    def _let_go(self, maker: Maker) -> None:
        maker.held -= 1
        if maker.held == 0:
            self.todo.append(maker)

    def _begin(self, place: Place, record: Record) -> None:
        maker = record.at.maker if record.at else None
        assert maker is not None
        assert maker.operator is not None
        maker = maker.first or maker
        assert maker.operator is not None
        cost_ns = self._cost(maker, maker.operator.cost_ms or Cost("constant", (0.1,)))
        maker.begun += 1
        takes = NEVER if place.speed <= 0 else int(min(cost_ns / place.speed, 2e18) + 0.5)
        if maker.operator.cost_ms != Cost("constant", (0.0,)):
            takes = max(1, takes)
        if place.first and place.speed > 0:
            takes += int(place.fixed / place.speed + 0.5)
            place.first = False
        place.serving, place.started = record, self.now_ns
        record.ends = self.now_ns + takes
        self._push(record.ends, END, maker.rank, 0, record)

    @staticmethod
    def _cost(maker: Maker, cost: Cost) -> float:
        n, values = maker.begun, [value * MS for value in cost.values]
        match cost.kind:
            case "uniform":
                return values[0] + (values[1] - values[0]) * chance.uniform(maker.key_cost, n)
            case "exponential":
                return values[0] * chance.exponential(maker.key_cost, n)
            case "normal":
                return max(0.0, values[0] + values[1] * chance.normal(maker.key_cost, n))
            case "empirical":
                return values[int(float(len(values)) * chance.uniform(maker.key_cost, n))]
        return values[0]

    # results

    def _end(self, record: Record) -> None:
        maker = record.at.maker if record.at else None
        assert maker is not None
        assert maker.operator is not None
        place = maker.place
        place.busy += self.now_ns - place.started
        place.serving = None
        self._start_next(place)
        maker = maker.first or maker
        assert maker.operator is not None
        operator = maker.operator
        selectivity = 1.0 if operator.selectivity is None else operator.selectivity
        births: list[int] = []
        if operator.window is None:
            births = [record.birth] * self._whole(maker, selectivity)
        elif len(operator.from_) == 2:
            births = self._join(maker, record, selectivity)
        else:
            births = self._window(maker, record, selectivity)
        maker.ended += 1
        for birth in births:
            self._deliver(Record(birth, maker), place, False)

    @staticmethod
    def _whole(maker: Maker, expected: float) -> int:
        if float(int(expected)) == expected:
            return int(expected)
        return int(expected + chance.uniform(maker.key_selectivity, maker.ended))

    def _join(self, maker: Maker, record: Record, selectivity: float) -> list[int]:
        assert maker.operator is not None
        assert maker.operator.window is not None
        assert record.at is not None
        window = maker.operator.window
        mine, other = maker.seen[record.at.side], maker.seen[1 - record.at.side]
        inside, expected = 0, 0.0
        if other and window.records is not None:
            inside = min(len(other), window.records)
            counted = min(len(other), 32)
            span = self.now_ns - other[-33][0] if len(other) > 32 else self.now_ns
            stream = maker.operator.from_[1 - record.at.side]
            most = self.most[stream if stream in self.most else f"{maker.query.name if maker.query else ''}.{stream}"]
            expected = selectivity * 0.5 * min(most, counted * 1e9 / max(span, 1))
        elif other:
            length = max(1.0, (window.seconds or 0.0) * 1e9)
            inside = sum(1 for time, _ in other[-1025:] if self.now_ns - time <= length)
            known = float(inside)
            if inside == 1025:
                known = inside * length / max(1, self.now_ns - other[-1025][0])
            expected = known * selectivity * 0.5 * 1e9 / length
        results = self._whole(maker, expected)
        births = [max(record.birth, other[-1 - k % inside][1]) for k in range(results)]
        mine.append((self.now_ns, record.birth))
        return births

    def _window(self, maker: Maker, record: Record, selectivity: float) -> list[int]:
        assert maker.operator is not None
        assert maker.operator.window is not None
        window = maker.operator.window
        births: list[int] = []
        if window.records is not None:
            held = maker.windows.setdefault(0, [])
            held.append(record.birth)
            if len(held) >= window.records:
                births = [max(held) if self.contributing else record.birth] * self._whole(
                    maker, len(held) * selectivity
                )
                del maker.windows[0]
            return births
        length = int(max(1.0, (window.seconds or 0.0) * 1e9))
        late = max((interval_ms(mark.delay) for mark in maker.operator.watermarks), default=0) * MS
        low = maker.low
        maker.greatest = max(maker.greatest, record.birth)
        maker.low = max(low, (maker.greatest - late) // length)
        for k in sorted(maker.windows):
            if k < maker.low:
                held = maker.windows.pop(k)
                birth = max(held) if self.contributing else record.birth
                births += [birth] * self._whole(maker, len(held) * selectivity)
        if record.birth // length >= low:
            maker.windows.setdefault(record.birth // length, []).append(record.birth)
        return births

    # steering

    def hold(self, operator: tuple[str, str], clean: bool) -> int:
        maker = self.operators[operator]
        maker.held += 1
        place = maker.place
        record = place.serving
        if record is None or record.at is None or record.at.maker is not maker:
            return self.now_ns
        if clean:
            return record.ends
        self._break_off(place)
        self._start_next(place)
        return self.now_ns

    def _break_off(self, place: Place) -> None:
        record = place.serving
        assert record is not None
        place.busy += self.now_ns - place.started
        place.serving = None
        again = replace(record, ends=0)
        record.ends = -1
        place.waiting.append(again)
        place.waiting_max = max(place.waiting_max, len(place.all_waiting()))

    def release(self, operator: tuple[str, str]) -> None:
        self._let_go(self.operators[operator])
        self._work_off()

    def rehome(self, operator: tuple[str, str], site: str) -> None:
        maker = self.operators[operator]
        here, there = maker.place, self.places[site]
        mine = [one for one in here.all_waiting() if one.at and one.at.maker is maker]
        here.waiting = [one for one in here.waiting if one not in mine]
        here.later = [one for one in here.later if one not in mine]
        here.parked = [one for one in here.parked if one not in mine]
        (there.waiting if there.interval < 0 else there.parked).extend(mine)
        there.waiting_max = max(there.waiting_max, len(there.all_waiting()))
        maker.place = there
        for reader in self.followers.get(operator, ()):
            reader.sink_place = there

    def crash(self, site: str) -> None:
        place = self.places[site]
        place.down = True
        if place.serving is not None:
            self._break_off(place)
        for maker in self.makers.values():
            if maker.operator is None and maker.place is place:
                maker.held += 1

    def restart(self, site: str) -> None:
        place = self.places[site]
        place.down = False
        if place.serving is None:
            self._start_next(place)
        self._look_next(place)
        for maker in self.makers.values():
            if maker.operator is None and maker.place is place:
                self._let_go(maker)
        self._work_off()

    def cut(self, one: str, other: str, until_ns: int) -> None:
        for pair in ((one, other), (other, one)):
            if pair in self.gates:
                self.gates[pair].cut_until = until_ns

    def set_capacity(self, site: str, capacity: float) -> None:
        place = self.places[site]
        before, place.speed = place.speed, capacity
        record = place.serving
        if record is None:
            return
        if before <= 0 or capacity <= 0:
            self._break_off(place)
            self._start_next(place)
            return
        place.busy += self.now_ns - place.started
        again = replace(record, ends=self.now_ns + int((record.ends - self.now_ns) * before / capacity + 0.5))
        record.ends = -1
        place.serving, place.started = again, self.now_ns
        assert again.at is not None
        assert again.at.maker is not None
        self._push(again.ends, END, again.at.maker.rank, 0, again)

    def waiting(self, operator: tuple[str, str]) -> int:
        return self.operators[operator].waits()

    def arrived(self, operator: tuple[str, str]) -> int:
        return self.operators[operator].arrived

    def settle(self) -> None:
        for place in self.places.values():
            if place.serving is not None:
                place.busy += self.now_ns - place.started
                place.started = self.now_ns
