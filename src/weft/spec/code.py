"""Which code does a function reach? A fingerprint of its module and of all that this takes in from the same folder."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

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
