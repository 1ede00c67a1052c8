"""What is run first, and what has no room in the budget?"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.long.ledger import Ledger, split

UNKNOWN_S = 60.0  # what a test is taken to need that has never ended
LARGE = 0.2  # of the budget: what takes longer begins early, or it would be cut off


@dataclass
class Order:
    """Units in the order in which they begin, and those that do not, with the reason."""

    units: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


def ordered(units: list[str], ledger: Ledger, budget_s: float, processes: int, again: bool = False) -> Order:
    """What failed, then one seed of every test, then a second of each, and so on, until the budget is full.

    What passed on this code is left out unless asked for, and what needs more than the whole budget is left out too.
    """
    order = Order()
    waiting: dict[str, list[str]] = {}
    first: list[str] = []
    for unit in units:
        test, _ = split(unit)
        needs_s = max(ledger.seconds.get(test, 0.0), ledger.at_least_s.get(test, 0.0))
        if not again and ledger.passed(unit):
            order.left[unit] = "passed on this code before"
        elif needs_s >= budget_s:
            order.left[unit] = f"needs more than {needs_s / 60:.0f} minutes"
        elif unit in ledger.failed:
            first.append(unit)
        else:
            waiting.setdefault(test, []).append(unit)
    most = max(map(len, waiting.values()), default=0)
    rounds = [[held[at] for held in waiting.values() if at < len(held)] for at in range(most)]
    room_s = budget_s * processes
    for unit in [*first, *(unit for one in rounds for unit in one)]:
        # One more than fits: an estimate may be too high.
        if room_s > 0:
            order.units.append(unit)
        else:
            order.left[unit] = "no room in this budget"
        room_s -= _needs_s(unit, ledger)
    behind = order.units[len(first) :] if len(first) < len(order.units) else []
    large = [unit for unit in behind if _needs_s(unit, ledger) > LARGE * budget_s]
    large.sort(key=lambda unit: -_needs_s(unit, ledger))
    order.units = [*order.units[: len(first)], *large, *(unit for unit in behind if unit not in set(large))]
    return order


def _needs_s(unit: str, ledger: Ledger) -> float:
    test, _ = split(unit)
    return max(ledger.seconds.get(test, UNKNOWN_S), ledger.at_least_s.get(test, 0.0))
