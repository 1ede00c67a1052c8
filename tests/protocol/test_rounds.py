"""What a controller is fed from one observation to the next, what rules wish, and what is remembered of its advice."""

from __future__ import annotations

from dataclasses import replace

from weft.model import (
    Advise,
    Constant,
    Control,
    Cost,
    Deployment,
    Link,
    Observed,
    ObservedOperator,
    ObservedQuery,
    ObservedSite,
    ObservedSource,
    Operator,
    Placement,
    Query,
    Sink,
    Site,
    Source,
)
from weft.protocol import Effect
from weft.protocol.control import (
    BALANCE,
    PROMISE,
    Considered,
    Controller,
    Noticed,
    Observation,
    Rounds,
    Shift,
    Wished,
    desires,
    neighbourhood,
)
from weft.protocol.machine import Input

AT_A = Placement({"q.one": "a", "q.two": "a", "r.own": "a"})
ONE, TWO, OWN = (Operator(name, (read,), sql="x", cost_ms=Cost("constant", (1.0,))) for name, read in (
    ("one", "s"), ("two", "one"), ("own", "t")))  # fmt: skip


PRICE = Advise(price=1.0)


def world(advise: Advise | None = PRICE) -> Deployment:
    queries = (
        Query("q", (ONE, TWO), (Sink("two", "console"),)),
        Query("r", (OWN,), (Sink("own", "console"),)),
    )
    sources = tuple(Source(name, "a", "rate", (), arrivals=Constant(1.0)) for name in ("s", "t"))
    links = (Link("a", "b", 1.0),)
    return Deployment((Site("a"), Site("b", 4.0)), sources, queries, links, Control(advise=advise))


def seen(rate: float, kept: bool | None = None, missing: tuple[str, ...] = (), at_s: float = 10.0) -> Observed:
    each = ObservedOperator(rate, rate, 1.0, 1.0)
    return Observed(
        at_s, 10.0, not missing, missing,
        {"s": ObservedSource(rate), "t": ObservedSource(1.0)},
        {"q.one": each, "q.two": each, "r.own": ObservedOperator(1.0, 1.0, 1.0, 1.0)},
        {"a": ObservedSite(0.5), "b": ObservedSite(0.0)},
        {"q": ObservedQuery(10, 10, None, kept), "r": ObservedQuery(10, 10)},
    )  # fmt: skip


def carried(rounds: Rounds, controller: Controller, inputs: list[Input]) -> list[Effect]:
    """Tells a controller something and all that follows from it."""
    heard: list[Effect] = []
    waiting = list(inputs)
    while waiting:
        for effect in controller.handle(waiting.pop(0)):
            heard.append(effect)
            rounds.told(effect)
            if type(effect).__name__ == "Consider":
                waiting += rounds.considered(effect.number)  # type: ignore[attr-defined]
    return heard


def test_a_neighbourhood_is_what_moves_its_sites_and_the_streams_beside_it() -> None:
    touched = neighbourhood(world(), [Shift("q.one", "a", "b")])
    assert touched == ("site a", "site b", "q.one", "s", "q.two")
    assert set(neighbourhood(world(), [Shift("r.own", "a", "c")])) & set(touched) == {"site a"}


def test_a_rule_wishes_what_pays_by_what_was_measured_and_says_for_whom() -> None:
    assert desires(world(), [seen(1.0)], AT_A) == []
    (wish,) = desires(world(), [seen(600.0)], AT_A)
    assert wish.who == BALANCE
    assert {shift.of for shift in wish.shifts} <= {"q.one", "q.two"}
    assert "instead of without bound" in wish.reason
    (urgent,) = desires(world(), [seen(600.0, kept=False)], AT_A)
    assert urgent.who == PROMISE
    assert urgent.reason.startswith("the promise of q is broken; ")
    assert desires(world(None), [seen(600.0)], AT_A) == [], "nobody asked for advice"


def test_where_no_placement_is_possible_nothing_is_wished() -> None:
    down = replace(seen(600.0), sites={"a": ObservedSite(None, up=False), "b": ObservedSite(None, up=False)})
    assert desires(world(), [down], AT_A) == []


def test_a_round_is_noticed_measured_considered() -> None:
    rounds = Rounds(world(), AT_A)
    assert rounds.latest() is None
    assert rounds.measured(seen(1.0), AT_A) == [Observation(1, True)]
    assert rounds.considered(1) == [Considered(1)]
    moved = AT_A.put("r.own", "b")
    noticed, observation = rounds.measured(seen(600.0), moved)
    assert isinstance(noticed, Noticed)
    assert (noticed.number, noticed.shifts) == (1, (Shift("r.own", "a", "b"),))
    assert observation == Observation(2, True)
    wished, considered = rounds.considered(2)
    assert isinstance(wished, Wished)
    assert (wished.number, wished.seen, considered) == (2, 2, Considered(2))
    assert rounds.measured(seen(1.0, missing=("rate",)), moved) == [Observation(3, False, ("rate",))]


def test_advice_is_remembered_and_what_stays_the_same_is_one_entry() -> None:
    rounds, controller = Rounds(world(), AT_A), Controller("controller", advises=True)
    for at, rate in enumerate((1.0, 1.0, 600.0, 600.0, 600.0), 1):
        carried(rounds, controller, rounds.measured(seen(rate, at_s=10.0 * at), AT_A))
    carried(rounds, controller, rounds.measured(seen(1.0, missing=("rate",), at_s=60.0), AT_A))
    calm, advised, blind = rounds.history()
    assert (calm["at_s"], calm["until_s"], calm["advised"], calm["declined"]) == (10.0, 20.0, [], [])
    assert (advised["at_s"], advised["until_s"]) == (30.0, 50.0)
    (wish,) = advised["advised"]
    assert wish["who"] == BALANCE
    assert all(set(move) == {"query", "operator", "from", "to"} for move in wish["moves"])
    assert (blind["missing"], blind["advised"]) == (["rate"], [])
    assert rounds.latest() == blind


def test_what_was_moved_by_another_door_is_not_advised_upon_at_once() -> None:
    rounds, controller = Rounds(world(), AT_A), Controller("controller", advises=True)
    carried(rounds, controller, rounds.measured(seen(600.0), AT_A.put("r.own", "b")))
    look = rounds.latest()
    assert look is not None
    assert look["advised"] == []
    assert look["declined"][0]["why"] == "site a rests"
