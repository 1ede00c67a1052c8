"""A live desk and its sites that balance, driven without Spark: what comes to operators is counted by the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.drawn_moves import Fake, _Launch
from weft.bodies.live import reporting
from weft.bodies.live.assembly import cutting
from weft.bodies.live.balancing.desk import DeskBalancing
from weft.bodies.live.changes import Changes
from weft.bodies.live.controlling import Controlling
from weft.bodies.live.decision_file import DecisionFile
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.reports import Reports
from weft.bodies.live.sites import Sites
from weft.bodies.live.state import State
from weft.bodies.live.transport import Address, InProcess
from weft.model import Balance, Constant, Control, Deployment, Link, Operator, Placement, Query, Sink, Site
from weft.plan.changing.fragments import Fragment
from weft.plan.changing.running_plan import Rules, first_plan
from weft.plan.changing.task import Task
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.network.paths import Paths
from weft.protocol.messages import decode
from weft.protocol.reporting import BatchWeighed, FragmentNow, Measured, SiteNow

PERIOD_S = 0.5
REPORT_S = 0.05


class Clock:
    """The clock of those who measure: knows what it showed last to a thread, so that counts are of just that moment."""

    def __init__(self) -> None:
        self.time = time.time
        self._shown = threading.local()

    def monotonic(self) -> float:
        self._shown.at_s = time.monotonic()
        return self._shown.at_s

    def shown_s(self) -> float:
        return getattr(self._shown, "at_s", None) or time.monotonic()


class Flow:
    """Records that have come from every source, by the clock; `per_s` may change at any time."""

    def __init__(self, per_s: float = 1000.0, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._since = (time.monotonic(), 0.0, per_s)

    @property
    def per_s(self) -> float:
        return self._since[2]

    @per_s.setter
    def per_s(self, per_s: float) -> None:
        now_s = time.monotonic()
        self._since = (now_s, self._upto(now_s), per_s)

    def records(self) -> int:
        """At the moment at which the thread that asks has begun to measure."""
        return round(self._upto(self._clock.shown_s()))

    def _upto(self, now_s: float) -> float:
        begun_s, held, per_s = self._since
        return held + per_s * (now_s - begun_s)


class Measuring(Fake):
    """An engine whose fragments have all that has come, and tell of it; `silent` names those that do not."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow
        self.fragments: dict[tuple[str, int], Fragment] = {}
        self.silent: set[str] = set()
        self._guard = threading.Lock()

    def prepare(self, task: Task, epoch: int) -> _Launch:
        self.fragments[task.fragment.id, epoch] = task.fragment
        return super().prepare(task, epoch)

    def measure(self, finally_: bool = False) -> Measured:
        with self._guard:
            events, told, records = [], [], self.flow.records()
            for name, epoch in list(self.alive):
                fragment = self.fragments[name, epoch]
                many = (100,) * len(fragment.operators)
                if fragment.query is not None:
                    events.append(BatchWeighed(name, fragment.query, epoch, fragment.operators, many, many))
                if not self.silent & {name, *fragment.streams}:
                    told.append(FragmentNow(name, epoch, 0, taken=records))
            return Measured(tuple(events), SiteNow(tuple(told), 0.0))


class Unsure(InProcess):
    """Loses the first of each kind of message that is named, and says some kinds twice."""

    def __init__(self) -> None:
        super().__init__()
        self.loses: set[str] = set()
        self.doubles = False
        self.met: Callable[[str, Address], bool] = lambda kind, to: False
        self.lost: list[str] = []

    def send(self, sender: Address, to: Address, data: bytes) -> None:
        kind = type(decode(data)).__name__
        if self.met(kind, to):
            return
        if kind in self.loses:
            self.loses.discard(kind)
            self.lost.append(kind)
            return
        super().send(sender, to, data)
        if self.doubles and (sender.role.startswith("balancer") or kind in ("Report", "Reported", "BalanceFrom")):
            super().send(sender, to, data)


