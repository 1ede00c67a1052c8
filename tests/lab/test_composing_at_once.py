"""A thousand requests at one moment: each ends, no promise breaks, and nothing stays reserved."""

from __future__ import annotations

from dataclasses import replace

from weft.lab.composing_trial import composed, ours
from weft.lab.composing_world import Survey, drawn
from weft.protocol.composing import Admitted, Refused

MANY = 1_000


def test_a_thousand_requests_at_once_end_and_no_reservation_is_left_behind() -> None:
    land = drawn(Survey(sites=100, operators=40, requests=MANY, per_s=1000.0, rate_per_s=1.0), 1)
    at_once = replace(land, requests=tuple(replace(one, at_us=0) for one in land.requests))
    body = composed(at_once)
    answers = [one.answer for one in body.words.values()]
    assert len(answers) == MANY
    assert all(isinstance(one, (Admitted, Refused)) for one in answers)
    assert 0 < sum(isinstance(one, Admitted) for one in answers) < MANY, "there is no room for all"
    assert body.left_behind() == []
    assert all(keeper.load < land.capacity[keeper.name] for keeper in body.keepers())
    assert all(one.broken for one in answers if isinstance(one, Refused)), "each refusal says what would break"


def test_what_was_admitted_at_once_keeps_its_promises() -> None:
    land = drawn(Survey(sites=50, operators=20, requests=200, per_s=1000.0, rate_per_s=1.0), 2)
    told = ours(replace(land, requests=tuple(replace(one, at_us=0) for one in land.requests)))
    assert told.kept == told.admitted > 0
