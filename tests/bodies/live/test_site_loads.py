"""What came to a site's operators, from what it measures of its fragments; nothing where something is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.bodies.live.balancing.kept import Kept, KeptBalance
from weft.bodies.live.balancing.loads import SiteLoads, Unmeasured
from weft.bodies.live.state import State
from weft.plan.changing.fragments import Fragment
from weft.protocol.balancing import Agreed, BalanceFrom, BalanceLimits, Declared, Memory, Part, Streams
from weft.protocol.reporting import BatchDone, BatchWeighed, FragmentNow, Measured, SiteNow, Waiting

TOLD = BalanceFrom(
    1, "top", (), Streams({"source s": (), "q.a": ("source s",), "q.b": ("q.a",), "q.c": ("q.b", "source s")}),
    Memory({}), BalanceLimits((1_000_000,)), ("cpu",),
    {"q.a": Declared(2.0), "q.b": Declared(1.0), "q.c": Declared()}, 5.0,
)  # fmt: skip


def fragment(*operators: str) -> Fragment:
    return Fragment("f", "left", ("q",), operators, (), None, (), (), (), ())


def running(*operators: str, epoch: int = 1) -> dict[str, tuple[int, Fragment]]:
    return {"f": (epoch, fragment(*operators))}


def measured(taken: int, *events: object, waiting: tuple[Waiting, ...] = (), **more: object) -> Measured:
    now = FragmentNow("f", **{"epoch": 1, "generation": 0, "taken": taken, "waiting": waiting, **more})  # type: ignore[arg-type]
    return Measured(events, SiteNow((now,)))  # type: ignore[arg-type]


def weighed(*counts: tuple[str, int | None, int | None]) -> BatchWeighed:
    names, into, out = zip(*counts, strict=True)
    return BatchWeighed("f", "q", 1, names, into, out)


def loads(counted: SiteLoads, *operators: str, epoch: int = 1, seconds: float = 5.0) -> dict[str, int]:
    found = counted.look(running(*operators, epoch=epoch), TOLD, seconds)
    return {part.operator: part.loads[0] for part in found}


def test_load_is_what_came_a_second_times_its_cost() -> None:
    counted = SiteLoads()
    counted.add(measured(1_000))
    with pytest.raises(Unmeasured, match=r"records of q\.a"):
        loads(counted, "a")
    counted.add(measured(1_500))
    assert loads(counted, "a") == {"q.a": 200_000}, "500 in 5 s, of 2 ms each"
    counted.add(measured(1_500))
    assert loads(counted, "a") == {"q.a": 0}


def test_what_waits_more_than_it_did_has_come_too() -> None:
    counted = SiteLoads()
    counted.add(measured(100, waiting=(Waiting("q.x", "a", 10, 1),)))
    with pytest.raises(Unmeasured):
        loads(counted, "a")
    counted.add(measured(200, waiting=(Waiting("q.x", "a", 160, 3),)))
    assert loads(counted, "a", seconds=1.0) == {"q.a": 500_000}, "100 were taken, and 150 more wait"


def test_what_waits_in_users_files_counts_when_it_is_read() -> None:
    counted = SiteLoads()
    files = (Waiting("s", "a", 10_000, None),)
    counted.add(measured(0, waiting=files))
    with pytest.raises(Unmeasured):
        loads(counted, "a")
    done = BatchDone("f", 0, 3, 100, sources={"s": 250})
    counted.add(measured(0, done, waiting=(Waiting("s", "a", 20_000, None),)))
    assert loads(counted, "a", seconds=1.0) == {"q.a": 500_000}


def test_what_comes_is_spread_over_operators_as_batches_were() -> None:
    counted = SiteLoads()
    counted.add(measured(0, weighed(("a", 100, 40), ("b", 40, 20), ("c", 120, 5))))  # c reads b and the source
    with pytest.raises(Unmeasured):
        loads(counted, "a", "b")
    counted.add(measured(400))
    assert loads(counted, "a", "b", seconds=1.0) == {"q.a": 400_000, "q.b": 80_000}, "200 entered for 100 into a"


@pytest.mark.parametrize(
    ("operators", "events", "more", "why"),
    [
        (("a", "b"), (), {}, r"records of q\.a"),
        (("a", "b"), (weighed(("a", 10, 5), ("b", None, None)),), {}, r"records of q\.b"),
        (("c",), (), {}, r"cost of q\.c"),
        (("a",), (), {"epoch": 2}, r"records of q\.a"),
        (("a",), (), {"begun": False}, r"records of q\.a"),
    ],
)
def test_a_period_in_which_anything_is_not_known_is_none(
    operators: tuple[str, ...], events: tuple[object, ...], more: dict[str, Any], why: str
) -> None:
    counted = SiteLoads()
    counted.add(measured(0, *events))
    with pytest.raises(Unmeasured):
        loads(counted, *operators)
    counted.add(measured(100, **more))
    with pytest.raises(Unmeasured, match=why):
        loads(counted, *operators)


def test_a_balancer_whose_file_is_garbled_begins_as_it_is_told(tmp_path: Path) -> None:
    state = State(tmp_path)
    kept = KeptBalance(state, "left/1")
    assert kept.read() is None
    held = Kept(3, Memory({"q.a": (5,)}, count=7), (Agreed("top", 2, (Part("q.a", (5,)),), "top was busy"),))
    kept.write(held)
    assert KeptBalance(State(tmp_path), "left/1").read() == held
    (file,) = (tmp_path / "balance").iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    assert kept.read() is None


def test_state_counts_as_measured_where_memory_does() -> None:
    import msgspec

    told = msgspec.structs.replace(TOLD, resources=("cpu", "memory"), operators={"q.a": Declared(2.0, 64.0)})
    counted = SiteLoads()
    for taken, events in ((0, ()), (0, ()), (0, (BatchDone("f", 0, 1, 5, state_kb={"q.a": 99.6}),))):
        counted.add(measured(taken, *events))
        try:
            found = counted.look(running("a"), told, 1.0)[0].loads
        except Unmeasured:
            continue
        assert found == ((0, 64) if not events else (0, 100))