@dataclass
class Balanced:
    """The parts of a run that balances."""

    deployment: Deployment
    changes: Changes
    balancing: DeskBalancing
    controlling: Controlling
    reports: Reports
    sites: Sites[Any]
    transport: Unsure
    engines: dict[str, Measuring]
    flow: Flow
    story: list[str]
    notes: list[str]

    def look(self) -> None:
        self.reports.look()
        self.balancing.look()

    def until(self, true: Callable[[], Any], seconds: float = 20.0) -> Any:
        """Look until something holds; AssertionError where it never does."""
        ends_s = time.monotonic() + seconds
        while not (found := true()):
            assert time.monotonic() < ends_s, (self.moves(), self.notes, self.story[-20:])
            self.look()
            time.sleep(0.02)
        return found

    def during(self, periods: float) -> None:
        """Look on while sites look at their loads so many times."""
        seconds = periods * PERIOD_S
        ends_s = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= ends_s, seconds + 5)

    def moves(self) -> list[tuple[str, str, str, str]]:
        """What has moved: operator, from, to, why."""
        return [(one.operator, one.start, one.to, one.reason) for one in self.changes.moves if one.state == "done"]

    def believed(self) -> dict[str, str]:
        """Where balancers hold operators, by what they keep."""
        found = {}
        for body in self.sites.bodies():
            kept = body.balancing._kept
            for operator in kept.memory.here if kept is not None else ():
                if "." in operator:
                    assert operator not in found, "two hold one operator"
                    found[operator] = body.name
        return found


@contextmanager
def balanced(
    deployment: Deployment, placement: Placement, folder: Path, advises: bool = False, balances: bool = True
) -> Iterator[Balanced]:
    """A desk with its sites, all running as placed."""
    state = State(folder / "state")
    state.disk.make(state.path)
    clock, engines = Clock(), {}
    transport, flow = Unsure(), Flow(clock=clock)
    story: list[str] = []
    notes: list[str] = []
    rules = Rules(cutting(lambda _, operator: False, passes_by_sql), Paths(deployment))
    changes = Changes(state, rules)
    changes.begin(first_plan(deployment, placement, rules), None)

    def engine(site: str) -> Measuring:
        engines[site] = Measuring(flow)
        return engines[site]

    patched = pytest.MonkeyPatch()
    patched.setattr(reporting, "time", clock)
    patched.setattr(reporting, "PERIOD_S", REPORT_S)
    reports = Reports(transport, lambda site, life, event, now_ms: None, lambda: None, story.append)
    reports.start()
    sites: Sites[Any] = Sites(state, engine, transport, story.append)
    for site in deployment.sites:
        sites.start(site.name)
    desk = DeskBody(changes, transport, story.append, lambda site, silent: True)
    desk.start()
    controlling = Controlling(deployment, lambda: changes.placement, transport, story.append)
    controlling.tell_desk, changes.hand_on = changes.tell_desk, controlling.wish
    controlling.decisions.note = DecisionFile(state.path).write
    controlling.start()
    balance = deployment.control.balance
    assert balance is not None
    balancing = DeskBalancing(balance, changes, controlling, reports, notes.append, advises)
    try:
        assert desk.running.wait(20)
        yield Balanced(
            deployment, changes, balancing, controlling, reports, sites, transport, engines, flow, story, notes
        )
    finally:
        patched.undo()
        controlling.stop()
        desk.stop()
        changes.close()
        for body in sites.bodies():
            body.stop()
        reports.stop()


def busy(**marks: float) -> Deployment:
    """A child at 70 % where 1,000 records a second come, of which 15 % can go to its parent; and a second child.

    Who is idle asks for nothing unless `low` says so: else it would be chance which of two sites speaks first.
    """
    from tests.bodies.twin.twin_worlds import source, step

    balance = Balance(**{"low": 0.0, "period_s": PERIOD_S, **marks})  # type: ignore[arg-type]
    operators: tuple[Operator, ...] = (
        step("one", "s", cost=0.4), step("two", "one", cost=0.15), step("three", "two", cost=0.15),
    )  # fmt: skip
    return Deployment(
        (Site("top"), Site("left", parent="top"), Site("right", parent="top")),
        (source("s", "left", Constant(1000.0)),),
        (Query("q", operators, (Sink("three", "console", site="top"),)),),
        (Link("left", "top", 5.0), Link("right", "top", 5.0)),
        Control(balance=balance),
    )


def all_at(deployment: Deployment, site: str, **homes: str) -> Placement:
    """Every operator at one site, but for those that are named."""
    streams = (f"{query.name}.{one.name}" for query in deployment.queries for one in query.operators)
    return Placement({stream: homes.get(stream.partition(".")[2], site) for stream in streams})
