"""How many instances: each decides alone from its own load (Decentral §3.3.1, corrected), or someone decides for all.

Corrections: nothing is rounded before chance decides, so a share p of a copy is made with probability p; and the
probability to end is 1 - load/(r·C), where the printed one is never above 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class ScaleRule:
    """The utilisation aimed at and the bounds that trigger; safe: aim lower where chance could leave too few."""

    target: float = 0.7
    high: float = 0.8
    low: float = 0.6
    safe: bool = False

    def target_for(self, utilisation: float) -> float:
        """The target, or what whole copies would give where that is lower (Decentral §3.3.3)."""
        if not self.safe or utilisation <= 0:
            return self.target
        return min(self.target, utilisation / (max(0, ceil(utilisation - 1)) + 1))


def copies(
    rule: ScaleRule,
    load: float,
    capacity: float,
    chance: float,
    keeper: bool = False,
    new_capacity: float | None = None,
) -> int:
    """How many copies an instance makes of itself now; -1 where it ends instead.

    `chance` is drawn evenly from 0 to 1. Instances may differ in capacity, where each gets load in proportion to it:
    the wanted capacity is counted in instances of `new_capacity`, its own where that is not given.
    """
    if capacity <= 0:
        # One that cannot work makes room for its load elsewhere.
        whole, rest = divmod(load / (rule.target * new_capacity) if new_capacity else 0.0, 1)
        return int(whole) + (chance < rest)
    utilisation = load / capacity
    if utilisation >= rule.high:
        # Decentral Alg. 3, 4: whole copies, one more by chance.
        share = utilisation / rule.target_for(utilisation) - 1
        whole, rest = divmod(share * capacity / (new_capacity or capacity), 1)
        return int(whole) + (chance < rest)
    if utilisation <= rule.low and not keeper and chance < 1 - utilisation / rule.target:
        return -1
    return 0


def leader_copies(rule: ScaleRule, load: float, capacity: float, instances: int) -> int:
    """What a leader of one operator, which knows all of its instances, would add, or take away where negative."""
    utilisation = load / (capacity * instances)
    if rule.low < utilisation < rule.high:
        return 0
    return max(1, ceil(load / (rule.target * capacity))) - instances


def ds2_instances(
    downstream: Mapping[str, tuple[str, ...]],
    source_rates: Mapping[str, float],
    true_rates: Mapping[str, float],
    selectivities: Mapping[str, float],
    target: float = 1.0,
) -> dict[str, int]:
    """Instances of every operator at once by DS2's rule (Kalavri et al. 2018): the rate that would arrive if nothing
    upstream held it back, over the rate one instance could work off if it never waited.

    `downstream` gives the operators in an order in which records pass them; `source_rates` what enters from outside.
    """
    rates = {operator: source_rates.get(operator, 0.0) for operator in downstream}
    for operator, onward in downstream.items():
        for other in onward:
            rates[other] += rates[operator] * selectivities.get(operator, 1.0)
    return {name: max(1, ceil(rate / (target * true_rates[name]) - 1e-9)) for name, rate in rates.items()}
