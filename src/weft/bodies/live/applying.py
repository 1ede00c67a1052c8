"""What is between a file and what runs? Queries that come and go, operators that moved or changed, and what can be.

A changed operator that keeps no state and gives the columns it gave goes on from where it was, once it is started
again: its positions stay. One that keeps state does not: what it holds was made by the old statement, and its input has
been given away. Nor do other columns: what waits in the stream has the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from weft.bodies.live import journal
from weft.bodies.live.identity import CHANNELS, OPERATOR, SINK, SOURCE, identity, is_milder, queries_in
from weft.bodies.live.returning_queries import coming_again
from weft.bodies.live.sharing import as_held
from weft.bodies.live.state import CannotRun, State
from weft.model import Deployment, Query
from weft.plan.changing.fragments import not_sent
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.dataflow.sharing import as_written
from weft.spark.sinks.ownership import RUN_FILE
from weft.spec import columns, is_stateful, plain_added, same_but_filter

MAY_CHANGE = ("sql", "call", "args", "schema")
ANEW = "give the query another name and sink, and it begins anew"


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that runs and that the file says otherwise; `why_not` where that cannot be done."""

    what: str
    lines: tuple[str, ...]
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class Between:
    """What it takes to bring a state to what a file says."""

    added: tuple[Query, ...] = ()
    removed: tuple[str, ...] = ()
    moved: dict[str, tuple[str, str]] = field(default_factory=dict)
    changed: tuple[Changed, ...] = ()
    kept: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.moved or self.changed or self.refused)

    def why_not(self) -> list[str]:
        """All that stands against it."""
        return [*(f"{one.what}: {one.why_not}" for one in self.changed if one.why_not), *self.refused]


def between(state: State, deployment: Deployment, runs: bool, path: Path | None = None) -> Between:
    """What is between a file, as it was read, and a state, which may run; CannotRun where there is no state yet.

    `path` is where the file lies: the state of another file is refused.
    """
    record, held = state.record(), journal.read(state)
    if record is None or held is None:
        raise CannotRun(f"{state.path} holds no run yet: start it with `weft run`")
    state.refuse_file(record, "" if path is None else str(path.resolve()))
    state.is_of(record)
    file = with_ordering(as_written(deployment))
    before, now = record.deployment, identity(file)
    here = queries_in(before) & queries_in(now)
    new = tuple(query for query in as_written(deployment).queries if query.name not in queries_in(before))
    changed = tuple(_changed(before, now, here, file, held, runs))
    touched = {one.what.rpartition(" ")[2].partition(".")[0] for one in changed}
    refused: tuple[str, ...] = ()
    if new and not runs:
        from weft.spark.fragments.outputs import claims_of  # with Spark, which only this needs

        alone = replace(file, queries=tuple(query for query in file.queries if query.name not in queries_in(before)))
        try:
            coming_again(state, {query.name for query in new}, claims_of(alone, state.folders))
        except CannotRun as error:
            refused = (str(error),)
    return Between(
        new,
        _readers_first(before, queries_in(before) - queries_in(now)),
        _moved(file, held),
        changed,
        tuple(sorted(here - touched)),
        refused,
    )


def make(state: State, deployment: Deployment, found: Between) -> None:
    """Let the file alone count for a state that does not run: what it says takes effect with the next start."""
    record, held = state.record(), journal.read(state)
    assert record is not None
    assert held is not None
    now, parts = identity(with_ordering(as_written(deployment))), dict(record.deployment)
    for one in found.changed:
        parts[one.what] = now[one.what]
    state.write(RUN_FILE, msgspec.structs.replace(record, deployment=parts))
    journal.write_alone(state)


def _readers_first(before: Mapping[str, Any], gone: set[str]) -> tuple[str, ...]:
    """Queries to remove, each before those whose streams it reads."""
    reads: dict[str, set[str]] = {name: set() for name in gone}
    for part, held in before.items():
        query = part.removeprefix(OPERATOR).partition(".")[0]
        if part.startswith(OPERATOR) and query in gone:
            names = held["from"] if isinstance(held["from"], list | tuple) else [held["from"]]
            reads[query] |= {str(name).partition(".")[0] for name in names if "." in str(name)} & gone - {query}
    ordered: list[str] = []
    while len(ordered) < len(reads):
        left = [name for name in sorted(reads) if name not in ordered]
        free = [name for name in left if not any(name in reads[other] for other in left)]
        ordered += free or left
    return tuple(ordered)


