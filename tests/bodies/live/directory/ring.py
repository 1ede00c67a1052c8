"""The sites of a run with their parts of the directory, and a desk that asks it; engines only pretend."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.bodies.drawn_moves import Fake
from tests.plan.changing.test_next_plan import begun, rules
from tests.plan.plan_builders import deployment, op, query, source
from weft.bodies.live.changes import Changes
from weft.bodies.live.companions import companions_of
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.directory.finding import Finding
from weft.bodies.live.sites import Sites
from weft.bodies.live.state import State
from weft.bodies.live.transport import Address, InProcess
from weft.model import Control, Deployment, Link, Share, Sink
from weft.protocol.messages import BadMessage, decode
from weft.protocol.reporting import Measured, SiteNow

HOMES = {"q.a": "x", "q.b": "y", "r.c": "z"}
SHARED = Control(share=Share())
POSITIVE = "SELECT * FROM s WHERE v > 0"
ROLES = ("directory", "finding", "guide")


def whole(control: Control = SHARED) -> Deployment:
    """Three sites in a row and one that no link reaches; `s` enters at x."""
    links = (Link("x", "y", 10.0), Link("y", "z", 10.0))
    one = query(op("a", "s", sql=POSITIVE), op("b", "a", sql="SELECT k FROM a WHERE v < 9"), name="q")
    two = query(
        op("c", "s", sql="SELECT v FROM s WHERE v < 3"), name="r", sinks=(Sink("c", "parquet", "out/r", site="z"),)
    )
    given = deployment(["x", "y", "z", "far"], [source("s", "x", 100.0)], one, two, links=links)
    return replace(given, control=control)


class Working(Fake):
    """An engine whose tasks use so much of a CPU, from when that is said."""

    def __init__(self) -> None:
        super().__init__()
        self._since = (time.monotonic(), 0.0, 0.0)

    def use(self, share: float) -> None:
        self._since = (time.monotonic(), self._used_s(), share)

    def _used_s(self) -> float:
        begun_s, used_s, share = self._since
        return used_s + share * (time.monotonic() - begun_s)

    def measure(self, finally_: bool = False) -> Measured:
        return Measured(now=SiteNow(cpu_s=self._used_s()))


class Counting(InProcess):
    """Counts what goes between addresses of the directory, and its bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: Counter[tuple[str, str]] = Counter()
        self.bytes: Counter[str] = Counter()

    def send(self, sender: Address, to: Address, data: bytes) -> None:
        if sender.role in ROLES:
            with suppress(BadMessage):
                self.messages[sender.role, type(decode(data)).__name__] += 1
            self.bytes[sender.role] += len(data)
        super().send(sender, to, data)


@dataclass
class Ring:
    """A run as the tests see it."""

    desk: DeskBody
    changes: Changes
    sites: Sites[Working]
    finding: Finding
    transport: Counting
    story: list[str] = field(default_factory=list)

    def look(self) -> None:
        """The desk looks, as it does every second."""
        self.finding.look(self.changes.in_force.deployment, self.sites.lost)

    def where(self) -> dict[str, tuple[str, ...]]:
        """The sites that offer each stream, as the directory tells after a look."""
        self.look()
        return self.finding.where()

    def load(self, site: str) -> float | None:
        """How loaded a site is, as the directory tells after a look."""
        self.look()
        told = self.finding.of_site(site)
        return None if told is None else told["load"]


@contextmanager
def ring(folder: Path, control: Control = SHARED) -> Iterator[Ring]:
    """Four sites with three operators, and a desk."""
    given = whole(control)
    state = State(folder / "state")
    state.disk.make(state.path)
    changes = Changes(state, rules(given))
    changes.begin(begun(given, HOMES), None)
    transport, story = Counting(), list[str]()

    def companions(body):  # type: ignore[no-untyped-def]
        return companions_of(body, lambda: given, state, transport, story.append)

    sites = Sites(state, lambda site: Working(), transport, story.append, companions=companions)
    for site in given.sites:
        sites.start(site.name)
    desk = DeskBody(changes, transport, story.append, lambda site, silent: True)
    finding = Finding(transport, story.append)
    finding.start()
    desk.start()
    try:
        assert desk.running.wait(20)
        yield Ring(desk, changes, sites, finding, transport, story)
    finally:
        finding.stop()
        desk.stop()
        changes.close()
        for one in sites.bodies():
            one.stop()


def until(true: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether something comes to be true in time."""
    deadline = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found
