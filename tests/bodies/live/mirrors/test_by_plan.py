"""What a site follows, keeps and lets go by the plan in force, where streams are mirrored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bodies.live.mirrors.mirrored import Places
from tests.bodies.live.wire.ports import Ports, until
from tests.plan.changing.test_next_plan import begun, granted, whole
from tests.spark.channels.test_log import segment
from weft.bodies.live import journal
from weft.bodies.live.mirrors.by_plan import ByPlan
from weft.bodies.live.mirrors.serving import Home
from weft.bodies.live.state import State
from weft.bodies.live.wire.authority import make_keys
from weft.model.wishes import MoveTo
from weft.plan.changing.running_plan import RunningPlan
from weft.plan.changing.task import Task
from weft.spark.channels.channel import fragment_of, reader_name
from weft.spark.channels.log_writer import LogWriter

STREAM = "q.a"
READER = "q.b"
FIRST = begun(whole(), {"q.a": "x", "q.b": "y", "r.c": "x"})


class Sites:
    """Three sites, the journal that all of them read, and what each does by it."""

    def __init__(self, ports: Ports, root: Path) -> None:
        self.places = Places(ports, root, "xyz")
        self.state = State(root / "state")
        self.state.disk.make(self.state.path)
        self.by_plan = {name: ByPlan(name, self.state, one) for name, one in self.places.mirroring.items()}

    def decide(self, plan: RunningPlan) -> None:
        journal.write(self.state, plan, {}, {})
        for one in self.by_plan.values():
            one.look()

    def homes(self) -> dict[str, str]:
        """The sites that follow the stream, each with where."""
        found = {name: one.followed().get(STREAM) for name, one in self.places.mirroring.items()}
        return {name: home for name, home in found.items() if home is not None}


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    keys = tmp_path / "keys"
    make_keys(keys, ["x", "y", "z"])
    ports = Ports(keys)
    made = Sites(ports, tmp_path)
    yield made
    made.places.close()
    ports.close()


def test_streams_are_followed_at_their_homes_also_when_a_home_or_a_reader_moves(sites: Sites) -> None:
    sites.decide(FIRST)
    assert sites.homes() == {"y": "x"}
    moved = granted(FIRST, MoveTo({"q.a": "z"}))
    sites.decide(moved)
    assert sites.homes() == {"y": "z"}
    sites.decide(granted(moved, MoveTo({"q.b": "x"})))
    assert sites.homes() == {"x": "z"}


def test_a_home_keeps_all_for_a_reader_that_has_not_come_and_what_it_needs_once_it_has(sites: Sites) -> None:
    sites.decide(FIRST)
    home, copy = sites.places.log("x", STREAM), sites.places.log("y", STREAM)
    home.register("other~in")
    writer = LogWriter(home, 1, "f")
    for batch in range(12):
        segment(writer, batch)
        home.passed("other~in", batch + 1)
    home.retain()
    assert home.first_segment() == 0
    copy.register(reader_name(READER, "in"))
    copy.passed(reader_name(READER, "in"), 9)
    until(lambda: home.needed() == 9, "what the reader has passed comes to the home, and it is awaited no longer")


def test_a_change_under_way_keeps_what_it_follows_until_it_is_decided_or_off(sites: Sites) -> None:
    sites.decide(FIRST)
    then = granted(FIRST, MoveTo({"q.b": "z"}))
    new = next(one for one in then.fragments if one.id == READER)
    task = Task(new, homes={STREAM: "x"}, plan=then.number)
    sites.by_plan["z"].asked(task)
    sites.decide(FIRST)
    assert sites.homes() == {"y": "x", "z": "x"}
    sites.by_plan["z"].off(task)
    sites.by_plan["z"].look()
    assert sites.homes() == {"y": "x"}


def test_a_reader_that_moved_is_not_forgotten_when_its_old_site_follows_again_without_it(sites: Sites) -> None:
    sites.decide(FIRST)
    home = sites.places.log("x", STREAM)
    segment(LogWriter(home, 1, "f"), 0)
    # One of its own: that of the site also hears, at moments of its own, what its followers tell.
    served, way_in = Home(sites.places.mirroring["x"].home.folders), reader_name(READER, "in")
    served.pass_on(home, "y", {way_in: (0, False)})
    served.pass_on(home, "z", {way_in: (1, True)})
    served.pass_on(home, "y", {})
    assert READER in map(fragment_of, home.known())
    served.pass_on(home, "z", {})
    assert READER not in map(fragment_of, home.known())
