"""The directory of 500 sites in virtual time: right lookups, few messages, loads told by level."""

from __future__ import annotations

import random

import pytest

from weft.bodies.twin.directory import ManySites, load_updates
from weft.protocol.directory import Limits, site_key

NAMES = tuple(f"s{number}" for number in range(500))


def test_sites_find_every_stream_and_no_other_while_some_come_leave_and_crash() -> None:
    find_all(100)


@pytest.mark.long
def test_500_sites_find_every_stream_and_no_other_while_some_come_leave_and_crash() -> None:
    find_all(500)


def find_all(sites: int) -> None:
    """Some sites come, 1 % leave, 2 % crash; 200 questions are right, by one message each where somebody offers it.

    Where nobody does, all copies are asked: the one asked first may be new.
    """
    old, names = NAMES[: sites - 10], NAMES[:sites]
    streams = sites * 3 // 5
    many, rng = ManySites(seed=7), random.Random(7)
    for name in old:
        many.join(name, old)
    many.run(40_000)
    for number, name in enumerate(old):
        many.offers(name, (f"stream {number % streams}",))
    many.run(5_000)
    before = sum(many.sent.values())
    many.offers("s0", ("stream 0", "something new"))
    many.run(0.0)
    assert sum(many.sent.values()) - before <= 2 * Limits().copies  # a change is told to the holders alone
    for name in names[sites - 10 :]:
        many.join(name, names)
    for name in rng.sample(old[streams:], sites // 100):
        many.leave(name)
    for name in rng.sample([one for one in old[1:streams] if one in many.up], sites // 50):
        many.crash(name)
    many.run(60_000)
    offers: dict[str, list[str]] = {f"stream {number}": [] for number in range(streams)}
    for number, name in enumerate(old):
        if name in many.up:
            offers[f"stream {number % streams}"].append(name)
    asked = dict(enumerate(rng.choices(sorted(offers), k=200)))
    kinds = many.sent.copy()
    for number, stream in asked.items():
        many.seek(rng.choice(sorted(many.up)), number, stream)
    many.run(9_000)
    for number, stream in asked.items():
        assert sorted(one.site for one in many.found[number].offers) == sorted(offers[stream]), stream
    offered = sum(bool(offers[stream]) for stream in asked.values())
    most = 1.1 * offered + 2 * Limits().copies * (len(asked) - offered)  # one hop, and a few who are away
    assert offered <= many.sent["AskOffers"] - kinds["AskOffers"] + 0.1 * offered  # few sites hold what they seek
    assert many.sent["AskOffers"] - kinds["AskOffers"] <= most


def test_a_crashed_site_is_found_no_longer_than_a_lease_and_a_returned_one_again() -> None:
    many = ManySites(seed=3)
    names = NAMES[:20]
    for name in names:
        many.join(name, names)
    many.run(40_000)
    many.crash("s4")
    many.run(45_000)
    many.seek("s9", 1, site_key("s4"))
    many.run(9_000)
    assert many.found[1].offers == ()
    many.join("s4", names)
    many.run(30_000)
    many.seek("s9", 2, site_key("s4"))
    many.run(9_000)
    assert [one.site for one in many.found[2].offers] == ["s4"]


def test_more_levels_cost_more_load_updates_and_far_fewer_than_looks() -> None:
    counts = [load_updates(levels, sites=10, steps=200) for levels in (3, 5, 7)]
    messages = [one["messages"] for one in counts]
    assert 0 < messages[0] <= messages[1] <= messages[2] < counts[0]["looks"] / 5
