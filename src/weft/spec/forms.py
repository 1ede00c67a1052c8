"""Which fields may be written in several forms? Cost, watermark, order, advice, arrivals and happenings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, get_args

from weft.model import Advise, Cost, Order, Project, Relief, Share, Watermark
from weft.model.control import Foreseen
from weft.spec.problems import Problems, brief, did_you_mean, join, listed
from weft.spec.shapes import Choice, Flag, Number, Shape, Text, found
from weft.spec.tables import Items, Key, Table
from weft.spec.tree import Node

_UNITS = "microsecond|millisecond|second|minute|hour|day|week"
_INTERVAL = re.compile(rf"\s*(interval\s+)?((\d+\s+({_UNITS})s?|\d+\.\d+\s+seconds?)(\s+|\s*$))+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Delay:
    """A Spark interval such as `10 minutes`."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        value = node.value
        if isinstance(value, str) and len(value) <= 100 and _INTERVAL.fullmatch(value):
            return value.strip()
        hint = ""
        if isinstance(value, str) and re.search(r"month|year|quarter", value, re.IGNORECASE):
            hint = "; months and years differ in length: use days"
        elif isinstance(value, str) and "-" in value:
            hint = "; a delay is not negative"
        says = f"must be a number and a unit ({_UNITS.replace('|', ', ')}), as `10 minutes`, found {found(node)}{hint}"
        problems.error(path, says, node.line)
        return "0 seconds"

    def plain(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": rf"^ *\d+(\.\d+)? +({_UNITS})s?"}


_COLUMN_AND_DELAY = Table(
    Watermark,
    "a watermark",
    (
        Key("delay", Delay(), "how late a record may be, as `10 minutes`", required=True),
        Key("column", Text("a column's name"), "the event-time column; absent: the input's event time"),
    ),
)


@dataclass(frozen=True, slots=True)
class Watermarks:
    """`10 minutes`, or `{column, delay}`, or either of them per input."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        value = node.value
        if isinstance(value, dict) and value and not set(value) & {"column", "delay"}:
            return tuple(self._one(inner, join(path, name), problems, name) for name, inner in value.items())
        return (self._one(node, path, problems, None),)

    def _one(self, node: Node, path: str, problems: Problems, input_: str | None) -> Watermark:
        if isinstance(node.value, dict):
            mark = _COLUMN_AND_DELAY.read(node, path, problems)
            return Watermark(mark.delay, mark.column, input_)
        return Watermark(Delay().read(node, path, problems), None, input_)

    def plain(self, value: Any) -> Any:
        if not isinstance(value, tuple) or not all(isinstance(mark, Watermark) for mark in value):
            return value
        if len(value) == 1 and value[0].input is None:
            return self._plain_one(value[0])
        return {mark.input or "": self._plain_one(mark) for mark in value}

    @staticmethod
    def _plain_one(mark: Watermark) -> Any:
        return mark.delay if mark.column is None else {"column": mark.column, "delay": mark.delay}

    def schema(self) -> dict[str, Any]:
        one = [Delay().schema(), _COLUMN_AND_DELAY.schema()]
        per_input = {
            "type": "object",
            "description": "one watermark per input, by the input's name",
            "not": {"anyOf": [{"required": ["column"]}, {"required": ["delay"]}]},
            "additionalProperties": {"oneOf": one},
        }
        return {"oneOf": [*one, per_input]}


_COST = Number(at_least=0)
_COSTS: dict[str, Shape] = {
    "constant": _COST,
    "exponential": _COST,
    "uniform": Items(_COST, 2, at_most=2),
    "normal": Items(_COST, 2, at_most=2),
    "empirical": Items(_COST, 1),
}


@dataclass(frozen=True, slots=True)
class CostForm:
    """A number of ms, or one distribution of them."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if not isinstance(node.value, dict):
            if isinstance(node.value, list):
                problems.error(path, f"must be a number or one of {listed(_COSTS)}, found a list", node.line)
                return Cost("constant", (0.0,))
            return Cost("constant", (_COST.read(node, path, problems),))
        kinds = list(node.value)
        if len(kinds) != 1 or kinds[0] not in _COSTS:
            hint = did_you_mean(kinds[0], _COSTS) if kinds else ""
            says = f"must be a number or one of {listed(_COSTS)}, found {brief(', '.join(kinds)) or 'an empty mapping'}"
            problems.error(path, says + hint, problems.line(path))
            return Cost("constant", (0.0,))
        kind: Any = kinds[0]
        values = _COSTS[kind].read(node.value[kind], join(path, kind), problems)
        cost = Cost(kind, values if isinstance(values, tuple) else (values,))
        if kind == "uniform" and len(cost.values) == 2 and cost.values[0] > cost.values[1]:
            problems.error(join(path, kind), "must be [low, high] with low <= high", node.value[kind].line)
        return cost

    def plain(self, value: Any) -> Any:
        if not isinstance(value, Cost) or value.kind not in _COSTS:
            return value
        if value.kind in ("constant", "exponential"):
            inner = value.values[0] if len(value.values) == 1 else list(value.values)
            return inner if value.kind == "constant" else {value.kind: inner}
        return {value.kind: list(value.values)}

    def schema(self) -> dict[str, Any]:
        forms = [
            {"type": "object", "properties": {kind: shape.schema()}, "required": [kind], "additionalProperties": False}
            for kind, shape in _COSTS.items()
        ]
        return {"oneOf": [_COST.schema(), *forms]}


_ORDER = Table(
    Order,
    "an order",
    (
        Key("lambda", Number(at_least=0), "the margin of the hold", into="lambda_"),
        Key("late_max", Number(at_least=0, at_most=1), "the share of records that may stay late (0.1 = 10 %)"),
        Key("time", Text("a column's name"), "the column to order by; absent: the event time of what is read"),
        Key("held_max", Number(at_least=1, whole=True), "held records at most; beyond, the oldest leave early"),
        Key("idle_s", Number(at_least=0), "after so much silence all leave; absent: about twice the hold"),
    ),
)


@dataclass(frozen=True, slots=True)
class OrderForm:
    """`true`, `{lambda: 0.5}` or `{late_max: 0.1}`."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node.value, bool):
            return Order() if node.value else None
        if isinstance(node.value, dict) and {"lambda", "late_max"} <= set(node.value):
            problems.error(path, "must be either lambda or late_max, found both; keep one", problems.line(path))
        elif not isinstance(node.value, dict):
            says = f"must be true, {{lambda: 0.5}} or {{late_max: 0.1}}, found {found(node)}"
            problems.error(path, says, problems.line(path))
            return None
        return _ORDER.read(node, path, problems)

    def plain(self, value: Any) -> Any:
        if not isinstance(value, Order):
            return value
        by = {"lambda": value.lambda_} if value.late_max is None else {"late_max": value.late_max}
        rest = {key: inner for key, inner in _ORDER.plain(value).items() if key not in ("lambda", "late_max")}
        return by | rest

    def schema(self) -> dict[str, Any]:
        by_margin, by_share = _ORDER.schema(), _ORDER.schema() | {"required": ["late_max"]}
        del by_margin["properties"]["late_max"], by_share["properties"]["lambda"]
        return {"oneOf": [{"type": "boolean"}, by_margin, by_share]}


_ADVISE = Table(
    Advise,
    "advise",
    (
        Key("period_s", Number(above=0), "the time between two looks"),
        Key("price", Number(at_least=0), "what each move must gain: ms of latency, or potential"),
    ),
)


_RELIEF = Table(
    Relief,
    "relief",
    (
        Key("period_s", Number(above=0), "the time between two looks"),
        Key("horizon_s", Number(above=0), "how far ahead it looks"),
        Key("forecast", Choice(get_args(Foreseen)), "how rates of sources are foreseen"),
    ),
)


@dataclass(frozen=True, slots=True)
class SwitchForm:
    """`true`, `false`, or the keys of a part that is on where it is given."""

    table: Table
    example: str

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node.value, bool):
            return self.table.cls() if node.value else None
        if not isinstance(node.value, dict):
            problems.error(path, f"must be true, or {self.example}, found {found(node)}", problems.line(path))
            return None
        return self.table.read(node, path, problems)

    def plain(self, value: Any) -> Any:
        return True if value == self.table.cls() else self.table.plain(value)

    def schema(self) -> dict[str, Any]:
        return {"oneOf": [{"type": "boolean"}, self.table.schema()]}


_PROJECT = Table(
    Project,
    "project",
    (
        Key("statistic", Choice(("mean", "quantile", "maximum")), "what of the latencies over all segments counts"),
        Key("quantile", Number(above=0, below=1), "which quantile, by records"),
    ),
)

PROJECT_FORM = SwitchForm(_PROJECT, "{statistic: quantile, quantile: 0.95}")
ADVISE_FORM = SwitchForm(_ADVISE, "{period_s: 30, price: 10}")
RELIEF_FORM = SwitchForm(_RELIEF, "{period_s: 5, horizon_s: 60, forecast: auto}")


_SHARE = Table(
    Share,
    "share",
    (
        Key("on", Flag(), "whether equal operators run once"),
        Key("contain", Flag(), "whether what is all among another's records is made of those"),
        Key("together", Flag(), "whether aggregates over equal windows that differ in their filters are one"),
    ),
)


class ShareForm:
    """`true`, `false`, or `{on: true, contain: true}`."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node.value, bool):
            return Share(node.value)
        if not isinstance(node.value, dict):
            problems.error(path, f"must be true, false or {{on: true}}, found {found(node)}", problems.line(path))
            return None
        return _SHARE.read(node, path, problems)

    def plain(self, value: Any) -> Any:
        return value.on if value in (Share(), Share(False)) else _SHARE.plain(value)

    def schema(self) -> dict[str, Any]:
        return {"oneOf": [{"type": "boolean"}, _SHARE.schema()]}


@dataclass(frozen=True, slots=True)
class ByKind:
    """A mapping whose `kind` says which keys it has."""

    what: str
    tables: dict[str, Table]

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        first = next(iter(self.tables.values()))
        if not isinstance(node.value, dict):
            return first.read(node, path, problems)
        kind = node.value.get("kind")
        if kind is None or kind.value not in self.tables:
            said = "is missing" if kind is None else f"found {found(kind)}"
            hint = did_you_mean(str(kind.value), self.tables) if kind is not None else ""
            line = kind.line if kind is not None else problems.line(path)
            problems.error(join(path, "kind"), f"must be one of {listed(self.tables)}, {said}{hint}", line)
            return None
        rest = {key: inner for key, inner in node.value.items() if key != "kind"}
        return self.tables[kind.value].read(Node(rest, node.line), path, problems)

    def plain(self, value: Any) -> Any:
        for kind, table in self.tables.items():
            if isinstance(value, table.cls):
                return {"kind": kind} | table.plain(value)
        return value

    def schema(self) -> dict[str, Any]:
        forms = []
        for kind, table in self.tables.items():
            form = table.schema()
            form["properties"] = {"kind": {"const": kind, "description": self.what}, **form["properties"]}
            form["required"] = ["kind", *form["required"]]
            forms.append(form)
        return {"oneOf": forms}


@dataclass(frozen=True, slots=True)
class ByVerb:
    """A mapping in which one key of several says what it is."""

    what: str
    tables: dict[str, Table]

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        first = next(iter(self.tables.values()))
        if not isinstance(node.value, dict):
            return first.read(node, path, problems)
        verbs = [key for key in node.value if key in self.tables]
        if len(verbs) != 1:
            said = f"found {', '.join(verbs)}" if verbs else f"found only {brief(', '.join(node.value)) or 'nothing'}"
            hint = next((h for key in node.value if key != "at_s" and (h := did_you_mean(key, self.tables))), "")
            problems.error(path, f"{self.what} must be one of {listed(self.tables)}, {said}{hint}", problems.line(path))
            return None
        return self.tables[verbs[0]].read(node, path, problems)

    def plain(self, value: Any) -> Any:
        for table in self.tables.values():
            if isinstance(value, table.cls):
                return table.plain(value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"oneOf": [table.schema() for table in self.tables.values()]}
