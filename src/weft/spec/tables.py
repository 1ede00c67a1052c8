"""How do fields make up lists and mappings? Items, names and tables of keys, over the shapes of single values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from weft.spec.problems import Problems, brief, did_you_mean, join, listed
from weft.spec.shapes import Shape, found
from weft.spec.tree import Node


@dataclass(frozen=True, slots=True)
class Items:
    """A list; `single` lets one item stand without brackets."""

    shape: Shape
    at_least: int = 0
    single: bool = False
    at_most: int | None = None

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if not isinstance(node.value, list):
            if self.single and node.value is not None:
                return (self.shape.read(node, path, problems),)
            problems.error(path, f"must be a list, found {found(node)}", problems.line(path))
            return ()
        if len(node.value) < self.at_least or (self.at_most is not None and len(node.value) > self.at_most):
            wanted = f"{self.at_least}" if self.at_most == self.at_least else f"at least {self.at_least}"
            problems.error(path, f"must hold {wanted}, found {len(node.value)}", problems.line(path))
        return tuple(self.shape.read(inner, f"{path}[{index}]", problems) for index, inner in enumerate(node.value))

    def plain(self, value: Any) -> Any:
        if not isinstance(value, (tuple, list)):
            return value
        if self.single and len(value) == 1:
            return self.shape.plain(value[0])
        return [self.shape.plain(inner) for inner in value]

    def schema(self) -> dict[str, Any]:
        inner = self.shape.schema()
        bounds = {"minItems": self.at_least} | ({"maxItems": self.at_most} if self.at_most is not None else {})
        many: dict[str, Any] = {"type": "array", "items": inner, **bounds}
        return {"oneOf": [inner, many]} if self.single else many


@dataclass(frozen=True, slots=True)
class ByName:
    """A mapping from names to values of one shape."""

    shape: Shape
    at_least: int = 0

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if not isinstance(node.value, dict):
            problems.error(path, f"must be a mapping from names to values, found {found(node)}", problems.line(path))
            return {}
        if len(node.value) < self.at_least:
            problems.error(path, f"must hold at least {self.at_least}, found none", problems.line(path))
        return {key: self.shape.read(inner, join(path, key), problems) for key, inner in node.value.items()}

    def plain(self, value: Any) -> Any:
        return {key: self.shape.plain(inner) for key, inner in value.items()} if isinstance(value, dict) else value

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.shape.schema(), "minProperties": self.at_least}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a mapping; `into` is its field in the model where the word itself is taken."""

    name: str
    shape: Shape
    about: str
    required: bool = False
    into: str | None = None

    @property
    def field(self) -> str:
        """The model's field."""
        return self.into or self.name


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping with known keys, read into a model class, whose defaults are the file's defaults."""

    cls: type
    what: str
    keys: tuple[Key, ...]

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        written = node.value
        if not isinstance(written, dict):
            problems.error(path, f"must be a mapping ({self.what}), found {found(node)}", problems.line(path))
            written = {}
            missing = False
        else:
            missing = True
            known = [key.name for key in self.keys]
            for name, inner in written.items():
                if name not in known:
                    says = f"unknown key in {self.what}; known are: {listed(known)}{did_you_mean(name, known)}"
                    problems.error(join(path, brief(name)), says, inner.key_line or inner.line)
        values: dict[str, Any] = {}
        for key in self.keys:
            inner_path = join(path, key.name)
            if key.name in written and (written[key.name].value is not None or key.required):
                values[key.field] = key.shape.read(written[key.name], inner_path, problems)
            elif key.required:
                if missing:
                    problems.error(inner_path, f"is missing in {self.what}: {key.about}", problems.line(path))
                values[key.field] = key.shape.read(Node(None), inner_path, Problems())
        return self.cls(**values)

    def plain(self, value: Any) -> Any:
        if not isinstance(value, self.cls):
            return value
        defaults = defaults_of(self.cls)
        out: dict[str, Any] = {}
        for key in self.keys:
            inner = getattr(value, key.field)
            if key.required or inner != defaults.get(key.field, dataclasses.MISSING):
                out[key.name] = key.shape.plain(inner)
        return out

    def schema(self) -> dict[str, Any]:
        defaults = defaults_of(self.cls)
        properties = {}
        for key in self.keys:
            default = defaults.get(key.field)
            shown = {"default": default} if isinstance(default, (bool, int, float, str)) else {}
            properties[key.name] = {"description": key.about, **key.shape.schema(), **shown}
        return {
            "type": "object",
            "description": self.what,
            "properties": properties,
            "required": [key.name for key in self.keys if key.required],
            "additionalProperties": False,
        }


def defaults_of(cls: type) -> dict[str, Any]:
    """A model class's defaults by field."""
    out: dict[str, Any] = {}
    for one in dataclasses.fields(cls):
        if one.default is not dataclasses.MISSING:
            out[one.name] = one.default
        elif one.default_factory is not dataclasses.MISSING:
            out[one.name] = one.default_factory()
    return out
