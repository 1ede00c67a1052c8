"""A batch is expected to take as long for each record as the last few did."""

from __future__ import annotations

from weft.spark.fragments.durations import Durations


def durations(now: list[float], *batches: tuple[int, float]) -> Durations:
    found = Durations(lambda: now[0])
    for records, took_s in batches:
        found.begins(records)
        now[0] += took_s
        found.is_over()
    return found


def test_a_batch_of_ten_times_the_records_has_long_to_go_until_its_time_is_nearly_over() -> None:
    now = [0.0]
    found = durations(now, (100, 0.5), (100, 0.5))
    assert not found.are_long()
    assert not found.has_long_to_go(), "none is under way"
    found.begins(1000)
    assert found.has_long_to_go()
    now[0] += 2.9
    assert found.has_long_to_go()
    now[0] += 0.2
    assert not found.has_long_to_go()
    now[0] += 2.0
    found.is_over()
    assert found.are_long()
    assert not found.has_long_to_go()


def test_nothing_is_expected_of_the_first_batch_nor_of_one_that_failed() -> None:
    now = [0.0]
    found = durations(now)
    found.begins(1000)
    assert not found.has_long_to_go()
    found.is_off()
    found.begins(1000)
    assert not found.has_long_to_go()
    assert not found.are_long()


def test_a_short_batch_after_a_long_one_is_waited_for() -> None:
    now = [0.0]
    found = durations(now, (100, 30.0), (1, 0.3))
    assert not found.are_long()


def test_where_records_are_not_counted_a_batch_is_expected_to_take_as_long_as_the_others() -> None:
    now = [0.0]
    found = durations(now, (1, 0.1))
    for took_s in (4.0, 6.0):
        found.begins(None)
        now[0] += took_s
        found.is_over()
    found.begins(None)
    now[0] += 2.9
    assert found.has_long_to_go()
    now[0] += 0.2
    assert not found.has_long_to_go()
