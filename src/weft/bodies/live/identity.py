"""With which file may a state go on? What decides what its streams hold must be as it was; queries may come and go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from weft.model import Deployment
from weft.plan.dataflow.sharing import as_written
from weft.spec import as_plain

# What may change between two runs of one state: nothing in it decides what the streams hold.
_FREE_OPERATOR = ("cost_ms", "selectivity", "queue", "state_kb", "window", "pure")
_FREE_SOURCE = ("record_bytes",)
BAD = "bad_records"
SOURCE, OPERATOR, SINK, CHANNELS = "source ", "operator ", "sink of ", "channels"


def identity(deployment: Deployment) -> dict[str, Any]:
    """What a state can be resumed with: everything that decides what the streams hold, as plain values."""
    plain = as_plain(as_written(deployment))
    parts: dict[str, Any] = {}
    for source in plain.get("sources", []):
        parts[f"{SOURCE}{source['name']}"] = _without(source, _FREE_SOURCE)
    for query in plain.get("queries", []):
        for operator in query["operators"]:
            parts[f"{OPERATOR}{query['name']}.{operator['name']}"] = _without(operator, (*_FREE_OPERATOR, "site"))
        parts[f"{SINK}{query['name']}"] = query["sink"]
    if "channels" in plain:
        parts[CHANNELS] = _without(plain["channels"], ("options",))
    return json.loads(json.dumps(parts))  # type: ignore[no-any-return]


def _without(value: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: held for key, held in value.items() if key not in keys}


def queries_in(parts: Mapping[str, Any]) -> set[str]:
    """The names of the queries that some parts are of."""
    return {part.removeprefix(SINK) for part in parts if part.startswith(SINK)}


def unreachable(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of a changed file a run cannot go on with, one line each: all but queries and sources that come or go."""
    here = queries_in(before) & queries_in(now)
    sources = {part for part in before.keys() & now.keys() if part.startswith(SOURCE)}
    milder = {part for part in sources if is_milder(before[part], now[part])}
    now = {part: before[part] if part in milder else held for part, held in now.items()}
    return differences(_of(before, here, sources), _of(now, here, sources))


def is_milder(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """True if a source fails no more at bad records, and nothing else changed: what was taken of it held none."""
    return old.get(BAD, "fail") == "fail" and _without(old, (BAD,)) == _without(new, (BAD,))


def _of(parts: Mapping[str, Any], queries: set[str], sources: set[str]) -> dict[str, Any]:
    """The parts of some queries and sources."""

    def is_in(part: str) -> bool:
        if part.startswith(OPERATOR):
            return part.removeprefix(OPERATOR).partition(".")[0] in queries
        return part == CHANNELS or part in sources or (part.startswith(SINK) and part.removeprefix(SINK) in queries)

    return {part: held for part, held in parts.items() if is_in(part)}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What a file has that the state was not made with, one line each."""
    lines = []
    for part in sorted(before.keys() | now.keys()):
        old, new = before.get(part), now.get(part)
        if old == new:
            continue
        if old is None:
            lines.append(f"{part} is new")
        elif new is None:
            lines.append(f"{part} is gone")
        elif isinstance(old, dict) and isinstance(new, dict):
            lines.extend(
                f"{part}: {key} was {old.get(key)!r}, is {new.get(key)!r}"
                for key in sorted(old.keys() | new.keys())
                if old.get(key) != new.get(key)
            )
        else:
            lines.append(f"{part} was {old!r}, is {new!r}")
    return lines
