"""S-lab5: queries that one site cannot bear miss their deadlines, and relief takes some of that away."""

from __future__ import annotations

from dataclasses import replace

from weft.lab.s_lab5 import Crowd, told, world

SMALL = replace(Crowd(), sites=4, operators=2, lasts_s=90.0, promise_ms=2_000.0)


def test_every_site_asks_so_many_queries_and_their_operators_lie_apart() -> None:
    deployment, placement = world(SMALL, 3, relieves=True, seed=1)
    assert len(deployment.queries) == 12
    assert all(placement.homes[f"{one.name}.o0"] != placement.homes[f"{one.name}.o1"] for one in deployment.queries)
    other, same = world(SMALL, 3, relieves=False, seed=1)
    assert (other.sources, other.queries, same.homes) == (deployment.sources, deployment.queries, placement.homes)


def test_misses_come_with_load_and_relief_moves_for_them() -> None:
    few, many = (told(replace(SMALL, used_at_10=used), 3, relieves=False, seed=2) for used in (0.8, 3.0))
    assert (few.missed, few.moves) == (0.0, 0)
    assert many.missed > 0.02
    relieved = told(replace(SMALL, used_at_10=3.0), 3, relieves=True, seed=2)
    assert relieved.moves >= 1
    assert relieved.missed < many.missed
