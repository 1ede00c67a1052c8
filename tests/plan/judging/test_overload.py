"""Who asks for more than there is is told by how much, and where."""

from __future__ import annotations

from weft.plan.judging.batch_costs import SHIPPED
from weft.plan.judging.batch_pieces import BatchPiece
from weft.plan.judging.batch_projection import overload

COSTS = SHIPPED


def piece(name: str, record_ms: float, per_s: float) -> BatchPiece:
    return BatchPiece(name, "x", (), (), 50.0, record_ms, False, (), taken_per_s=per_s)


def test_one_fragment_that_asks_for_too_much_is_named_with_the_share_that_it_could_do() -> None:
    assert overload((piece("q.a", 1.0, 100.0), piece("q.b", 9.0, 200.0)), COSTS) == (
        "q.b at x alone asks for 1,800 ms of work a second, 1,000 can be done: 56% of the records"
    )
    assert overload((piece("q.a", 1.0, 100.0), piece("q.b", 1.0, 200.0)), COSTS) is None
    assert overload((), COSTS) is None


def test_many_together_are_told_as_such() -> None:
    said = overload(tuple(piece(f"q.{at}", 0.9, 1000.0) for at in range(20)), COSTS)
    assert said is not None
    assert said.startswith("all fragments together ask for 18,000 ms of work a second")
