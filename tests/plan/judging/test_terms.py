"""Further terms: what a search adds up move by move is what each term says of the whole, built in or registered."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from tests.plan.plan_builders import deployment, op, query, source
from tests.plan.worlds import world
from weft.model import Control, Deployment, Place, Placement, Site
from weft.plan import NoPlacement, place
from weft.plan.judging.potential import potential
from weft.plan.judging.terms import TERMS, Pull, Term, register, values
from weft.plan.search.brute_force import score
from weft.plan.search.incremental import fill, shift
from weft.plan.search.packed import homes_of, pack
from weft.plan.search.problem import problem

WEIGHTS = {"traffic": 0.5, "risk": 3.0, "rent": 2.0}
RENT = {"s0": 1.0, "s1": 4.0, "s2": 2.0, "s3": 8.0}


@pytest.fixture(autouse=True)
def rent() -> Iterator[None]:
    """A term of our own: what operators pay for their sites, and a toll on every stream that leaves one."""

    def pull(whole: Deployment) -> Pull:
        paid = np.array([RENT.get(site.name, 1.0) for site in whole.sites])
        m, n = sum(len(query.operators) for query in whole.queries), len(paid)
        return Pull(np.tile(paid, (m, 1)), np.zeros((n, n)), (1.0 - np.eye(n)) * paid[:, None])

    def whole(given: Deployment, placement: Placement) -> float:
        total = sum(RENT.get(home, 1.0) for home in placement.homes.values())
        for asked in given.queries:
            home = {one.name: placement.home(f"{asked.name}.{one.name}") for one in asked.operators}
            home |= {source.name: source.site for source in given.sources}
            for one in asked.operators:
                total += sum(RENT.get(home[name], 1.0) for name in one.from_ if home[name] != home[one.name])
            for sink in asked.sinks:
                total += RENT.get(home[sink.from_], 1.0) * (sink.site not in (None, home[sink.from_]))
        return total

    register(Term("rent", pull, whole))
    yield
    del TERMS["rent"]


@pytest.mark.parametrize("objective", ["potential", "latency"])
def test_moves_add_up_to_what_terms_say_of_the_whole(objective: str) -> None:
    for seed in range(4):
        rng = Random(seed)
        whole = world(seed, operators=10, objective=objective, tangled=seed % 2 == 0, place={"terms": WEIGHTS})
        plain = world(seed, operators=10, objective=objective, tangled=seed % 2 == 0)
        given, bare = problem(whole), problem(plain)
        i, f, _ = pack(given.flat)
        total = fill(i, f, np.array([rng.randrange(4) for _ in given.operators], np.int64))
        for _ in range(20):
            total += shift(i, f, rng.randrange(10), rng.randrange(4))
            homes = homes_of(i)
            more = values(whole, given.placement(homes, ""))
            expected = score(bare.flat, homes.tolist()) + sum(WEIGHTS[name] * more[name] for name in WEIGHTS)
            assert total == pytest.approx(expected, rel=1e-9)
            assert score(given.flat, homes.tolist()) == pytest.approx(expected, rel=1e-9)


def test_a_term_pulls_operators_as_hard_as_it_is_weighed() -> None:
    sites = [Site("x", capacity=4.0, failure_probability=0.5), Site("y")]
    asked = query(op("a", "s"), op("b", "a"))

    def home(weight: float) -> str:
        control = Control(Place("refine", terms={"risk": weight}))
        return place(deployment(sites, [source("s", "x", 10.0)], asked, control=control)).home("q.b")

    assert (home(0.0), home(1000.0)) == ("x", "y")


def test_the_potential_stays_as_it_is_beside_other_terms() -> None:
    whole = world(1, place={"terms": WEIGHTS})
    placement = problem(whole).placement(np.zeros(10, np.int64), "")
    assert potential(whole, placement) == potential(world(1), placement)


def test_a_term_that_nobody_registered_is_named() -> None:
    with pytest.raises(NoPlacement, match="there is no term money; there are: rent, risk, traffic"):
        problem(world(1, place={"terms": {"money": 1.0}}))
