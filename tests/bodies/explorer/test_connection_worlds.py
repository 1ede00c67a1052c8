"""The worlds of connections: nothing is lost, doubled or overtaken, and every planted fault is found."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from weft.bodies.explorer import NAMES, World, explore, run
from weft.bodies.explorer.worlds import connection
from weft.protocol import Effect
from weft.protocol.connection import Acked, Deliver, Hearer, LinkUp, Lost, Speaker, WriteAck
from weft.protocol.connection.speaker import APART, LINKED, Owed
from weft.protocol.machine import Step


@pytest.mark.parametrize("world", connection.worlds(), ids=lambda world: world.name)
def test_no_break_doubling_or_restart_loses_doubles_or_overtakes(world: World) -> None:
    assert run(world).violations == ()


def test_connections_are_known_by_name() -> None:
    assert "connection" in NAMES


@pytest.mark.long
def test_no_order_breaks_connections_with_more_faults() -> None:
    assert explore("connection", long=True)["violations"] == []


def on(machine: type, kind: type, do: Any) -> dict[Any, Step]:
    """The table with another step for one kind of input."""
    return {key: Step(do, step.to) if key[1] is kind else step for key, step in machine.STEPS.items()}


def without(kind: type[Effect], base: type) -> type:
    """A machine that never asks for one kind of effect."""

    class Forgetful(base):  # type: ignore[misc]
        __slots__ = ()

        def handle(self, input: Any) -> list[Effect]:
            return [effect for effect in super().handle(input) if not isinstance(effect, kind)]

    return Forgetful


class SaysOnce(Speaker):
    """Does not say again over a new connection what it has said over the one before."""

    __slots__ = ()

    def on_up(self, peer: str, row: Owed, input: LinkUp) -> list[Effect]:
        row.state, row.link = LINKED, input.link
        return self.write(row)

    STEPS: ClassVar = on(Speaker, LinkUp, lambda machine, *rest: machine.on_up(*rest))


class SaysTheLast(Speaker):
    """Says again the newest only."""

    __slots__ = ()

    def on_up(self, peer: str, row: Owed, input: LinkUp) -> list[Effect]:
        row.state, row.link, row.written = LINKED, input.link, max(row.first, row.last) - 1
        row.base = row.written
        return self.write(row)

    STEPS: ClassVar = on(Speaker, LinkUp, lambda machine, *rest: machine.on_up(*rest))


class KeepsAll(Speaker):
    """Forgets nothing that was acknowledged."""

    __slots__ = ()
    STEPS: ClassVar = on(Speaker, Acked, lambda machine, peer, row, input: [])


class BelievesAll(Speaker):
    """Takes any acknowledgement for one of everything."""

    __slots__ = ()

    def on_acked(self, peer: str, row: Owed, input: Acked) -> list[Effect]:
        row.held.clear()
        return []

    STEPS: ClassVar = on(Speaker, Acked, lambda machine, *rest: machine.on_acked(*rest))


class NoWindow(Speaker):
    """Writes all it has."""

    __slots__ = ()

    def write(self, row: Owed) -> list[Effect]:
        row.base = row.last
        return super().write(row) if row.written < row.last else []


class Deaf(Speaker):
    """Takes the loss of a former connection for that of the present one."""

    __slots__ = ()

    def on_up(self, peer: str, row: Owed, input: LinkUp) -> list[Effect]:
        return [] if row.link else Speaker.on_up(self, peer, row, input)

    STEPS: ClassVar = {
        key: Step(lambda machine, *rest: machine.on_up(*rest), (APART, LINKED)) if key[1] is LinkUp else step
        for key, step in Speaker.STEPS.items()
    }


class HearsTwice(Hearer):
    """Hands on what it knows already."""

    __slots__ = ()

    def on_arrived(self, peer: str, row: Any, input: Any) -> list[Effect]:
        if input.session == row.session and input.number <= row.last:
            return [Deliver(peer, input.data), WriteAck(input.link, row.session, row.last)]
        return Hearer.on_arrived(self, peer, row, input)

    STEPS: ClassVar = {
        key: Step(lambda machine, *rest: machine.on_arrived(*rest), s.to) for key, s in Hearer.STEPS.items()
    }


class HearsGhosts(HearsTwice):
    """Hears a past life of its peer."""

    __slots__ = ()

    def on_arrived(self, peer: str, row: Any, input: Any) -> list[Effect]:
        if input.session < row.session:
            row.session, row.last = input.session, 0
        return Hearer.on_arrived(self, peer, row, input)


class KeepsNumbers(HearsTwice):
    """Counts on where the peer's past life ended."""

    __slots__ = ()

    def on_arrived(self, peer: str, row: Any, input: Any) -> list[Effect]:
        row.session = max(row.session, input.session)
        return Hearer.on_arrived(self, peer, row, input)


PLANTED: dict[str, dict[str, type]] = {
    "says things once": {"speaker": SaysOnce},
    "says the last again": {"speaker": SaysTheLast},
    "keeps what was acknowledged": {"speaker": KeepsAll},
    "believes any acknowledgement": {"speaker": BelievesAll},
    "does not tell what it gave up": {"speaker": without(Lost, Speaker)},
    "writes all it has": {"speaker": NoWindow},
    "takes no second connection": {"speaker": Deaf},
    "hands on twice": {"hearer": HearsTwice},
    "hears past lives": {"hearer": HearsGhosts},
    "counts on after a restart": {"hearer": KeepsNumbers},
    "does not acknowledge": {"hearer": without(WriteAck, Hearer)},
    "does not hand on": {"hearer": without(Deliver, Hearer)},
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    assert any(run(world).violations for world in connection.worlds(**PLANTED[fault])), f"no world sees: {fault}"
