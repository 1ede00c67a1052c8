"""A mutation tool: small faults made in a module's source, one at a time, each with a name that says what and where.

Only the bodies of functions are changed: words, limits and the table of steps stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import NamedTuple, Protocol

Path = tuple[tuple[str, int | None], ...]
"""The way to a node: a field, and a place where it is a list."""


class Mutant(NamedTuple):
    """A module with one fault; the name is stable as long as the line it changes is."""

    module: str
    name: str
    source: str
    path: Path
    node: ast.AST | None

    def load(self) -> ModuleType:
        """The faulty module, beside the sound one."""
        tree = ast.parse(self.source)
        _put(tree, self.path, self.node)
        made = ModuleType(self.module)
        exec(compile(ast.fix_missing_locations(tree), f"<{self.name}>", "exec"), made.__dict__)
        return made


class Faulty(Protocol):
    """A module with one fault, however it was made."""

    @property
    def module(self) -> str:
        """The name of the module."""

    def load(self) -> ModuleType:
        """The faulty module, beside the sound one."""


class Fault(NamedTuple):
    """Where a fault goes: the path of fields and places from the function to the node, and what stands there after."""

    what: str
    line: str
    path: Path
    node: ast.AST | None


def mutants(
    module: ModuleType, functions: tuple[str, ...] = (), swaps: Mapping[str, str] | None = None
) -> list[Mutant]:
    """Every mutant of a module's functions, or of those named, in the order of the source; `swaps` mixes up states."""
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:
        source = file.read()
    made: list[Mutant] = []
    seen: dict[str, int] = {}
    for path, function in _functions(ast.parse(source)):
        if functions and function.name not in functions:
            continue
        for fault in _faults(function, (), _SWAPS if swaps is None else swaps):
            short = f"{module.__name__.rpartition('.')[2]}.{function.name}: {fault.what} `{fault.line}`"
            seen[short] = seen.get(short, 0) + 1
            name = short if seen[short] == 1 else f"{short} #{seen[short]}"
            made.append(Mutant(module.__name__, name, source, (*path, *fault.path), fault.node))
    return made


def _functions(tree: ast.Module) -> Iterator[tuple[Path, ast.FunctionDef]]:
    skipped = ("__init__", "extra", "set_extra", "snapshot", "restore", "story")
    for at, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef):
            yield (("body", at),), node
        elif isinstance(node, ast.ClassDef):
            for place, inner in enumerate(node.body):
                if isinstance(inner, ast.FunctionDef) and inner.name not in skipped:
                    yield (("body", at), ("body", place)), inner


def _faults(node: ast.AST, path: Path, swaps: Mapping[str, str]) -> Iterator[Fault]:
    """Every fault at a node and below it."""
    if isinstance(node, ast.expr | ast.stmt):
        yield from _here(node, path, swaps)
    for name, held in ast.iter_fields(node):
        if name in ("annotation", "returns", "args") and isinstance(node, ast.FunctionDef | ast.AnnAssign | ast.arg):
            continue
        if isinstance(held, ast.AST):
            yield from _faults(held, (*path, (name, None)), swaps)
        elif isinstance(held, list):
            for at, one in enumerate(held):
                if isinstance(one, ast.AST):
                    yield from _faults(one, (*path, (name, at)), swaps)


def _here(  # noqa: PLR0912 one case for each kind of fault
    node: ast.expr | ast.stmt, path: Path, swaps: Mapping[str, str]
) -> Iterator[Fault]:
    """The faults that change this node itself."""
    line = ast.unparse(node).splitlines()[0][:90]
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield Fault("negate", ast.unparse(test)[:90], (*path, ("test", None)), ast.UnaryOp(ast.Not(), test))
            if isinstance(node, ast.If) and not node.orelse:
                yield Fault("skip branch", ast.unparse(test)[:90], path, ast.Pass())
        case ast.BoolOp(values=values):
            for value in values:
                rest = [one for one in values if one is not value]
                less = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
                yield Fault("drop condition", ast.unparse(value)[:90], path, less)
        case ast.List(elts=elts, ctx=ast.Load()) if elts:
            for at, one in enumerate(elts):
                yield Fault("drop effect", ast.unparse(one)[:90], (*path, ("elts", at)), None)
        case ast.Assign(targets=[ast.Name()]):
            return  # without it, the next line that needs the name would only fail
        case ast.Assign() | ast.AugAssign():
            yield Fault("drop statement", line, path, ast.Pass())
            if isinstance(node, ast.Assign):
                yield from _parts(node, path)
        case ast.Expr(value=ast.Call()):
            yield Fault("drop statement", line, path, ast.Pass())
        case ast.Constant(value=bool(value)):
            yield Fault("flip", line, path, ast.Constant(not value))
        case ast.Constant(value=int(value)):
            yield Fault("off by one", line, path, ast.Constant(value + 1))
        case ast.Compare(ops=[ast.Lt() | ast.Gt() | ast.LtE() | ast.GtE() as op]):
            swapped = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}[type(op)]()
            yield Fault("off by one", line, path, ast.Compare(node.left, [swapped], node.comparators))
        case ast.BinOp(op=ast.Add(), right=ast.Constant(value=1)):
            yield Fault("off by one", line, path, node.left)
        case ast.Name(id=name, ctx=ast.Load()) if name in swaps:
            yield Fault("swap state", f"{name} for {swaps[name]}", path, ast.Name(swaps[name], ast.Load()))


def _parts(node: ast.Assign, path: Path) -> Iterator[Fault]:
    """Of several values assigned at once, one is left as it was."""
    if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
        for at, target in enumerate(node.targets[0].elts):
            if isinstance(target, ast.Attribute):
                kept = ast.parse(ast.unparse(target), mode="eval").body
                yield Fault("keep", ast.unparse(target), (*path, ("value", None), ("elts", at)), kept)


_SWAPS = {
    "PREPARING": "ENDING", "ENDING": "DECIDING", "DECIDING": "STARTING", "STARTING": "ABORTING", "ABORTING": "STARTING",
    "QUEUED": "ASKED", "ASKED": "QUEUED", "OVER": "QUEUED", "STOPPED": "FAILED", "FINISHING": "HALTING",
    "HALTING": "FINISHING", "RUNNING": "STARTING", "IDLE": "RUNNING", "STOPPING": "IDLE", "DONE": "IDLE",
    "Changed": "NotChanged", "TURNS": "NOT_YET",
}  # fmt: skip


def _put(tree: ast.AST, path: Path, node: ast.AST | None) -> None:
    """Puts a node in the place of another; None takes an element out of its list."""
    at: object = tree
    for name, place in path[:-1]:
        at = getattr(at, name)
        at = at if place is None else at[place]  # type: ignore[index]
    name, place = path[-1]
    if place is None:
        setattr(at, name, node)
    elif node is None:
        del getattr(at, name)[place]
    else:
        getattr(at, name)[place] = node
