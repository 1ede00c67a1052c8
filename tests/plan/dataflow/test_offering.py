"""What a query that comes could read where it is made already: the nearest of the same meaning, and its sites."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.dataflow.test_sharing import first, second, two
from tests.plan.plan_builders import op, query
from weft.plan.dataflow.meanings import stream_names
from weft.plan.dataflow.offering import Offered, nearest_offered

OFFERS = {"q.valid": ("x",), "q.sums": ("x", "y")}


def test_the_stream_nearest_to_the_result_is_told_with_the_sites_that_offer_it() -> None:
    given = two(first(), second())
    assert nearest_offered(given, {"r"}, OFFERS) == (Offered("r.good", "q.valid", ("x",)),)
    same = replace(first(), name="t")
    assert nearest_offered(two(first(), same), {"t"}, OFFERS) == (Offered("t.sums", "q.sums", ("x", "y")),)
    assert nearest_offered(two(first(), same), {"t"}, OFFERS)[0].words == (
        "t.sums is offered by x, y already, as q.sums (`from: q.sums` would read that from where it stands)"
    )


def test_what_nobody_offers_what_is_read_there_already_and_what_comes_itself_are_not_told() -> None:
    assert nearest_offered(two(first(), second()), {"r"}, {}) == ()
    assert nearest_offered(two(first(), second()), {"r"}, {"r.good": ("x",), "gone.valid": ("x",)}) == ()
    reads = query(op("high", "q.valid", sql="SELECT k, v FROM valid WHERE v > 6"), name="r")
    assert nearest_offered(two(first(), reads), {"r"}, OFFERS) == ()


def test_short_names_are_equal_where_meanings_are_whatever_deployment_they_are_worked_out_of() -> None:
    names = stream_names(two(first(), second()))
    assert names["q.valid"] == names["r.good"] == stream_names(two(second()))["r.good"]
    assert len({names["q.valid"], names["q.sums"], names["r.high"]}) == 3
    assert all(len(name) == 32 for name in names.values())
