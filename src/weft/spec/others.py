"""In whose rooms does a folder lie? States and sinks of other runs say so themselves, in their records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RUN_FILE, OWNER = "run.json", "owner.json"


def in_rooms_of_others(path: str, tolerated: str = "") -> str | None:
    """What stands against a folder of ours in a place above which others have a state or a sink; None where nothing.

    A state may lie beside others in a folder of states (`tolerated`), though that has been used as one itself.
    """
    for above in (path, *map(str, Path(path).parents)):
        if above not in (path, tolerated) and is_state(above):
            return f"lies in {above}, the state folder of a run, which starting over empties; use another folder"
        sink = sink_of(above)
        if sink is not None:
            state = _owner(sink)["state"]
            return f"lies in {sink}, where another run (its state is {state}) puts results; use another folder"
    return None


def held_of_others(path: str) -> str | None:
    """What a sink's folder holds of other runs, right below it; None where that is nothing."""
    for below in _in(path):
        if os.path.basename(below).startswith(".") and (sink := sink_of(below)) is not None:
            state = _owner(sink)["state"]
            return f"holds {sink}, where another run (its state is {state}) puts results; readers would find both"
    for states in (path, os.path.join(path, ".weft")):
        if (state := next((folder for folder in _in(states) if is_state(folder)), None)) is not None:
            return f"holds {state}, the state folder of a run; use another folder"
    return None


def sink_of(folder: str) -> str | None:
    """The sink of a run that goes on, where a folder is one or is what is hidden beside one."""
    above, name = os.path.split(folder)
    hidden = name.startswith(".") and name.endswith(".weft") and len(name) > len("..weft")
    sink = os.path.join(above, name[1 : -len(".weft")]) if hidden else folder
    owner = _owner(sink)
    goes_on = bool(owner) and _record(str(owner.get("state", ""))).get("run") == owner.get("run")
    return sink if goes_on else None


def is_state(folder: str) -> bool:
    """True if a folder is the state of a run, by its record."""
    return bool(_record(folder))


def has_states(store: str) -> bool:
    """True if a folder holds states of runs."""
    return any(is_state(folder) for folder in _in(store))


def sources_nearby(state: str, store: str) -> Iterator[tuple[str, str]]:
    """What other runs read whose states lie beside one, or where the file keeps its own: with their states."""
    for other in dict.fromkeys([*_in(os.path.dirname(state)), *_in(store)]):
        read = _record(other).get("sources") if other != state else None
        yield from ((str(one), other) for one in (read.values() if isinstance(read, dict) else ()))


def _in(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:
        return []


def _record(state: str) -> dict[str, Any]:
    return _sealed(os.path.join(state, RUN_FILE))


def _owner(sink: str) -> dict[str, Any]:
    above, name = os.path.split(sink)
    return _sealed(os.path.join(above, f".{name}.weft", OWNER))


def _sealed(path: str) -> dict[str, Any]:
    """What a record says; nothing where there is none, or it is not of Weft."""
    try:
        content = json.loads(Path(path).read_bytes())["content"]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return content if isinstance(content, dict) and isinstance(content.get("run"), str) else {}
