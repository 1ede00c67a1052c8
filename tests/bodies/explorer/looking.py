"""The worlds that look for a fault, wherever it was made: by the module that it is in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.bodies.explorer import faulty, faulty_balancing
from tests.bodies.explorer.mutants import Faulty
from tests.bodies.explorer.reread import reread
from weft.bodies.explorer import World, run
from weft.bodies.explorer.worlds import (
    balancing,
    composing,
    connection,
    control,
    counting,
    directory,
    exclusion,
    feedback,
    hosting,
    move,
    ordered_move,
    reporting,
    scaling,
    torn,
)
from weft.protocol import stream_rule
from weft.protocol.composing import branches, composer, keeper, room
from weft.protocol.directory import directory as directory_machine
from weft.protocol.directory import levels, ring

STATES_MAX = 1_000_000
DIRECTORY = (levels, ring, directory_machine)
COMPOSING = (branches, room, keeper, composer)


def worlds(fault: Faulty) -> Iterator[World]:  # noqa: PLR0912 one case for each protocol
    """Worlds that hold the faulty machine, the quickest first."""
    protocol, _, part = fault.module.removeprefix("weft.protocol.").partition(".")
    match protocol, part:
        case "exclusion", "member":
            member = faulty.guarded(fault.load().Member)
            yield from (*exclusion.brisk(member), *exclusion.telling(member))
        case "exclusion", "core":
            yield from exclusion.in_turn(faulty.guarded(fault.load().Core))
        case "scaling", "instance":
            instance = faulty.guarded(fault.load().Instance)
            yield from (*scaling.brisk(instance), *scaling.cores(instance=instance))
        case "scaling", "core":
            yield from scaling.cores(faulty.guarded(fault.load().CoreInstance))
        case "balancing", _:
            yield from balancing.brisk(balancer=faulty_balancing.faulty_balancer(fault))
        case "control", _:
            yield from control.worlds(controller=faulty.guarded(fault.load().Controller))
        case "connection", _:
            made = fault.load()
            parts = {part: faulty.guarded(getattr(made, part.capitalize()))}
            yield from connection.worlds(**parts)
        case "directory", _:
            yield from directory.worlds(directory=faulty.guarded(reread(fault, DIRECTORY)["directory"].Directory))
        case "composing", _:
            files = reread(fault, COMPOSING)
            yield from composing.worlds(
                composer=faulty.guarded(files["composer"].Composer), keeper=faulty.guarded(files["keeper"].Keeper)
            )
        case "feedback", _:
            yield from feedback.worlds(machine=faulty.guarded(fault.load().Feedback))
        case "ordered_move", _:
            yield from ordered_move.worlds(site=faulty.guarded(fault.load().OrderedSite))
        case "stream_rule", _:
            made = fault.load()
            kinds = (stream_rule.Counted, stream_rule.FenceEntry, stream_rule.SegmentEntry)
            made.__dict__.update({kind.__name__: kind for kind in kinds})  # those that worlds tell it of
            yield from counting.worlds(rule=made.count, decide=made.taken_from)
        case "reporting", _:
            made = fault.load()
            yield from reporting.worlds(**{part: getattr(made, part.capitalize())})
        case "hosting", _:
            yield from torn.hosts(**faulty.hosts(fault))
            yield from hosting.worlds(**faulty.hosts(fault))
            yield from move.brisk(**faulty.machines(fault))
        case "moving", _:
            yield from move.brisk(**faulty.machines(fault))
            yield from torn.moves(**faulty.machines(fault))[:2]
        case _:
            raise AssertionError(f"no world holds {fault.module}")


def found(fault: Faulty, among: Iterable[World] | None = None) -> str | None:
    """The world that sees a fault and the claim it breaks there; None where none does."""
    for world in worlds(fault) if among is None else among:
        try:
            result = run(world._replace(states_max=min(world.states_max, STATES_MAX)))
        except Exception as error:
            # What a faulty machine keeps or says may be so wrong that it cannot even be written down.
            return f"{world.name}: {type(error).__name__}"
        for violation in result.violations:
            return f"{world.name}: {violation.claim}"
    return None
