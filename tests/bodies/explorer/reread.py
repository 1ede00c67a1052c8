"""A machine that is faulty in one of its files: those that need the faulty one are read once more."""

from __future__ import annotations

import sys
from types import ModuleType

from tests.bodies.explorer.mutants import Faulty


def reread(fault: Faulty, order: tuple[ModuleType, ...]) -> dict[str, ModuleType]:
    """All files of a machine by the last part of their names, one of them faulty; each may need those before it."""
    names = [module.__name__ for module in order]
    sound = {name: sys.modules[name] for name in names}
    at = names.index(fault.module)
    try:
        sys.modules[fault.module] = fault.load()
        for module in order[at + 1 :]:
            sys.modules[module.__name__] = _again(module)
        return {name.rpartition(".")[2]: sys.modules[name] for name in names}
    finally:
        sys.modules.update(sound)


def _again(module: ModuleType) -> ModuleType:
    assert module.__file__ is not None
    made = ModuleType(module.__name__)
    with open(module.__file__, encoding="utf-8") as file:
        exec(compile(file.read(), module.__file__, "exec"), made.__dict__)
    return made
