"""A disk that remembers what was done to it, and what of it a power cut would leave."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weft.spark.storage.disk import Disk


class Node:
    """A file or folder as it is, and as it is known to be on disk: its content, or the names in it."""

    def __init__(self, is_folder: bool) -> None:
        self.is_folder = is_folder
        self.now: Any = {} if is_folder else b""
        self.on_disk: Any = {} if is_folder else b""


class Image:
    """Files and folders below a root, and which of their contents and names were synced."""

    def __init__(self) -> None:
        self.root = Node(True)

    def find(self, path: tuple[str, ...]) -> Node | None:
        node = self.root
        for name in path:
            if not node.is_folder or name not in node.now:
                return None
            node = node.now[name]
        return node

    def folder(self, path: tuple[str, ...]) -> Node:
        node = self.root
        for name in path:
            node = node.now.setdefault(name, Node(True))
        return node

    def apply(self, op: tuple[Any, ...]) -> None:
        """Do what was done."""
        kind, path, more = op
        if kind == "make":
            self.folder(path)
        elif kind == "write":
            node = self.folder(path[:-1]).now.setdefault(path[-1], Node(False))
            node.now = more
        elif kind in ("link", "rename"):
            node = self.find(path)
            assert node is not None, op
            self.folder(more[:-1]).now[more[-1]] = node
            if kind == "rename":
                del self.folder(path[:-1]).now[path[-1]]
        elif kind == "remove":
            self.folder(path[:-1]).now.pop(path[-1], None)
        elif kind == "sync":
            node = self.find(path)
            assert node is not None, f"{path} is synced, but was never written"
            node.on_disk = dict(node.now) if node.is_folder else node.now

    def lay_out(self, folder: Path, keep: str, rng: random.Random) -> None:
        """Write what a power cut leaves: `least` of what was not synced, `most` of it, or `some`."""
        self._lay_out(self.root, folder, keep, rng)

    def _lay_out(self, node: Node, path: Path, keep: str, rng: random.Random) -> None:
        if not node.is_folder:
            torn = node.now[: len(node.now) // 2]
            least = node.on_disk
            path.write_bytes(
                {"least": least, "most": node.now}.get(
                    keep, rng.choice((least, node.now, torn)) if least != node.now else least
                )
            )
            return
        path.mkdir(exist_ok=True)
        names = {"least": node.on_disk, "most": node.now}.get(keep)
        if names is None:
            names = {}
            for name in sorted(node.on_disk.keys() | node.now.keys()):
                held = rng.choice((node.on_disk, node.now)).get(name)
                if held is not None:
                    names[name] = held
        for name, inner in names.items():
            self._lay_out(inner, path / name, keep, rng)


class CutDisk(Disk):
    """Writes as ever, and keeps a list of it; what Spark would write beside goes through it too, never synced."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.ops: list[tuple[Any, ...]] = []

    def _path(self, path: Path) -> tuple[str, ...]:
        return Path(path).relative_to(self.root).parts

    def make(self, folder: Path) -> None:
        missing = []
        one = folder
        while not one.is_dir():
            missing.append(one)
            one = one.parent
        for new in reversed(missing):
            new.mkdir()
            self.ops.append(("make", self._path(new), None))
        self.sync((), [new.parent for new in missing])

    def write(self, path: Path, content: bytes) -> None:
        super().write(path, content)
        self.ops.append(("write", self._path(path), content))

    def link(self, path: Path, name: Path) -> None:
        super().link(path, name)
        self.ops.append(("link", self._path(path), self._path(name)))

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self.ops.append(("rename", self._path(old), self._path(new)))

    def remove(self, path: Path) -> None:
        super().remove(path)
        self.ops.append(("remove", self._path(path), None))

    def remove_tree(self, folder: Path) -> None:
        super().remove_tree(folder)
        self.ops.append(("remove", self._path(folder), None))

    def sync(self, files: Iterable[Path], folders: Iterable[Path] = ()) -> None:
        for path in (*files, *folders):
            self.ops.append(("sync", self._path(path), None))

    def images(self) -> Iterable[tuple[int, Image]]:
        """What lay there after each step, the first before any."""
        image = Image()
        yield 0, copy.deepcopy(image)
        for number, op in enumerate(self.ops, 1):
            image.apply(op)
            yield number, copy.deepcopy(image)
