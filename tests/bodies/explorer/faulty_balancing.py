"""Balancers with one fault each, made from the source of balancing, and what is to find them."""

from __future__ import annotations

from typing import Any

from tests.bodies.explorer.faulty import guarded
from tests.bodies.explorer.mutants import Faulty, Mutant, mutants
from tests.bodies.explorer.reread import reread
from weft.protocol.balancing import balancer, loads, memory, refusals, selection, stock

ORDER = (loads, memory, selection, stock, refusals, balancer)
"""Each may need those before it."""


def all_mutants() -> list[Mutant]:
    """Every mutant of the machine, all of its files."""
    return [mutant for module in ORDER for mutant in mutants(module)]


def faulty_balancer(mutant: Faulty) -> Any:
    """The machine, faulty in one place."""
    return guarded(reread(mutant, ORDER)["balancer"].Balancer)
