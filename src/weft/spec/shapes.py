"""What may stand in a field? Shapes that read a node, write a value back, and describe themselves as JSON Schema."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from weft.spec.problems import Problems, brief, did_you_mean, join, listed
from weft.spec.tree import Node

_WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "~"}
TEXT_CHARS_MAX = 100_000


class Shape(Protocol):
    """What a field may hold; `read` always gives a value, so that reading can go on after a problem."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        """The node's value, with every problem it has."""

    def plain(self, value: Any) -> Any:
        """The value as it would stand in a file."""

    def schema(self) -> dict[str, Any]:
        """The shape as JSON Schema."""


def found(node: Node) -> str:
    """What stands at a node, in words."""
    value = node.value
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None:
        return "nothing"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "text"}
    kind = kinds.get(type(value), f"a {type(value).__name__}")
    return f"`{brief(node.raw if node.raw is not None else value)}` ({kind})"


def quotes_hint(node: Node) -> str:
    """Says to quote what YAML took for something else than text."""
    raw = node.raw if node.raw is not None else str(node.value)
    if node.line is None or isinstance(node.value, (str, dict, list)):
        return ""
    if raw.lower() in _WORDS and raw:
        return f'; YAML reads {raw} as {"nothing" if node.value is None else "a boolean"}: write "{raw}" in quotes'
    return f'; YAML reads it as a number: write "{raw}" in quotes' if isinstance(node.value, (int, float)) else ""


def _is_number(value: Any) -> bool:
    """Whether a value is a number that fits the machine's."""
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)


@dataclass(frozen=True, slots=True)
class Number:
    """A number within bounds."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    whole: bool = False

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        value = node.value
        if not _is_number(value):
            hint = "; leave the quotes out" if isinstance(value, str) and re.fullmatch(r"-?[\d.]+", value) else ""
            problems.error(path, f"must be {self.wanted()}, found {found(node)}{hint}", node.line)
            return self._fallback()
        if not math.isfinite(value) or not self._within(value) or (self.whole and value != int(value)):
            problems.error(path, f"must be {self.wanted()}, found {brief(node.raw)}", node.line)
            return self._fallback()
        return int(value) if self.whole else float(value)

    def _within(self, value: float) -> bool:
        return (
            (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )

    def _fallback(self) -> float:
        value = self.at_least if self.at_least is not None else (self.at_most or 1)
        return int(value) if self.whole else float(value)

    def wanted(self) -> str:
        """The bounds in words."""
        bounds = [
            f"{word} {limit:g}"
            for word, limit in (
                ("greater than", self.above),
                ("at least", self.at_least),
                ("less than", self.below),
                ("at most", self.at_most),
            )
            if limit is not None
        ]
        return " ".join(["a whole number" if self.whole else "a number", " and ".join(bounds)]).strip()

    def plain(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        bounds = {
            "exclusiveMinimum": self.above,
            "minimum": self.at_least,
            "exclusiveMaximum": self.below,
            "maximum": self.at_most,
        }
        return {"type": "integer" if self.whole else "number"} | {k: v for k, v in bounds.items() if v is not None}


@dataclass(frozen=True, slots=True)
class Flag:
    """true or false."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node.value, bool):
            return node.value
        problems.error(path, f"must be true or false, found {found(node)}", node.line)
        return False

    def plain(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Text:
    """Text that is not empty; `pattern` and `hint` say which."""

    what: str = "text"
    pattern: str | None = None
    hint: str = ""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        value = node.value
        if not isinstance(value, str):
            problems.error(path, f"must be {self.what}, found {found(node)}{quotes_hint(node)}", node.line)
            return node.raw or ""
        if not value.strip() or "\0" in value:
            problems.error(path, f"must be {self.what}, found empty text or a NUL character", node.line)
        elif len(value) > TEXT_CHARS_MAX:
            problems.error(path, f"is {len(value)} characters long; at most {TEXT_CHARS_MAX} are read", node.line)
            return ""
        elif self.pattern is not None and not re.fullmatch(self.pattern, value):
            problems.error(path, f"must be {self.what}, found `{brief(value)}`{self.hint}", node.line)
        return value

    def plain(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1} | ({"pattern": f"^{self.pattern}$"} if self.pattern else {})


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several words; `later` are words of the contract that nothing stands behind yet."""

    words: tuple[str, ...]
    later: tuple[str, ...] = ()

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        value = node.value
        if value in self.words and isinstance(value, str):
            return value
        if isinstance(value, str) and value in self.later:
            problems.error(path, f"`{value}` is not there yet; there are: {listed(self.words)}", node.line)
        else:
            hint = did_you_mean(value, self.words) if isinstance(value, str) else quotes_hint(node)
            problems.error(path, f"must be one of {listed(self.words)}, found {found(node)}{hint}", node.line)
        return self.words[0]

    def plain(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A word, number or flag, handed on as text (Spark's options are text)."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node.value, bool):
            return "true" if node.value else "false"
        if isinstance(node.value, (str, int, float)):
            return node.raw if node.raw is not None else str(node.value)
        problems.error(path, f"must be text, a number or true/false, found {found(node)}", node.line)
        return ""

    def plain(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean"]}


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value, as written."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node.value, dict):
            return {key: self.read(inner, join(path, key), problems) for key, inner in node.value.items()}
        if isinstance(node.value, list):
            return [self.read(inner, f"{path}[{index}]", problems) for index, inner in enumerate(node.value)]
        if isinstance(node.value, float) and not math.isfinite(node.value):
            problems.error(path, f"must be a number that is finite, found {brief(node.raw)}", node.line)
        elif node.value is not None and not isinstance(node.value, (bool, int, float, str)):
            problems.error(path, f"must be text, a number, true/false, a list or a mapping, found {found(node)}")
        return node.value

    def plain(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {}
