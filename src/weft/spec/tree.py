"""Is it YAML, and what stands on which line? Reads within limits on size, depth, nodes and aliases."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from weft.spec.problems import Problem, brief, join

FILE_BYTES_MAX = 4 * 1024 * 1024
NODES_MAX = 200_000
DEPTH_MAX = 40

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Any = yaml.SafeLoader("")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "timestamp", "merge")}


@dataclass(slots=True)
class Node:
    """A value with its line: a scalar, a list of nodes, or nodes by key; `raw` is a scalar as written."""

    value: Any
    line: int | None = None
    raw: str | None = None
    block: bool = False
    key_line: int | None = None


class Unreadable(Exception):
    """The file cannot be read any further."""

    def __init__(self, line: int | None, path: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(line, path or "file", message)


def text_of(path: Path) -> str:
    """A file's text; Unreadable says why there is none."""
    try:
        about = path.stat()
        if stat.S_ISDIR(about.st_mode):
            raise Unreadable(None, "", "is a folder; give the deployment file in it")
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable(None, "", "is not a plain file; give a YAML file")
        if about.st_size > FILE_BYTES_MAX:
            raise Unreadable(None, "", f"has {about.st_size} bytes; a deployment file has at most {FILE_BYTES_MAX}")
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise Unreadable(None, "", "there is no such file; check the path") from None
    except PermissionError:
        raise Unreadable(None, "", "may not be read; check the file's permissions") from None
    except (OSError, ValueError) as error:
        raise Unreadable(None, "", f"cannot be read: {brief(error)}") from None
    if not data.strip():
        raise Unreadable(1, "", "is empty; begin with `weft: 1`, then sites, sources and queries")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable(1, "", "is UTF-16 text; save it as UTF-8")
    if b"\0" in data:
        raise Unreadable(_line(data, data.index(b"\0")), "", "is a binary file; a deployment file is YAML text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = data[error.start]
        says = f"is not UTF-8 text (byte 0x{found:02x}); save it as UTF-8"
        raise Unreadable(_line(data, error.start), "", says) from None


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    node: Node
    anchor: str | None
    count_before: int
    key: str | None = None
    key_line: int | None = None
    key_last: str | None = None
    merges: list[Node] = field(default_factory=list)

    def path_part(self) -> str:
        if isinstance(self.node.value, list):
            return f"[{len(self.node.value)}]"
        # Between two keys, what is wrong most likely began in the value before.
        key = self.key if self.key is not None else self.key_last
        return f".{key}" if key is not None else ""


class Composer:
    """Builds nodes from YAML events, so that nothing is deeper or larger than the limits."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._count = 0
        self._root: Node | None = None

    def compose(self, text: str) -> Node:
        """The root node; Unreadable where the text is not YAML or goes over a limit."""
        documents = 0
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        self._stop(event, "a second document begins here (`---`); a deployment file is one document")
                self._take(event)
        except yaml.YAMLError as error:
            raise self._syntax(text, error) from None
        if self._root is None:
            raise Unreadable(1, "", "holds no YAML document; begin with `weft: 1`, then sites, sources and queries")
        return self._root

    def path(self) -> str:
        """Where the composer stands."""
        return "".join(part.path_part() for part in self._open).lstrip(".")

    def _take(self, event: Any) -> None:
        start: Any = event.start_mark
        if isinstance(event, yaml.ScalarEvent):
            self._put(self._scalar(event), event.anchor, self._count)
        elif isinstance(event, yaml.AliasEvent):
            anchor = str(event.anchor)
            if anchor not in self._anchors:
                self._stop(event, f"`*{anchor}` stands for nothing; write `&{anchor}` before it, at its value")
            node, size = self._anchors[anchor]
            self._more(event, size)
            self._put(node, None, 0)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if event.tag is not None and event.tag not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
                self._stop(event, f"the tag `{brief(event.tag)}` is not understood; leave it out")
            if len(self._open) >= DEPTH_MAX:
                self._stop(event, f"is nested more than {DEPTH_MAX} deep; a deployment needs 8")
            before = self._count
            self._more(event, 1)
            value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._open.append(_Open(Node(value, start.line + 1), event.anchor, before))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = self._open.pop()
            for merged in done.merges:
                for key, node in merged.value.items():
                    done.node.value.setdefault(key, node)
            self._put(done.node, done.anchor, done.count_before)

    def _put(self, node: Node, anchor: str | None, count_before: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, self._count - count_before)
        if not self._open:
            self._root = node
            return
        holder = self._open[-1]
        if isinstance(holder.node.value, list):
            holder.node.value.append(node)
        elif holder.key is None:
            if node.raw is None:
                raise Unreadable(node.line, self.path(), "a key must be a word, found a list or a mapping")
            holder.key = holder.key_last = node.raw
            holder.key_line = node.line
        else:
            self._set(holder, holder.key, node)
            holder.key = None

    def _set(self, holder: _Open, key: str, node: Node) -> None:
        if key == "<<":
            merged = node.value if isinstance(node.value, list) else [node]
            if not all(isinstance(one.value, dict) for one in merged):
                raise Unreadable(holder.key_line, self.path(), "`<<` takes in a mapping, as in `<<: *name`")
            self._count += sum(len(one.value) for one in merged)
            holder.merges.extend(merged)
        elif key in holder.node.value:
            first = holder.node.value[key].key_line
            message = f"stands twice in one mapping (first on line {first}); keep one"
            if len(self.problems) < 100:
                self.problems.append(Problem(holder.key_line, self.path(), message))
        else:
            holder.node.value[key] = replace(node, key_line=holder.key_line)

    def _scalar(self, event: Any) -> Node:
        self._more(event, 1)
        text: str = event.value
        node = Node(text, event.start_mark.line + 1, text, block=event.style == "|")
        tag = event.tag if event.tag not in (None, "!") else None
        if tag is None and event.implicit[0]:
            tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))
        kind = _TAGS.get(tag or "tag:yaml.org,2002:str")
        if kind is None:
            self._stop(event, f"the tag `{brief(tag)}` is not understood; leave it out")
        try:
            node.value = _value(kind, text, plain=bool(event.implicit[0]))
        except ValueError:
            self._stop(event, f"`{brief(text)}` is not a number that can be used")
        return node

    def _more(self, event: Any, count: int) -> None:
        self._count += count
        if self._count > NODES_MAX:
            self._stop(event, f"holds more than {NODES_MAX} values (aliases counted in full); make it smaller")

    def _stop(self, event: Any, message: str) -> None:
        raise Unreadable(event.start_mark.line + 1, self.path(), message)

    def _syntax(self, text: str, error: yaml.YAMLError) -> Unreadable:
        mark = getattr(error, "problem_mark", None)
        if mark is None:
            position = getattr(error, "position", 0)
            return Unreadable(text.count("\n", 0, position) + 1, self.path(), f"is not YAML: {brief(error)}; remove it")
        lines = text.splitlines()
        written = lines[mark.line] if mark.line < len(lines) else ""
        if "\t" in written[: mark.column + 1] and not written[: mark.column].strip():
            return Unreadable(mark.line + 1, self.path(), "is not YAML: a tab indents this line; indent with spaces")
        said = ": ".join(part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part)
        hint = _hint(said, written)
        return Unreadable(mark.line + 1, self.path(), f"is not YAML: {said} (column {mark.column + 1}){hint}")


def _hint(said: str, written: str) -> str:
    if "mapping values are not allowed" in said:
        return "; text that holds `: ` needs quotes, and keys of one mapping the same indent"
    if "flow" in said:
        return "; a `[` or `{` above is not closed, or a comma is missing"
    if "cannot start any token" in said and re.search(r"[@`%]", written):
        return "; text that begins with @, ` or % needs quotes"
    return "; check the quotes and the indent here and on the line above"


def _value(kind: str | None, text: str, plain: bool) -> Any:
    """A scalar's value: numbers as JSON would read them too (`1e3`), dates and `1:30` as the text they are."""
    if kind == "null":
        return None
    if kind == "bool":
        return _RESOLVER.construct_yaml_bool(yaml.ScalarNode("", text))
    if kind == "int" and ":" not in text:
        return _RESOLVER.construct_yaml_int(yaml.ScalarNode("", text))
    if kind == "float" and ":" not in text:
        return _RESOLVER.construct_yaml_float(yaml.ScalarNode("", text))
    if plain and kind == "str" and _NUMBER.fullmatch(text):
        return float(text)
    return text


def lines_of(root: Node) -> tuple[dict[str, int], frozenset[str]]:
    """The line of every field path, and the paths of block texts, whose content begins one line below."""
    lines: dict[str, int] = {}
    blocks: set[str] = set()
    todo: list[tuple[str, Node]] = [("", root)]
    while todo:
        path, node = todo.pop()
        scalar = not isinstance(node.value, (dict, list))
        line = node.line if scalar or node.key_line is None else node.key_line
        if line is not None:
            lines[path] = line
        if node.block:
            blocks.add(path)
        if isinstance(node.value, dict):
            todo.extend((join(path, key), inner) for key, inner in node.value.items())
        elif isinstance(node.value, list):
            todo.extend((f"{path}[{index}]", inner) for index, inner in enumerate(node.value))
            if len(node.value) == 1 and re.fullmatch(r"queries\[\d+\]\.sink", path):
                # `sink: [{...}]` and `sink: {...}` say the same, so the one answers to the other's paths.
                todo.append((path, replace(node.value[0], key_line=node.key_line)))
    return lines, frozenset(blocks)


def node_of(value: Any) -> Node:
    """A node without lines, from plain Python values."""
    if isinstance(value, dict):
        return Node({str(key): node_of(inner) for key, inner in value.items()})
    if isinstance(value, (list, tuple)):
        return Node([node_of(inner) for inner in value])
    return Node(value, raw=str(value))
