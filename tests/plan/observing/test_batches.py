"""What batches tell of their costs, from batches made up by the model itself."""

from __future__ import annotations

from random import Random

import pytest

from weft.plan.judging.batch_costs import Crowding
from weft.plan.observing.batches import Batch, fitted, under_way


def test_how_many_were_under_way_is_counted_over_each_batch() -> None:
    batches = [Batch("a", 0.0, 10.0, 1), Batch("b", 5.0, 15.0, 1), Batch("c", 20.0, 30.0, 1)]
    assert under_way(batches) == pytest.approx([1.5, 1.5, 1.0])


def test_fixed_costs_and_the_crowd_are_found_again() -> None:
    rng = Random(1)
    batches, now = [], 0.0
    for turn in range(60):
        names = ("plain", "window") if turn % 2 else ("plain",) if turn % 4 else ("window",)
        took = {name: {"plain": 200.0, "window": 500.0}[name] for name in names}
        # Both begin together: the shorter runs beside the other for all its time.
        if len(names) == 2:
            plain = took["plain"] * 1.6 * rng.uniform(0.95, 1.05)
            rest = (took["window"] - plain / 1.6) * 1.0
            batches += [Batch("plain", now, now + plain, 1), Batch("window", now, now + plain + rest, 1)]
        else:
            batches.append(Batch(names[0], now, now + took[names[0]] * rng.uniform(0.95, 1.05), 1))
        now += 2000.0
    crowding, fixed, spread = fitted(batches, under_way(batches), Crowding(9.0))
    assert crowding.crowd == pytest.approx(0.6, abs=0.1)
    assert fixed["plain"] == pytest.approx(200, rel=0.06)
    assert fixed["window"] == pytest.approx(500, rel=0.06)
    assert spread < 0.1


def test_where_two_cores_take_two_batches_in_the_time_of_one_only_a_third_makes_them_longer() -> None:
    batches, now = [], 0.0
    for turn in range(80):
        count = turn % 5 + 1
        took = 100.0 * max(1.0, count / 2)
        batches += [Batch(name, now, now + took, 1) for name in "abcde"[:count]]
        now += 1000.0
    crowding, fixed, _ = fitted(batches, under_way(batches), Crowding(9.0), cores=2)
    assert crowding == Crowding(0.5, 2.0)
    assert fixed["a"] == pytest.approx(100)
    assert fitted(batches, under_way(batches), Crowding(9.0))[0].room == 1.0


def test_batches_that_were_never_alone_do_not_tell_what_others_cost() -> None:
    batches = [Batch(name, at * 1000.0, at * 1000.0 + 900.0, 1) for at in range(10) for name in "ab"]
    crowding, fixed, _ = fitted(batches, under_way(batches), Crowding(0.8))
    assert crowding == Crowding(0.8)
    assert fixed["a"] == pytest.approx(900 / 1.8)
