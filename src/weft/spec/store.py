"""Where is a run's state? A key of a deployment file that must be found in a broken file too."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.model import Store
from weft.spec.problems import Problems
from weft.spec.shapes import Flag, Text, found
from weft.spec.tables import Key, Table
from weft.spec.tree import Composer, Node, Unreadable, text_of

_STORE = Table(
    Store,
    "a store",
    (
        Key("path", Text("a folder"), "the folder that keeps streams, checkpoints and logs, from this file's folder"),
        Key("fsync", Flag(), "what is called committed outlives a power cut; false: only a crash of the run"),
    ),
)


@dataclass(frozen=True, slots=True)
class StoreForm:
    """`.weft`, or `{path: .weft, fsync: true}`."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node.value, dict):
            return _STORE.read(node, path, problems)
        if not isinstance(node.value, str):
            says = f"must be a folder, or a mapping as {{path: .weft, fsync: true}}, found {found(node)}"
            problems.error(path, says, problems.line(path))
            return Store()
        return Store(Text("a folder").read(node, path, problems))

    def plain(self, value: Any) -> Any:
        if not isinstance(value, Store):
            return value
        return value.path if value == Store(value.path) else _STORE.plain(value)

    def schema(self) -> dict[str, Any]:
        return {"oneOf": [Text("a folder").schema(), _STORE.schema()]}


def store_of(file: str | os.PathLike[str]) -> Store:
    """What a deployment file says of its store, whatever else is wrong with it; the default where nothing is told."""
    try:
        text = text_of(Path(file))
    except Unreadable:
        return Store()
    node = node_in(text, "store")
    problems = Problems()
    store = Store() if node is None or node.value is None else StoreForm().read(node, "store", problems)
    return Store() if problems.errors or not isinstance(store, Store) else store


def node_in(text: str, key: str) -> Node | None:
    """The node of a key; of a text that is no YAML only the lines of that key are looked at."""
    own = re.search(rf"^{key}:.*(\n +.*)*", text, re.MULTILINE)
    for part in (text, own[0] if own else ""):
        try:
            root = Composer().compose(part)
        except Unreadable:
            continue
        return root.value.get(key) if isinstance(root.value, dict) else None
    return None
