"""Balancers with one fault each, made from the source of balancing, and what is to find them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tests.bodies.explorer.faulty import guarded
from tests.bodies.explorer.mutants import Faulty, Mutant, mutants
from weft.protocol.balancing import balancer, loads, memory, refusals, selection, stock

ORDER = (loads, memory, selection, stock, refusals, balancer)
"""Each may need those before it."""


def all_mutants() -> list[Mutant]:
    """Every mutant of the machine, all of its files."""
    return [mutant for module in ORDER for mutant in mutants(module)]


def faulty_balancer(mutant: Faulty) -> Any:
    """The machine, faulty in one place: the files that need the faulty one are read once more."""
    names = [module.__name__ for module in ORDER]
    sound = {name: sys.modules[name] for name in names}
    at = names.index(mutant.module)
    try:
        sys.modules[mutant.module] = mutant.load()
        for module in ORDER[at + 1 :]:
            sys.modules[module.__name__] = _again(module)
        return guarded(sys.modules[balancer.__name__].Balancer)
    finally:
        sys.modules.update(sound)


def _again(module: ModuleType) -> ModuleType:
    assert module.__file__ is not None
    made = ModuleType(module.__name__)
    with open(module.__file__, encoding="utf-8") as file:
        exec(compile(file.read(), module.__file__, "exec"), made.__dict__)
    return made
