"""Drawn deployments with moves, possible and impossible, and what twin and live make of them, in the same words."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import weft.spec
from weft.bodies.live.assembly import cutting
from weft.bodies.live.changes import Changes
from weft.bodies.live.controlling import Controlling
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.moves import Asked
from weft.bodies.live.sites import Sites
from weft.bodies.live.state import State
from weft.bodies.live.transport import InProcess
from weft.bodies.twin import run as twin
from weft.model import Deployment, MoveAt, Placement
from weft.model.wishes import MoveTo, Wish
from weft.plan import place
from weft.plan.changing.running_plan import Rules, first_plan
from weft.plan.changing.task import GoesOn, Task
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.network.paths import Paths
from weft.protocol.change_messages import After
from weft.protocol.hosting import ConductorLimits, conductor
from weft.protocol.reporting import Measured
from weft.spark.fragments.positions import Standing

NAMES = ("north", "south", "hub", "cloud")
Told = list[tuple[str, str, str, str]]
"""What became of each move: the operator, where it was to go, `done` or `refused`, and from where or why not."""

FILE = """
weft: 1
sites:
SITES
links:
LINKS
sources:
  - {name: readings, site: north, format: rate, schema: "ts TIMESTAMP, k STRING, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: 20}}
  - {name: alarms, site: hub, format: rate, schema: "ts TIMESTAMP, k STRING, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: 5}}
queries:
  - name: use
    operators:
      - {name: valid, from: [readings], sql: "SELECT * FROM readings WHERE v > 0", cost_ms: COST, selectivity: 1}
      - {name: sums, from: [valid], watermark: 1 second, cost_ms: 2, selectivity: 0.5ORDER,
         sql: "SELECT window(ts, '1 second') w, k, sum(v) s FROM valid GROUP BY 1, 2"}
      - {name: shown, from: [sums], sql: "SELECT k, s FROM sums", cost_ms: 1, selectivity: 1}
    sink: {from: shown, format: parquet, path: out/useSINKSITE}
  - name: alerts
    operators:
      - {name: loud, from: [alarms], sql: "SELECT * FROM alarms WHERE v > 1", cost_ms: 1, selectivity: 1}
    sink: {from: loud, format: parquet, path: out/alerts}
"""


def drawn(folder: Path, seed: int, moves: int = 6) -> Deployment:
    """Four sites with some links, maybe a tree, maybe small; moves of any operator to any of them, and beyond."""
    rng = random.Random(seed)
    tree = rng.random() < 0.3
    parents = {"north": "hub", "south": "hub", "hub": "cloud"} if tree else {}
    sites = [
        f"  - {{name: {name}, capacity: {rng.choice(['1', '1', '0.03'])}"
        + (f", parent: {parents[name]}" if name in parents else "")
        + "}"
        for name in NAMES
    ]
    pairs = [("north", "hub"), ("hub", "south"), ("hub", "cloud"), ("north", "south")]
    links = [pair for pair in pairs if pair == pairs[0] or tree or rng.random() < 0.75]
    text = FILE.replace("SITES", "\n".join(sites))
    text = text.replace("LINKS", "\n".join(f"  - {{from: {a}, to: {b}, delay_ms: 5}}" for a, b in links))
    text = text.replace("COST", rng.choice(["1", "4"])).replace("ORDER", rng.choice(["", ", order: {lambda: 0.5}"]))
    text = text.replace("SINKSITE", "")
    (folder / "weft.yaml").write_text(text)
    deployment = weft.spec.load(folder / "weft.yaml")
    operators = [f"{query.name}.{one.name}" for query in deployment.queries for one in query.operators]
    scenario = tuple(MoveAt(1.0 + 1.5 * at, rng.choice(operators), rng.choice(NAMES)) for at in range(moves))
    return replace(deployment, scenario=scenario)


def in_the_twin(deployment: Deployment, placement: Placement, seed: int) -> Told:
    """What the twin did and refused, in the order asked."""
    found = twin(deployment, placement, seconds=deployment.scenario[-1].at_s + 10.0, seed=seed)
    told: dict[float, tuple[str, str, str, str]] = {}
    for move in found.moves:
        told[move.at_s] = (f"{move.query}.{move.operator}", move.to, "done", move.from_)
    for warning in found.warnings:
        match = re.fullmatch(r"(\S+) did not move to (\S+) at (\S+) s: (.*)", warning)
        if match:
            told[float(match[3])] = (match[1], match[2], "refused", match[4])
    return [told[at_s] for at_s in sorted(told)]


class Fake:
    """What runs fragments, without Spark: everything is ready at once, and ends at a batch boundary."""

    def __init__(self) -> None:
        self.alive: list[tuple[str, int]] = []
        self.most: dict[str, int] = {}
        self._lock = threading.Lock()

    def warm(self, task: Task, ends: Sequence[Standing] | None) -> tuple[str, ...]:
        return tuple(one.fragment.id for one in ends or ())

    def discard_prepared(self, task: Task) -> None:
        pass

    def let_in(self, fragment: str, standing: Standing) -> None:
        pass

    def channel_drained(self, stream: str, fragment: str) -> bool:
        return True

    def carry_over(self, task: Task, ends: Sequence[Standing], after: After) -> GoesOn:
        running = {name for name, _ in self.alive}
        assert not running & {one.fragment.id for one in ends}, "positions are taken from what has ended"
        return GoesOn(task.fragment, task.generation + 1)

    def measure(self, finally_: bool = False) -> Measured:
        return Measured()

    def look_after(self) -> None:
        pass

    def settle(self, sinks: Sequence[str]) -> None:
        pass

    def asks_before_end(self, ask: Callable[[str, Callable[[], bool]], None]) -> None:
        pass

    def lose(self) -> None:
        pass

    def close(self) -> None:
        pass

    def fence(self, task: Task, epoch: int) -> None:
        pass

    def prepare(self, task: Task, epoch: int) -> _Launch:
        return _Launch(self, task, epoch)


class _Launch:
    def __init__(self, fake: Fake, task: Task, epoch: int) -> None:
        self.fake, self.task, self.key = fake, task, (task.fragment.id, epoch)

    def start(self) -> None:
        with self.fake._lock:
            self.fake.alive.append(self.key)
            many = sum(name == self.key[0] for name, _ in self.fake.alive)
            self.fake.most[self.key[0]] = max(many, self.fake.most.get(self.key[0], 0))

    def standing(self) -> Standing:
        return Standing(self.task.fragment, self.task.generation)

    def stop(self, clean: bool = False, tells: Callable[[Standing], None] | None = None) -> bool:
        if tells is not None:
            tells(self.standing())
        with self.fake._lock:
            if self.key in self.fake.alive:
                self.fake.alive.remove(self.key)
        return True

    def failure(self) -> tuple[str, bool] | None:
        return None

    def drained(self) -> bool:
        return False


class LiveDesk:
    """The live desk and its sites, driven without Spark, one wish after another."""

    def __init__(self, deployment: Deployment, placement: Placement, folder: Path) -> None:
        deployment = with_ordering(deployment)
        state = State(folder / "state")
        state.disk.make(state.path)
        self.fake, transport = Fake(), InProcess()
        rules = Rules(cutting(lambda _, operator: weft.spec.is_stateful(operator), passes_by_sql), Paths(deployment))
        self.changes = Changes(state, rules)
        self.changes.begin(first_plan(deployment, placement, rules), None)
        self.sites = Sites(state, lambda site: self.fake, transport, lambda line: None)
        for site in deployment.sites:
            self.sites.start(site.name)
        with pytest.MonkeyPatch.context() as patched:
            # What a crash has ended is seen by asking: ten times as often here.
            patched.setattr(conductor, "ConductorLimits", lambda: ConductorLimits(poll_ms=200))
            self.desk = DeskBody(self.changes, transport, lambda line: None, lambda site, silent: False)
        self.desk.start()
        self.controlling = Controlling(deployment, lambda: self.changes.placement, transport, lambda line: None)
        self.controlling.tell_desk, self.changes.hand_on = self.changes.tell_desk, self.controlling.wish
        self.controlling.start()

    def __enter__(self) -> LiveDesk:
        assert self.desk.running.wait(20)
        return self

    def __exit__(self, *error: object) -> None:
        self.controlling.stop()
        self.desk.stop()
        self.changes.close()
        for body in self.sites.bodies():
            body.stop()

    def until_all_run(self) -> None:
        """What a site that came back is to run, it runs."""
        deadline, wanted = time.monotonic() + 20, {one.id for one in self.changes.fragments}
        while not wanted <= {name for name, _ in self.fake.alive}:
            assert time.monotonic() < deadline, "a site that came back does not run what it is to run"
            time.sleep(0.005)

    def ask(self, wish: Wish) -> Asked:
        """A wish, once it is over."""
        asked = self.changes.ask(wish)
        deadline = time.monotonic() + 20
        while asked.state == "asked":
            assert time.monotonic() < deadline, f"{wish} has no end"
            assert self.desk.carrier.failure is None
            time.sleep(0.005)
        return asked


def at_the_live_desk(deployment: Deployment, placement: Placement, folder: Path) -> tuple[Told, Changes, Fake]:
    """What the live desk and its sites did and refused of a scenario's moves."""
    told: Told = []
    with LiveDesk(deployment, placement, folder) as live:
        for happening in deployment.scenario:
            assert isinstance(happening, MoveAt)
            asked = live.ask(MoveTo({happening.move: happening.to}, "scenario", "scenario"))
            word = asked.moves[0].start if asked.state == "done" else asked.why
            told.append((happening.move, happening.to, asked.state, word))
    return told, live.changes, live.fake


def placement_of(deployment: Deployment) -> Placement:
    """Where everything begins."""
    return place(with_ordering(deployment))
