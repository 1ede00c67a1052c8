"""A site with a cap works no more than its capacity says, and nobody waits for ever."""

from __future__ import annotations

import threading
import time

import pytest

from weft.spark.fragments.pacing import Pace, Places


@pytest.mark.parametrize(("capacity", "at_once"), [(0.5, 1), (1.0, 1), (1.5, 2), (2.0, 2), (4.0, 4)])
def test_as_many_batches_run_at_once_as_the_capacity_has_whole_or_begun_units(capacity: float, at_once: int) -> None:
    places = Places(capacity)
    assert [places.take(0.0) is not None for _ in range(at_once + 1)] == [True] * at_once + [False]


@pytest.mark.parametrize("capacity", [0.25, 0.5, 1.0, 1.5, 3.0])
def test_in_the_long_run_a_site_that_always_has_work_does_what_its_capacity_says(capacity: float) -> None:
    places, now, worked_s, running = Places(capacity), 0, 0.0, []
    while now < 100_000:  # milliseconds, in steps; a batch takes 100
        for place, began in [one for one in running if now - one[1] >= 100]:
            running.remove((place, began))
            places.give(place, began / 1000, now / 1000, 0.1)
            worked_s += 0.1
        while (place := places.take(now / 1000)) is not None:
            running.append((place, now))
        now += 10
    assert worked_s / 100 == pytest.approx(capacity, rel=0.05)
    assert worked_s / 100 <= capacity + 1e-9


def test_time_without_work_is_not_saved_up() -> None:
    places = Places(0.5)
    place = places.take(100.0)
    assert place is not None
    places.give(place, 100.0, 101.0, 1.0)
    assert places.take(101.9) is None
    assert places.take(102.0) is not None


def test_a_place_stays_empty_for_what_tasks_took_and_not_for_what_a_batch_waited_beside_them() -> None:
    places = Places(0.5)
    for began_s, worked_s, free_s in ((0.0, 0.2, 1.0), (10.0, 0.8, 11.6), (20.0, 3.0, 26.0)):  # batches of a second
        place = places.take(began_s)
        assert place is not None
        places.give(place, began_s, began_s + 1.0, worked_s)
        assert places.take(free_s - 0.01) is None
        place = places.take(free_s)
        assert place is not None
        places.give(place, free_s, free_s, 0.0)


def test_one_that_is_to_end_waits_for_no_place_and_the_next_gets_its_turn() -> None:
    pace, over, told = Pace(1.0), threading.Event(), []

    def wait() -> None:
        with pace.turn(over.is_set) as has_place:
            told.append(has_place)

    with pace.turn(lambda: False):
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.12)
        assert told == []
        over.set()
        waiting.join(5)
    assert told == [False]
    with pace.turn(lambda: False) as has_place:
        assert has_place


def test_a_batch_that_fails_gives_its_place_back() -> None:
    pace = Pace(1.0)
    with pytest.raises(ValueError, match="bad"), pace.turn(lambda: False):
        raise ValueError("bad")
    with pace.turn(lambda: False) as has_place:
        assert has_place


def test_what_a_site_used_is_the_work_of_its_batches_and_of_those_under_way_the_time() -> None:
    now = [100.0]
    pace = Pace(2.0, lambda: now[0])
    with pace.turn(lambda: False, lambda: 2.5):
        now[0] += 3.0
        with pace.turn(lambda: False):  # nothing tells: it worked as long as it held its place
            now[0] += 1.0
            assert pace.used_s() == 5.0
    now[0] += 10.0
    assert pace.used_s() == 5.0, "what was told is not taken back"
    with pace.turn(lambda: False, lambda: 4.0):
        now[0] += 1.0
    assert pace.used_s() == 7.5