def _moved(file: Deployment, held: journal.Held) -> dict[str, tuple[str, str]]:
    """What the file pins to another site than it runs at: from where, to where."""
    return {
        stream: (held.placement.home(stream), operator.site)
        for query in file.queries
        for operator in query.operators
        for stream in (f"{query.name}.{operator.name}",)
        if operator.site is not None and held.placement.homes.get(stream, operator.site) != operator.site
    }


def _changed(
    before: Mapping[str, Any], now: Mapping[str, Any], here: set[str], file: Deployment, held: journal.Held, runs: bool
) -> list[Changed]:
    found = []
    for part in sorted(before.keys() | now.keys()):
        old, new = before.get(part), now.get(part)
        if old == new or not _is_judged(part, here, old, new):
            continue
        why_not = _why_not(part, old, new, before, file, held)
        if why_not is None and part.startswith(OPERATOR):
            unsent = not_sent(as_held(file, held), held.fragments)
            why_not = None if unsent is None else f"{unsent}: {ANEW}"
        if why_not is None and runs:
            why_not = "it changes between a stop and a start: `weft stop`, `weft apply`, `weft run`"
        found.append(Changed(part, _lines(old, new), why_not))
    return found


def _is_judged(part: str, here: set[str], old: Any, new: Any) -> bool:
    """True for parts of queries that stay, and sources that both have; others come and go with queries."""
    if part.startswith(OPERATOR):
        return part.removeprefix(OPERATOR).partition(".")[0] in here
    if part.startswith(SINK):
        return part.removeprefix(SINK) in here
    return part == CHANNELS or (part.startswith(SOURCE) and old is not None and new is not None)


def _lines(old: Any, new: Any) -> tuple[str, ...]:
    if old is None or new is None:
        return ("is new" if old is None else "is gone",)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return (f"was {old!r}, is {new!r}",)
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return tuple(f"{key} was {old.get(key)!r}, is {new.get(key)!r}" for key in keys)


def _why_not(
    part: str, old: Any, new: Any, before: Mapping[str, Any], file: Deployment, held: journal.Held
) -> str | None:
    """Why a changed part cannot be taken up by what has run; None where it can."""
    if part.startswith(SOURCE) and is_milder(old, new):
        return None
    if not part.startswith(OPERATOR):
        what = {SINK: "its results would lie in two places", SOURCE: "its streams were made of what it was"}
        return next((f"{why}: {ANEW}" for kind, why in what.items() if part.startswith(kind)), "use --fresh")
    stream = part.removeprefix(OPERATOR)
    if old is None or new is None:
        return f"an operator comes and goes with its query: {ANEW}"
    other = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key) and key not in MAY_CHANGE]
    if other:
        return f"with another `{min(other)}` it could not go on from where it was: {ANEW}"
    if stream in {*held.stands, *held.stands.values()}:
        return f"it is made once for several queries: {ANEW}"
    query, _, name = stream.partition(".")
    then = _as_it_was(before, file, query)
    if then is None:
        return f"what it gave before cannot be told: {ANEW}"
    was, will_be = then.query(query).operator(name), file.query(query).operator(name)
    if is_stateful(was) or is_stateful(will_be):
        return f"it keeps state, which the old statement made: {ANEW}"
    if was.sql is not None and will_be.sql is not None and same_but_filter(was.sql, will_be.sql):
        return None
    gave, will_give = columns(then)[stream], columns(file)[stream]
    if not gave or gave != will_give or any(column.type is None for column in gave):
        return f"it may give other columns than it gave, which its readers and its stream do not have: {ANEW}"
    return None


def _as_it_was(before: Mapping[str, Any], file: Deployment, query: str) -> Deployment | None:
    """The deployment with a query as it has run; None where that cannot be read any more."""
    operators = [
        held for part, held in before.items() if part.startswith(OPERATOR) and part.startswith(f"{OPERATOR}{query}.")
    ]
    plain = {"queries": [{"name": query, "operators": operators, "sink": before[f"{SINK}{query}"]}]}
    rest = replace(file, queries=tuple(one for one in file.queries if one.name != query), scenario=())
    added = plain_added(plain, rest)
    return replace(rest, queries=(*rest.queries, *added.queries)) if added.queries else None
