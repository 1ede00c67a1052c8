"""How many records went through each operator of a fragment? Committed, counted on the way, or as many as came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.model import Dataflow, Query
from weft.plan.changing.fragments import Fragment
from weft.spark.fragments.wiring import count_is_kept
from weft.spec import changes_count


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """One batch: records each operator took from outside (None: only Spark's report tells), and those committed."""

    batch: int
    entered: dict[tuple[str, str], int | None]
    committed: dict[str, int]


def records_out(
    flow: Dataflow,
    query: Query,
    fragment: Fragment,
    committed: Mapping[str, int],
    observed: Mapping[str, int],
    records_in: int,
) -> dict[str, int | None]:
    """Records out of each operator; None where nothing tells."""
    out: dict[str, int | None] = {}
    for name in fragment.operators:
        node = flow.node(fragment.stream(name))
        if name in committed:
            out[name] = committed[name]
        elif name in observed:
            out[name] = observed[name]
        elif not changes_count(node.operator):
            out[name] = out.get(fragment.name(node.inputs[0]), records_in)
        else:
            out[name] = None
    for name in reversed(fragment.trunk[:-1]):
        if out[name] is None and count_is_kept(query, fragment, name):
            out[name] = out[fragment.trunk[-1]]
    return out


def records_in(
    flow: Dataflow, fragment: Fragment, entered: Mapping[tuple[str, str], int | None], out: Mapping[str, int | None]
) -> dict[str, int | None]:
    """Records into each operator: what entered for it, and what those before it in the fragment gave."""
    taken: dict[str, int | None] = {}
    for name in fragment.operators:
        read = [fragment.name(stream) for stream in flow.node(fragment.stream(name)).inputs]
        given = [entered.get((name, one), out.get(one)) for one in read]
        known = [rows for rows in given if rows is not None]
        taken[name] = sum(known) if len(known) == len(given) else None
    return taken
