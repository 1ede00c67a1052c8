"""Deployments that nobody should write: a clear word, never a hang and never more memory than there is."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys

import pytest

from tests.bodies.twin.twin_worlds import pair, placed, source, station, step
from weft.bodies.twin import CannotRun, run
from weft.model import (
    Constant,
    Cost,
    CrashAt,
    Deployment,
    JoinWindow,
    Link,
    MoveAt,
    OnOff,
    PartitionAt,
    Placement,
    Poisson,
    Query,
    Queue,
    RateAt,
    RestartAt,
    Sine,
    Sink,
    Site,
    Trace,
    Watermark,
)

WORK = Cost("exponential", (1.0,))


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e-12, math.nan, math.inf, 1e9])
def test_a_run_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(CannotRun, match="seconds"):
        run(station(Poisson(10.0), WORK), seconds=seconds)


def test_a_placement_that_leaves_an_operator_out_is_refused() -> None:
    for wrong in (Placement({"x.y": "a"}), Placement({"q.o": "nowhere"})):
        with pytest.raises(CannotRun, match=r"q\.o"):
            run(station(Poisson(10.0), WORK), wrong, seconds=1)


def test_rates_that_change_too_often_are_refused() -> None:
    with pytest.raises(CannotRun, match="changes its rate"):
        run(station(Sine(100.0, period_s=0.001), WORK), seconds=1e6)


def test_windows_that_never_close_are_refused() -> None:
    window = step("w", "s", selectivity=0.1, window=JoinWindow(seconds=1e-6), watermarks=(Watermark("1 hour"),))
    deployment = Deployment(
        (Site("a"),), (source("s", "a", Constant(10.0)),), (Query("q", (window,), (Sink("w", "console"),)),)
    )
    with pytest.raises(CannotRun, match="windows open"):
        run(deployment, seconds=1)


def test_a_million_records_a_second_are_counted() -> None:
    found = run(station(Constant(1e6), Cost("constant", (0.0005,))), seconds=0.5)
    assert found.queries["q"]["records_in"] == pytest.approx(500_000, abs=1)
    assert found.sites["a"]["utilisation"] == pytest.approx(0.5, abs=0.001)


def test_more_records_than_there_are_nanoseconds_end_with_a_warning() -> None:
    found = run(station(Constant(1e12), WORK), seconds=10, records_max=50_000)
    assert any("records in flight" in warning for warning in found.warnings)


def test_a_flood_of_results_ends_with_a_warning() -> None:
    query = Query("q", (step("o", "s", cost=0.1, selectivity=1e15),), (Sink("o", "console"),))
    deployment = Deployment((Site("a"),), (source("s", "a", Constant(10.0)),), (query,))
    assert any("records in flight" in warning for warning in run(deployment, seconds=10).warnings)


@pytest.mark.parametrize(
    "link",
    [Link("a", "b", 1e300), Link("a", "b", 1.0, 1e-300), Link("a", "b", 1e9, 1e-3)],
    ids=["delay", "bandwidth", "both"],
)
def test_what_takes_for_ever_never_arrives(link: Link) -> None:
    sites = (Site("a"), Site("b"))
    query = Query("q", (step("o", "s", cost=0.1),), (Sink("o", "console"),))
    deployment = Deployment(sites, (source("s", "a", Constant(100.0)),), (query,), (link,))
    found = run(deployment, placed(deployment, q__o="b"), seconds=60)
    assert found.queries["q"]["records_in"] == 6000
    assert found.queries["q"]["records_out"] == 0


def test_work_that_takes_for_ever_is_never_done() -> None:
    found = run(station(Constant(100.0), Cost("constant", (1e300,))), seconds=60)
    assert found.queries["q"]["records_out"] == 0
    assert found.sites["a"]["utilisation"] == pytest.approx(1.0)
    assert any("overloaded" in warning for warning in found.warnings)


def test_where_no_way_leads_records_are_lost_and_counted() -> None:
    query = Query("q", (step("o", "s"),), (Sink("o", "console"),))
    deployment = Deployment((Site("a"), Site("b")), (source("s", "a", Constant(10.0)),), (query,))
    found = run(deployment, placed(deployment, q__o="b"), seconds=10)
    assert any("100 records were lost" in warning for warning in found.warnings)


def test_a_diamond_of_queues_that_block_comes_to_its_end() -> None:
    sites, links = pair(delay_ms=1.0)
    tight = Queue(1, "block")
    operators = (
        step("head", "s", cost=WORK, queue=tight), step("left", "head", cost=WORK, queue=tight),
        step("right", "head", cost=WORK, queue=tight), step("join", "left", "right", cost=WORK, queue=tight),
    )  # fmt: skip
    query = Query("q", operators, (Sink("join", "console"),))
    rates = Trace((400.0, 0.0), 5.0)
    deployment = Deployment(sites, (source("s", "a", rates),), (query,), links)
    homes = {"q__head": "a", "q__left": "b", "q__right": "a", "q__join": "b"}
    found = run(deployment, placed(deployment, **homes), seconds=60, seed=1).queries["q"]
    assert found["records_out"] == 2 * found["records_in"]


def test_everything_at_once_in_a_scenario_comes_to_its_end() -> None:
    sites, links = pair(delay_ms=20.0)
    query = Query("q", (step("o", "s", cost=WORK, state_kb=500.0),), (Sink("o", "console", site="a"),))
    scenario = (
        MoveAt(1.0, "q.o", "b"), CrashAt(1.01, "b"), PartitionAt(1.02, ("a", "b"), 1.0), RestartAt(1.5, "b"),
        MoveAt(1.6, "q.o", "a"), CrashAt(1.6, "a"), CrashAt(1.7, "a"), RestartAt(3.0, "a"), RestartAt(3.0, "a"),
        RateAt(4.0, {"s": 0.0}), MoveAt(0.0, "q.o", "a"), PartitionAt(2.0, ("b", "a"), 0.001),
    )  # fmt: skip
    deployment = Deployment(sites, (source("s", "a", OnOff(50.0)),), (query,), links, scenario=scenario)
    found = run(deployment, placed(deployment, q__o="a"), seconds=60, seed=1).queries["q"]
    assert found["records_out"] == found["records_in"] > 0


def test_ctrl_c_gives_the_results_so_far() -> None:
    program = (
        # Shells start what runs in the background deaf to Ctrl-C.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from weft.model import *; from weft.bodies.twin import run;"
        "q=Query('q',(Operator('o',('s',),sql='',cost_ms=Cost('constant',(0.001,)),selectivity=1.0),),(Sink('o','console'),));"
        "d=Deployment((Site('a'),),(Source('s','a','rate',(),arrivals=Poisson(500000.0)),),(q,));"
        "run(d,seconds=1);"
        "r=run(d,seconds=100000,progress=lambda at,of: print('going',flush=True));"
        "print(r.warnings[-1],r.queries['q']['records_out']>0,round(r.sites['a']['utilisation'],2))"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "going\n"
    os.kill(child.pid, signal.SIGINT)
    said, _ = child.communicate(timeout=30)
    assert child.returncode == 0
    last = said.splitlines()[-1]
    assert last.startswith("interrupted at")
    assert last.endswith("results so far True 0.5")
