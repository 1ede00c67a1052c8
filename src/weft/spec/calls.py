"""Is there such a function? Looked up in the module's source, so that checking runs none of the user's code."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

from weft.model import Operator
from weft.spec.problems import brief, did_you_mean, listed

_BYTES_MAX = 4 * 1024 * 1024


def call_problem(operator: Operator, folder: str) -> tuple[str, str] | None:
    """What is wrong with an operator's `call` or `args`, as (key, message); None where nothing is."""
    module, _, name = (operator.call or "").partition(":")
    file = module_file(module, folder)
    if file is None:
        where = f"in {Path(folder).resolve()} or among the installed packages"
        return "call", f"there is no module `{brief(module)}` {where}; check its name, or put the file there"
    if file == Path():
        return None
    try:
        if file.stat().st_size > _BYTES_MAX:
            return None
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        return "call", f"{file.name}{f':{line}' if line else ''} is not Python: {brief(error)}"
    except OSError as error:
        return "call", f"{file} cannot be read: {brief(error)}"
    found = _defined(tree)
    if name not in found:
        if "*" in found:
            return None
        functions = [key for key, node in found.items() if isinstance(node, ast.FunctionDef)]
        says = f"`{module}` has no function `{brief(name)}`; it has: {listed(functions)}"
        return "call", says + did_you_mean(name, functions)
    function = found[name]
    if isinstance(function, ast.AsyncFunctionDef):
        return "call", f"`{name}` is async; an operator's function is a plain one"
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        # A decorator or an assignment may change what it takes; only running it could tell.
        return None
    return _mismatch(operator, function)


def module_file(module: str, folder: str) -> Path | None:
    """The source of a module, an empty path where it is there without source, None where it is not there."""
    parts = module.split(".")
    for root in (folder, *sys.path):
        found = _under(Path(root or "."), parts)
        if found is not None:
            return found
    try:
        top = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError, AttributeError):
        return None
    if top is None:
        return None
    for place in top.submodule_search_locations or ():
        found = _under(Path(place), parts[1:]) if parts[1:] else Path(place) / "__init__.py"
        if found is not None and (found.is_file() or found == Path()):
            return found
    # Built-in, compiled or zipped modules are there, but have no source to look into.
    folders = [Path(place) for place in top.submodule_search_locations or ()]
    return Path() if len(parts) == 1 or not all(place.is_dir() for place in folders) else None


def _under(root: Path, parts: list[str]) -> Path | None:
    base = root.joinpath(*parts)
    try:
        for file in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if file.is_file():
                return file
        if any(file.suffix in (".so", ".pyd", ".pyc") for file in base.parent.glob(f"{base.name}.*")):
            return Path()
    except (OSError, ValueError):
        return None
    return None


def _defined(tree: ast.Module) -> dict[str, Any]:
    """What a module defines at its top, also within if and try; `*` where it takes in another's names."""
    found: dict[str, Any] = {}
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        node = todo.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name): node for alias in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {inner.id: node for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            todo += node.body + getattr(node, "orelse", []) + getattr(node, "finalbody", [])
            todo += [inner for handler in getattr(node, "handlers", []) for inner in handler.body]
    return found


def _mismatch(operator: Operator, function: ast.FunctionDef) -> tuple[str, str] | None:
    """How the inputs and `args` do not fit what the function takes: DataFrames first, in the order of `from`."""
    takes = function.args
    positional = [one.arg for one in (*takes.posonlyargs, *takes.args)]
    count = len(operator.from_)
    if len(positional) < count and takes.vararg is None:
        says = f"`{function.name}` takes {len(positional)} positional arguments, `from` gives {count} DataFrames"
        return "call", f"{says}; let it take one for each"
    frames, rest = positional[:count], positional[count:]
    with_default = positional[len(positional) - len(takes.defaults) :] if takes.defaults else []
    only_names = [one.arg for one in takes.kwonlyargs]
    with_default += [name for name, value in zip(only_names, takes.kw_defaults, strict=True) if value is not None]
    open_ = [*rest, *only_names]
    for name in operator.args:
        if name in frames:
            return "args", f"`{name}` of `{function.name}` is the DataFrame of `{operator.from_[frames.index(name)]}`"
        if name not in open_ and takes.kwarg is None:
            says = f"`{function.name}` takes no argument `{brief(name)}`; it takes: {listed(open_)}"
            return "args", says + did_you_mean(name, open_)
    missing = [name for name in open_ if name not in with_default and name not in operator.args]
    if missing:
        hint = "; each stream in `from` gives one DataFrame" if missing[0] in rest else ""
        return "args", f"`{function.name}` needs {listed(missing)}; give it in `args`{hint}"
    return None
