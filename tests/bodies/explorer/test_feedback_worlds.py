"""The worlds of delays that are fed back: all know the last word of all who are there; planted faults are found."""

from __future__ import annotations

from typing import Any

import pytest

from weft.bodies.explorer import NAMES, World, explore, run
from weft.bodies.explorer.worlds import feedback
from weft.protocol import Effect, Received, Send
from weft.protocol.feedback import (
    DelayBeat,
    DelayMeasured,
    DelaysAre,
    DelayTold,
    DelayWord,
    Feedback,
    QueryDelays,
    TakesPart,
)
from weft.protocol.feedback.feedback import Heard


@pytest.mark.parametrize("world", feedback.worlds(), ids=lambda world: world.name)
def test_in_any_order_of_words_and_crashes_all_know_the_last_word_of_each(world: World) -> None:
    assert run(world).violations == ()


def test_feedback_is_known_by_name() -> None:
    assert "feedback" in NAMES


@pytest.mark.long
def test_no_order_breaks_feedback_with_more_sites_and_faults() -> None:
    assert explore("feedback", long=True)["violations"] == []


class TakesAnything(Feedback):
    """Takes older words for later ones."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        row = self.rows.get("q")
        if row is not None and isinstance(input, Received):
            row.heard.pop(input.message.word.site, None)
        return super().handle(input)


class BelievesTheDead(Feedback):
    """Never grows doubtful."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        effects = super().handle(input)
        if isinstance(input, DelayBeat) and "q" in self.rows:
            for one in self.rows["q"].heard.values():
                one.age = 0
        return effects


class SaysOnce(Feedback):
    """Says nothing again."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        effects = super().handle(input)
        return [one for one in effects if not (isinstance(one, Send) and isinstance(input, DelayBeat))]


class KeepsToItself(Feedback):
    """Hands nothing on."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        effects = super().handle(input)
        return [one for one in effects if not (isinstance(one, Send) and isinstance(input, Received))]


class HandsOnNewsOnly(Feedback):
    """Does not hand on what is said again."""

    __slots__ = ()

    def on_told(self, key: str, row: QueryDelays, input: Received) -> list[Effect]:
        held = row.heard.get(input.message.word.site)
        effects = super().on_told(key, row, input)
        is_news = held is None or held.word != input.message.word
        return effects if is_news else [one for one in effects if not isinstance(one, Send)]


HandsOnNewsOnly.STEPS = {
    key: step if step.do is not Feedback.on_told else step._replace(do=HandsOnNewsOnly.on_told)
    for key, step in Feedback.STEPS.items()
}


class CountsAnew(Feedback):
    """A life goes on under the number of the one before."""

    __slots__ = ()

    def __init__(self, name: str, life: int, lease: int) -> None:
        super().__init__(name, 1, lease)


class KeepsWhoLeft(Feedback):
    """Goes on believing a site that the query has left."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        before = {} if "q" not in self.rows else dict(self.rows["q"].heard)
        effects = super().handle(input)
        if isinstance(input, TakesPart):
            self.rows["q"].heard = {**before, **self.rows["q"].heard}
        return effects


class DoesNotTell(Feedback):
    """Does not say that it knows less."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        effects = super().handle(input)
        return [one for one in effects if not (isinstance(one, DelaysAre) and isinstance(input, DelayBeat))]


@pytest.mark.parametrize(
    "machine",
    [TakesAnything, BelievesTheDead, SaysOnce, KeepsToItself, HandsOnNewsOnly, CountsAnew, KeepsWhoLeft, DoesNotTell],
    ids=lambda machine: machine.__name__,
)
def test_every_planted_fault_is_found(machine: type[Feedback]) -> None:
    assert any(run(world).violations for world in feedback.worlds(machine=machine))


def told(word: DelayWord) -> DelayTold:
    return DelayTold("q", word)


def test_an_old_copy_is_no_news_even_when_its_site_is_not_believed_any_more() -> None:
    machine = Feedback("a", 1, lease=2)
    machine.handle(TakesPart("q", "b", ("a", "b")))
    older, newer = (DelayWord("b", 1, number, (("o", number),)) for number in (1, 2))
    machine.handle(Received("b", told(newer)))
    assert machine.handle(DelayBeat("q")) == []
    assert machine.handle(DelayBeat("q")) == [DelaysAre("q", ())]
    assert machine.handle(Received("b", told(older))) == []
    assert machine.handle(Received("b", told(newer))) == [DelaysAre("q", (newer,))]


def test_a_snapshot_keeps_words_numbers_and_life() -> None:
    machine = Feedback("a", 3)
    machine.handle(TakesPart("q", "a", ("a", "b")))
    machine.handle(DelayMeasured("q", (("o", 5),), 9))
    copy = Feedback("a", 1)
    copy.restore(machine.snapshot())
    assert copy.life == 3
    assert copy.rows["q"].heard["a"] == Heard(DelayWord("a", 3, 1, (("o", 5),), 9))
    assert copy.snapshot() == machine.snapshot()
