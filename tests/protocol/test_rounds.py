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
    Promise,
    Query,
    Relief,
    Sink,
    Site,
    Source,
)
from weft.protocol import Effect
from weft.protocol.control import (
    BALANCE,
    PROMISE,
    AskFor,
    Considered,
    Controller,
    Noticed,
    Observation,
    Rounds,
    Shift,
    Wished,
    desires,
    looks_every_s,
    neighbourhood,
)
from weft.protocol.control import Advise as Advise_
from weft.protocol.control.rules import due_rules
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
    assert wish.numbers["objective"]["before"] is None
    assert wish.numbers["price"] == 1.0
    (left,) = {shift.before for shift in wish.shifts}
    assert wish.numbers["busy"][left]["before"] > 1.0 > wish.numbers["busy"][left]["after"]
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


RELIEVED = Query("q", (ONE, TWO), (Sink("two", "console"),), Promise(latency_ms=500.0))


def relieving(advise: Advise | None = None) -> Deployment:
    made = world(advise)
    control = replace(made.control, relief=Relief(period_s=10.0, horizon_s=60.0))
    return replace(made, queries=(RELIEVED, made.queries[1]), control=control)


def test_what_relief_wishes_is_asked_for_and_noted_until_its_end() -> None:
    rounds, controller = Rounds(relieving(), AT_A), Controller("controller")
    heard = carried(rounds, controller, rounds.measured(seen(600.0), AT_A))
    (asked,) = [effect for effect in heard if isinstance(effect, AskFor)]
    wish = rounds.granted(asked.number)
    assert wish is not None
    assert (wish.by, wish.reason) == ("relief", wish.reason)
    assert wish.reason.startswith("q.one and q.two leave a: "), "what reads it goes along"
    (entry,) = rounds.decisions.entries()
    assert (entry["by"], entry["who"], entry["state"]) == ("relief", PROMISE, "asked")
    then = AT_A
    for stream, to in wish.homes.items():
        then = then.put(stream, to)
    controller.handle(rounds.over(asked.number, None, then))
    assert [one["state"] for one in rounds.decisions.entries()] == ["done"]
    assert rounds.measured(seen(600.0, at_s=20.0), then) == [Observation(2, True)], "its own change need not be noticed"
    assert rounds.granted(99) is None


def test_what_is_refused_is_noted_with_the_reason_and_then_rests() -> None:
    rounds, controller = Rounds(relieving(), AT_A), Controller("controller")
    heard = carried(rounds, controller, rounds.measured(seen(600.0), AT_A))
    (asked,) = [effect for effect in heard if isinstance(effect, AskFor)]
    controller.handle(rounds.over(asked.number, "no path", AT_A))
    for at in (2, 3):
        carried(rounds, controller, rounds.measured(seen(600.0, at_s=10.0 * at), AT_A))
    refused, declined = rounds.decisions.entries()
    assert (refused["state"], refused["why"]) == ("refused", "no path")
    assert (declined["state"], declined["why"], declined["times"]) == ("declined", "site a rests", 2)
    assert (declined["at_s"], declined["until_s"]) == (20.0, 30.0)


def test_what_nothing_would_help_is_noted_and_nobody_is_asked() -> None:
    alone = replace(relieving(), sites=(Site("a"), Site("b", 0.01)))
    rounds, controller = Rounds(alone, AT_A), Controller("controller")
    heard = carried(rounds, controller, rounds.measured(seen(600.0), AT_A))
    assert not any(isinstance(effect, AskFor | Advise_) for effect in heard)
    (entry,) = rounds.decisions.entries()
    assert (entry["state"], entry["moves"]) == ("declined", [])
    assert "no site keeps all promises" in entry["why"]


def test_where_two_rules_are_on_each_looks_by_its_own_period() -> None:
    both = relieving(Advise(period_s=30.0, price=0.0))
    assert looks_every_s(both) == 10.0
    assert due_rules(both, {}, 10.0) == ["relief", "place"]
    looked = {"relief": 10.0, "place": 10.0}
    assert due_rules(both, looked, 20.0) == ["relief"]
    assert due_rules(both, looked, 39.5) == ["relief", "place"], "measurements come a little early"
    assert due_rules(world(), {"place": 10.0}, 12.0) == ["place"]
    assert looks_every_s(world(None)) is None
