"""Rooms and elastic pipelines in virtual time: what the lab rows of exclusion and scaling stand on."""

from __future__ import annotations

import pytest

from weft.lab import d_lab1, d_lab2
from weft.lab.elastic import CAPACITY, run
from weft.lab.rooms import Storm, visit
from weft.protocol.scaling import ScaleRule

SHORT = "uniform 1-3 ms"


def test_ra1_sends_two_messages_to_everyone_and_forks_two_to_each_competitor_at_most() -> None:
    assert visit("RA1", (3, 3), 4, 1000, 1000, SHORT, 1).messages == 2 * 4 * 6 * 5
    assert visit("forks", (3, 3), 4, 1000, 1000, SHORT, 1).messages <= 2 * 4 * 6 * 3


def test_alone_a_group_enters_without_messages_once_it_holds_the_forks() -> None:
    assert visit("forks", (3, 1), 1, 10, 10, SHORT, 1).messages <= 2 * 3 * 2
    assert visit("forks", (3, 0), 5, 10, 10, SHORT, 1).messages == 0


def test_groups_that_are_not_in_conflict_do_not_wait_for_one_another() -> None:
    chain = visit("forks", (2, 2, 2), 3, 100, 100, SHORT, 1, conflicts={"a": "b", "b": "ac", "c": "b"})
    all_apart = visit("forks", (2, 2, 2), 3, 100, 100, SHORT, 1)
    assert chain.messages < all_apart.messages


def test_a_storm_is_broken_off_and_forks_have_none() -> None:
    with pytest.raises(Storm):
        visit("2-FGME", (12, 12), 5, 10, 10, "exponential 100 ms", 0, messages_max=10_000)
    assert visit("forks", (12, 12), 5, 10, 10, "exponential 100 ms", 0).messages < 3 * 24 * 12 * 5


def test_instances_follow_a_load_that_doubles_and_one_that_vanishes() -> None:
    found = run(lambda operator, step: 4900.0 if step < 20 else 9800.0, seed=1, steps=80)
    assert all(24 <= counts[-1] <= 33 for counts in found.counts.values())
    gone = run(lambda operator, step: 4900.0 if step < 20 else 0.0, seed=1, steps=80)
    assert all(counts[-1] == 1 for counts in gone.counts.values()), "the keeper stays"


def test_instances_make_up_for_capacity_that_fades() -> None:
    fading = run(
        lambda operator, step: 4900.0, seed=1, steps=120,
        capacity_of=lambda instance, step: CAPACITY / 2 if step > 40 and hash_of(instance) % 2 else CAPACITY,
    )  # fmt: skip
    for operator, loads in fading.loads.items():
        assert 0.6 <= loads[-1] / fading.capacities[operator][-1] <= 0.85


def hash_of(name: str) -> int:
    return sum(map(ord, name))


def test_safe_mode_makes_whole_copies_where_chance_could_leave_too_few() -> None:
    tight = ScaleRule(target=0.95, high=0.97, low=0.85)
    safe = ScaleRule(target=0.95, high=0.97, low=0.85, safe=True)
    late = [d_lab2.late(run(d_lab2.wave, 1, instances=2, steps=100, rule=rule)) for rule in (tight, safe)]
    assert late[1] < late[0]


def test_a_scale_out_takes_the_messages_the_formula_says() -> None:
    assert d_lab2.messages_of(copies=2, ups=3, downs=4) == 2 * 7 + 2


def test_deciding_alone_is_as_good_as_a_leader() -> None:
    alone, leader = (d_lab1.judged(run(d_lab1.brownian(1), 1, who, steps=100)) for who in ("instances", "leader"))
    assert alone["off"] < leader["off"] + 0.05
    assert alone["throughput"] > 0.98
