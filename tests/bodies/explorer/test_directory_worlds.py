"""The worlds of the directory: what is offered is found, what is gone ends, and every planted fault is found."""

from __future__ import annotations

from typing import Any

import pytest

from weft.bodies.explorer import NAMES, World, explore, run
from weft.bodies.explorer.explore import BOUNDED
from weft.bodies.explorer.worlds import directory
from weft.protocol import Effect, Received, Send
from weft.protocol.directory import AskOffers, Beat, Directory, Found, LeaveRing, PutOffers, Seek
from weft.protocol.directory.directory import Known


@pytest.mark.parametrize("world", directory.worlds(), ids=lambda world: world.name)
def test_in_any_order_of_words_what_is_offered_is_found_and_what_is_gone_ends(world: World) -> None:
    assert run(world).violations == ()


def test_the_directory_is_known_by_name() -> None:
    assert "directory" in NAMES


@pytest.mark.long
def test_no_order_breaks_the_directory_with_more_faults() -> None:
    assert explore("directory", long=True)["violations"] == []


class NeverEnds(Directory):
    """Leases do not run."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        held = [(row, row.left, row.names) for site, row in self.rows.items() if site != self.name]
        effects = super().handle(input)
        if isinstance(input, Beat):
            for row, left, names in held:
                row.left, row.names = left, names
        return effects


class SaysOnce(Directory):
    """Does not say again at a beat what it offers."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        effects = super().handle(input)
        if isinstance(input, Beat):
            return [one for one in effects if not (isinstance(one, Send) and isinstance(one.message, PutOffers))]
        return effects


class TakesAnything(Directory):
    """Takes older words for later ones."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        if isinstance(input, Received) and input.sender in self.rows and isinstance(input.message, PutOffers):
            self.rows[input.sender].number = -1
        return super().handle(input)


class NeverWithdraws(Directory):
    """Holds on to all that a site has ever offered."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        before = {site: row.names for site, row in self.rows.items()}
        effects = super().handle(input)
        if isinstance(input, Received) and isinstance(input.message, PutOffers) and input.sender in self.rows:
            row = self.rows[input.sender]
            row.names = tuple(sorted({*before.get(input.sender, ()), *row.names}))
        return effects


class HearsNoFarewell(Directory):
    """Goes on believing in a site that has left, and renews what it said."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        if isinstance(input, Received) and isinstance(input.message, LeaveRing) and input.sender in self.rows:
            self.rows[input.sender].left = 9
            return []
        return super().handle(input)


class KeepsFormerLives(Directory):
    """Believes that one who came back still holds what it was given."""

    __slots__ = ()

    def heard(self, row: Known, life: int) -> bool:
        row.life = max(row.life, life)
        row.state = "here"
        return True


class TellsEveryLoad(Directory):
    """Tells loads also within their level."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        self.level = -5
        return super().handle(input)


class TellsNoLoad(Directory):
    """Never tells a load by itself, and shows what it was at first."""

    __slots__ = ()

    def put(self, site: str, other: Known) -> Effect:
        self.load = 0.0
        return super().put(site, other)

    def word(self, other: Known, site: str) -> Effect:
        self.load = 0.0
        return super().word(other, site)


class AnswersTwice(Directory):
    """Says what it found twice."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        effects = super().handle(input)
        return [*effects, *(one for one in effects if isinstance(one, Found))]


class NeverGivesUp(Directory):
    """Waits for ever for an answer that does not come."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        effects = super().handle(input)
        return [one for one in effects if type(one).__name__ != "SetTimer"]


class AsksItself(Directory):
    """Puts a question to itself when it comes to hold the name meanwhile."""

    __slots__ = ()

    def ask(self, number: str) -> list[Effect]:
        able = [one for one in self.holders(self.asking[number].name) if one not in self.asking[number].asked]
        if self.asking[number].asked and able == [self.name]:
            self.asking[number].asked.append(self.name)
            return [Send(self.name, AskOffers(int(number), self.asking[number].name))]
        return super().ask(number)


class AsksNobody(Directory):
    """Says that nobody offers what it does not hold itself, and forgets to say so."""

    __slots__ = ()

    def handle(self, input: Any) -> list[Effect]:
        effects = super().handle(input)
        return [] if isinstance(input, Seek) else effects


@pytest.mark.parametrize(
    "faulty",
    [NeverEnds, SaysOnce, TakesAnything, NeverWithdraws, HearsNoFarewell, KeepsFormerLives, TellsEveryLoad,
     TellsNoLoad, AnswersTwice, NeverGivesUp,
     AsksItself, AsksNobody],
)  # fmt: skip
def test_every_planted_fault_is_found(faulty: type[Directory]) -> None:
    small = (one._replace(states_max=60_000) for one in directory.worlds(directory=faulty) if "three" not in one.name)
    claims = (violation.claim for world in small for violation in run(world).violations)
    assert next((claim for claim in claims if not claim.startswith(BOUNDED)), None)
