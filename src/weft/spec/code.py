"""Which code does a function reach? A fingerprint of its module and of all that this takes in from the same folder."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from weft.spec.calls import module_file

_BYTES_MAX = 4 * 1024 * 1024


def fingerprint(call: str, folder: str) -> str | None:
    """Equal for equal code; None where some of it cannot be read. Packages from elsewhere count by their names.

    What a module is made of counts, not how it is laid out: comments and white space make no difference.
    """
    root = Path(folder or ".").resolve()
    found: dict[str, str] = {}
    todo = [call.partition(":")[0]]
    while todo:
        module = todo.pop()
        if module in found:
            continue
        file = module_file(module, folder)
        if file is None or not file.name or root not in file.resolve().parents:
            found[module] = "from elsewhere"
            continue
        try:
            if file.stat().st_size > _BYTES_MAX:
                return None
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        found[module] = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        todo += _taken_in(tree, package, folder)
    text = "\n".join(f"{module} {held}" for module, held in sorted(found.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def said_to(call: str, args: Mapping[str, Any], folder: str) -> str | None:
    """The arguments of a function, equal for those that it cannot tell apart; None where some are no plain values.

    The order of names makes no difference to a function that lists them all; within an argument it does, as do kinds
    of keys, which JSON would not tell apart.
    """
    if not _is_plain(args):
        return None
    listed = args if _may_see_order(call, folder) else dict(sorted(args.items()))
    return repr(list(listed.items()))


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_plain(key) and _is_plain(held) for key, held in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, date))


def _may_see_order(call: str, folder: str) -> bool:
    """Whether a function may take arguments that it does not name, in the order in which they are written."""
    module, _, name = call.partition(":")
    file = module_file(module, folder)
    try:
        tree = ast.parse(file.read_bytes()) if file is not None and file.name else ast.Module([], [])
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    named = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    return len(named) != 1 or bool(named[0].decorator_list) or named[0].args.kwarg is not None


def _taken_in(tree: ast.Module, package: str, folder: str) -> list[str]:
    """The modules that a module imports, at any depth, and the packages they are in."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            names.append(whole)
            # `from a import b` names a module b where there is one.
            names += [f"{whole}.{alias.name}" for alias in node.names if module_file(f"{whole}.{alias.name}", folder)]
    parts = [name.split(".") for name in names if name]
    return [".".join(part[:count]) for part in parts for count in range(1, len(part) + 1)]
