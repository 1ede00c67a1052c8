"""What did a query leave that was removed and comes again? Its streams and checkpoints are nobody's; its results stay.

Such a query begins anew: it reads its sources from their beginning. So nothing of its earlier life may be read again,
and a sink that holds its earlier results would hold them twice: such a sink is refused, in words that say what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weft.bodies.live import journal
from weft.bodies.live.state import CannotRun, State
from weft.model import Deployment
from weft.spark.channels import rooms
from weft.spark.channels.log import Log
from weft.spark.sinks.ownership import Claim

_SINK = "sink "


def coming_again(state: State, queries: set[str], claims: Sequence[Claim]) -> tuple[str, ...]:
    """Queries that the plan in force does not have and that left something; CannotRun where that is results."""
    held = journal.read(state)
    if held is None:
        return ()
    running = {stream.partition(".")[0] for stream in held.placement.homes}
    again = tuple(name for name in sorted(queries - running) if _left(state, name))
    for claim in claims:
        if claim.sink.partition(".")[0] in again and claim.has_path and _has_results(claim, state.folders.run):
            raise CannotRun(
                f"query {claim.sink.partition('.')[0]} was in the file before, and {claim.path} holds what it gave: it "
                f"would give all of it again; give its sink another path, or move {claim.path} and {claim.hidden} away"
            )
    return again


def forget(state: State, deployment: Deployment, again: Sequence[str]) -> None:
    """Remove what queries left inside the state; cut off half way, it is done again at the next start."""
    held = journal.read(state)
    remove_left(state, again)
    for name in again:
        if held is not None:
            held = replace(
                held,
                generations={one: many for one, many in held.generations.items() if not is_of_query(one, name)},
                gates={one: gate for one, gate in held.gates.items() if not is_of_query(one, name)},
            )
    if held is not None and again:
        journal.write(state, held.plan(deployment), held.generations, held.gates, held.beside)


def remove_left(state: State, again: Sequence[str]) -> None:
    """Remove what queries have in the rooms of a state."""
    for entry in [entry for name in again for entry in _left(state, name)]:
        if entry.is_dir():
            state.disk.remove_tree(entry)
        else:
            state.disk.remove(entry)


def _left(state: State, query: str) -> list[Path]:
    """What a query has in the rooms of a state: streams, checkpoints, how far they had come, what was shown."""
    found = []
    kinds = (rooms.STREAMS, rooms.FRAGMENTS, rooms.LATE, rooms.HEADS, rooms.CONSOLE)
    for folder in (base / room for base in (state.path, *_of_sites(state)) for room in kinds):
        for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
            # A source may bear the same name, and has rooms too: of sinks alone the bare name is the query's.
            is_sink = folder.name == rooms.CONSOLE or entry.name.startswith(_SINK)
            name = entry.name.removeprefix(_SINK).removeprefix(".")
            if is_of_query(name, query) or (is_sink and name.removesuffix(".weft") == query):
                found.append(entry)
    return found


def _of_sites(state: State) -> list[Path]:
    """Where sites have rooms of their own in a state: those whose streams are mirrored."""
    folder = state.path / rooms.SITES
    return sorted(folder.iterdir()) if folder.is_dir() else []


def is_of_query(name: str, query: str) -> bool:
    """True if a stream, a fragment or a relay is a query's."""
    return name.startswith(f"{query}.") or f"@{query}." in name


def _has_results(claim: Claim, run: str) -> bool:
    """True if a sink was given something, by its own record: how far it should be does not count here."""
    log = Log(claim.hidden, run)
    return log.is_there() and log.last() is not None
