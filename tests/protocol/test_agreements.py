"""What a desk makes of what balancers agreed upon: each handover asked for once, again where refused, or set right."""

from __future__ import annotations

from weft.protocol.balancing import AGAIN_MAX, AGAIN_MS, Agreed, Agreements, BalanceNow, Handed, Part

HOMES = {"q.x": "c", "q.y": "c"}


def took(giver: str, serial: int, *operators: str) -> Agreed:
    return Agreed(giver, serial, tuple(Part(one, (5,)) for one in operators), f"{giver} was busy")


def told(**by_site: Agreed) -> dict[str, BalanceNow]:
    return {site: BalanceNow(1, (agreed,)) for site, agreed in by_site.items()}


def test_a_handover_is_asked_for_once_however_often_it_is_told() -> None:
    era = Agreements(HOMES)
    for _ in range(3):
        era.hear(told(b=took("c", 1, "q.x", "q.y")))
        found = era.due(HOMES, 0)
        if found:
            assert [(due.handed, due.operators) for due in found] == [(Handed("b", "c", 1), ("q.x", "q.y"))]
            first = found[0].handed
    assert era.due(HOMES, 10_000) == []
    assert era.astray(HOMES) == ""
    era.end(first)
    now = {"q.x": "b", "q.y": "b"}
    assert (era.due(now, 10_000), era.astray(now)) == ([], "")


def test_what_is_refused_is_asked_for_again_while_it_is_owed_and_not_for_ever() -> None:
    era, now_ms, asked = Agreements(HOMES), 0, 0
    era.hear(told(b=took("c", 1, "q.x")))
    while found := era.due(HOMES, now_ms):
        asked += 1
        era.refused(found[0].handed, now_ms)
        assert era.due(HOMES, now_ms + AGAIN_MS - 1) == []
        assert asked > AGAIN_MAX or era.astray(HOMES) == ""
        now_ms += AGAIN_MS
    assert asked == AGAIN_MAX + 1
    assert era.astray(HOMES) == "q.x runs at c, and b holds it"


def test_an_operator_that_went_on_is_asked_for_where_it_is_held_now() -> None:
    era = Agreements(HOMES)
    era.hear(told(b=took("c", 1, "q.x")))
    (first,) = era.due(HOMES, 0)
    both = told(b=took("c", 1, "q.x"), a=took("b", 1, "q.x"))  # b has not heard yet that a took it
    era.hear(both)
    (second,) = era.due(HOMES, 0)
    assert (second.handed.taker, era.owners["q.x"]) == ("a", "a")
    era.refused(first.handed, 0)
    assert era.due(HOMES, AGAIN_MS) == [], "what b does not hold any more it is not owed"
    era.end(second.handed)
    assert era.astray({**HOMES, "q.x": "a"}) == ""


def test_one_that_comes_back_while_it_moves_is_waited_for_and_then_set_right() -> None:
    era = Agreements(HOMES)
    era.hear(told(b=took("c", 1, "q.x")))
    (first,) = era.due(HOMES, 0)
    era.hear(told(c=took("b", 1, "q.x")))
    assert era.due(HOMES, 0) == []
    era.end(first.handed)
    moved = {**HOMES, "q.x": "b"}
    (back,) = era.due(moved, 0)
    assert (back.handed, back.operators) == (Handed("c", "b", 1), ("q.x",))


def test_while_two_hold_each_others_operator_nothing_is_asked_or_forgotten() -> None:
    era = Agreements(HOMES)
    era.hear(told(a=took("b", 2, "q.x"), b=took("a", 1, "q.x")))
    assert era.due(HOMES, 0) == []
    era.hear(told(a=took("b", 2, "q.x")))
    assert [due.handed.taker for due in era.due(HOMES, 0)] == ["a"]


def test_what_others_move_and_what_comes_and_goes_is_astray() -> None:
    era = Agreements(HOMES)
    assert era.astray({**HOMES, "q.y": "a"}) == "q.y runs at a, and c holds it"
    assert era.astray({"q.x": "c"}) == "q.y has gone"
    assert era.astray({**HOMES, "r.z": "a"}) == "r.z has come"
