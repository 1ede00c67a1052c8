"""The worlds of reports: events are taken once, questions answered when all is known, the work of lives adds up."""

from __future__ import annotations

import pytest

from weft.bodies.explorer import NAMES, World, explore, run
from weft.bodies.explorer.worlds import reporting
from weft.bodies.explorer.worlds.reporting_ground import AskAll, Asks, Hearing, Listener
from weft.protocol import Effect
from weft.protocol.machine import Step, Steps


@pytest.mark.parametrize("world", reporting.worlds(), ids=lambda world: world.name)
def test_no_loss_doubling_or_death_loses_or_doubles_an_event(world: World) -> None:
    assert run(world).violations == ()


def test_reports_are_known_by_name() -> None:
    assert "reporting" in NAMES


def test_an_answer_to_a_former_life_of_the_desk_would_count_if_numbers_began_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asks_from_one(desk: Listener, key: str, row: Hearing, input: AskAll) -> list[Effect]:
        row.question = 1
        return [Asks(1), *desk.ask(row)]

    steps: Steps = {**Listener.STEPS, ("hearing", AskAll): Step(asks_from_one, ("hearing",))}
    monkeypatch.setattr(Listener, "STEPS", steps)
    (world,) = (one for one in reporting.worlds() if one.name == "the desk comes back")
    (broken,) = run(world).violations
    assert broken.claim == reporting.EARLY


@pytest.mark.long
def test_no_order_breaks_reports_with_more_faults() -> None:
    assert explore("reporting", long=True)["violations"] == []
