"""Whose records are all among another's? Then it reads that stream, and goes on to filter and pick as it did.

A statement that only picks, computes and filters keeps its words, and reads a stream of the same origin in place of its
own input: one whose condition its own implies, and that has every column it asks for, as its input has it. So its
records are the same whoever is right about what saves work. All that is not certain is left alone. An hourly window is
never made out of quarters: a record that is late for its quarter is in time for its hour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from sqlglot import exp

from weft.model import Dataflow, Deployment, Node, Operator, dataflow
from weft.plan.dataflow.meanings import meanings
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.dataflow.real_time import real_time
from weft.spec import Relation
from weft.spec.conditions import implied
from weft.spec.sql import parsed


def is_contained(deployment: Deployment, stream: str, other: str) -> bool:
    """Whether a stream that stands for another holds more than that: who reads it has to filter and pick."""
    known = meanings(deployment)
    return known[stream].key != known[other].key


def contained(deployment: Deployment, stands: Mapping[str, str], among: Set[str] | None = None) -> dict[str, str]:
    """For each stream whose records are all among another's, that other: the one that has least beside them."""
    flow, known = dataflow(deployment), meanings(deployment)
    apart = set(real_time(deployment))
    ready: dict[str, list[Node]] = {}
    found: dict[str, str] = {}
    for node in flow.nodes:
        if apart & set(node.queries) or (among is not None and not among & set(node.queries)):
            continue
        if node.stream in stands:
            continue
        own = known[node.stream]
        fits = [one for one in ready.get(own.origin, ()) if _fits(flow, known, node, one)]
        if fits:
            found[node.stream] = max(fits, key=lambda one: _among(known[one.stream], fits, known)).stream
        ready.setdefault(own.origin, []).append(node)
    return found


def _among(one: Relation, others: Sequence[Node], known: Mapping[str, Relation]) -> tuple[int, int]:
    """Of how many streams a relation's records are all among those, and how much it asks."""
    holds = sum(all(implied(asked, one.where) for asked in known[other.stream].where) for other in others)
    return holds, len(one.where)


def _fits(flow: Dataflow, known: Mapping[str, Relation], node: Node, other: Node) -> bool:
    """Whether an operator may read another's stream in place of its own input, and gains by it."""
    operator = node.operator
    if operator.site is not None and operator.site != other.operator.site:
        return False
    if len(node.inputs) != 1 or other.stream in _before(flow, node):
        return False
    return reads_alike(operator, known[node.stream], known[node.inputs[0]], known[other.stream])


def reads_alike(operator: Operator, own: Relation, read: Relation, other: Relation) -> bool:
    """Whether an operator that reads a relation gives the same records if it reads another, which has fewer."""
    if operator.sql is None or operator.watermarks or operator.stateful or operator.late or operator.queue:
        return False
    if not own.origin == read.origin == other.origin or own.origin.startswith("only["):
        return False
    if own.said or read.said or other.said or own.mark or read.mark or other.mark:
        return False  # functions that spelling cannot tell apart, and watermarks that are not used yet
    if own.columns is None or read.columns is None or other.columns is None:
        return False
    if own.carried is None or other.carried is None or not own.carried <= other.carried:
        return False  # a watermark on such a column would be measured elsewhere
    if set(other.where) <= set(read.where) and len(other.columns) >= len(read.columns):
        return False  # nothing is saved
    # All that is wanted is there, and nothing that the input would not have had.
    are_implied = all(implied(one, own.where) for one in other.where)
    fewer = all(implied(one, other.where) for one in read.where)
    return are_implied and fewer and _has_columns(operator.sql, read, other)


def _has_columns(sql: str, read: Relation, other: Relation) -> bool:
    """Whether every column that a statement asks for is there, and what it was."""
    tree = parsed(sql)
    before = {name.lower(): what for name, what in read.columns or ()}
    now = {name.lower(): what for name, what in other.columns or ()}
    if any(one.is_star for select in tree.find_all(exp.Select) for one in select.selects):
        return list(before.items()) == list(now.items())
    for column in tree.find_all(exp.Column):
        words = [part.name.lower() for part in column.parts]
        asked = [word for word in words if word in before]
        if not asked or any(now.get(word) != before[word] for word in asked):
            return False
    return True


def _before(flow: Dataflow, node: Node) -> set[str]:
    """All that a stream comes of."""
    found: set[str] = set()
    waiting = list(node.inputs)
    while waiting:
        stream = waiting.pop()
        if stream not in found and flow.makes(stream):
            found.add(stream)
            waiting += flow.node(stream).inputs
    return found


def as_rates_are(deployment: Deployment, operator: Operator, stream: str, other: str) -> Operator:
    """An operator whose declared selectivity is of what it reads now."""
    if operator.selectivity is None:
        return operator
    per_s = ideal_rates(deployment).per_s
    share = per_s[stream] / per_s[other] if per_s[other] else operator.selectivity
    return replace(operator, selectivity=min(1.0, share))
