"""What do batches tell of their costs? Fixed costs, and how batches under way at once slow each other down.

A batch takes the fixed cost of its kind times the slowing by all that were under way meanwhile (`BatchCosts.slower`).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from weft.plan.judging.batch_costs import REST, BatchCosts, Crowding

CROWDS = tuple(step / 50 for step in range(151))  # 0 to 3
ROOM_STEPS = 4  # how finely it is tried for how many batches there is room
AT_ONCE_RANGE_MIN = 1.0
FACTOR_MIN, FACTOR_MAX = 0.1, 20.0
ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a fragment: when it began and ended (ms of any clock), and how many records it took.

    `after_ms` is the part of it after its results were committed.
    """

    fragment: str
    began_ms: float
    ended_ms: float
    records: float
    after_ms: float = 0.0

    @property
    def took_ms(self) -> float:
        """Its duration."""
        return self.ended_ms - self.began_ms


def under_way(batches: Sequence[Batch]) -> list[float]:
    """How many batches were under way on the mean while each one was, itself included."""
    moments = sorted([(one.began_ms, 1) for one in batches] + [(one.ended_ms, -1) for one in batches])
    ends, areas, counts, area, count, then = [], [], [], 0.0, 0, 0.0
    for moment, step in moments:
        area += count * (moment - then)
        count, then = count + step, moment
        ends.append(moment)
        areas.append(area)
        counts.append(count)

    def up_to(moment: float) -> float:
        at = bisect.bisect_right(ends, moment) - 1
        return areas[at] + counts[at] * (moment - ends[at])

    return [(up_to(one.ended_ms) - up_to(one.began_ms)) / max(1e-9, one.took_ms) for one in batches]


def fitted(
    batches: Sequence[Batch], at_once: Sequence[float], unless: Crowding, cores: int = 1
) -> tuple[Crowding, dict[str, float], float]:
    """The crowding that explains batches best, the fixed cost of each fragment in ms, and the relative spread.

    `at_once` says how many batches were under way during each. Where that hardly differs it does not tell what others
    cost: then it is `unless`. There is room for one batch at least, and for no more than there are cores.
    """
    ranked = sorted(at_once)
    tenth = len(ranked) // 10
    tells = ranked[-1 - tenth] - ranked[tenth] >= AT_ONCE_RANGE_MIN
    rooms = sorted({1.0 + (cores - 1) * step / ROOM_STEPS for step in range(ROOM_STEPS + 1)})
    possible = [Crowding(crowd, room) for crowd in CROWDS for room in rooms]
    best = min(possible, key=lambda one: _misfit(batches, at_once, one)) if tells else unless
    fixed = _fixed(batches, at_once, best)
    errors = [
        one.took_ms / best.slower(count) / fixed[one.fragment] - 1.0
        for one, count in zip(batches, at_once, strict=True)
    ]
    # The middle half of the errors, as a deviation: one hiccup is no spread.
    errors.sort()
    quarter = len(errors) // 4
    spread = (errors[-1 - quarter] - errors[quarter]) / 1.35 if len(errors) >= 4 else 0.0
    return best, fixed, spread


def _fixed(batches: Sequence[Batch], at_once: Sequence[float], crowding: Crowding) -> dict[str, float]:
    alone: dict[str, list[float]] = {}
    for one, count in zip(batches, at_once, strict=True):
        alone.setdefault(one.fragment, []).append(one.took_ms / crowding.slower(count))
    return {name: median(values) for name, values in alone.items()}


def _misfit(batches: Sequence[Batch], at_once: Sequence[float], crowding: Crowding) -> float:
    fixed = _fixed(batches, at_once, crowding)
    return sum(
        abs(math.log(max(1.0, one.took_ms)) - math.log(max(1.0, fixed[one.fragment] * crowding.slower(count))))
        for one, count in zip(batches, at_once, strict=True)
    )


def corrected(
    costs: BatchCosts, measured_ms: Mapping[str, float], projected: Callable[[BatchCosts], Mapping[str, float]]
) -> BatchCosts:
    """The costs under which the model gives the durations that fragments' batches were measured to have.

    `projected` says what the model gives under some costs. Fragments that were not measured are corrected by the
    median of the others.
    """
    factors: dict[str, float] = {}
    for _ in range(ROUNDS):
        given = projected(replace(costs, factors=factors))
        known = [name for name in measured_ms if given.get(name)]
        for name in known:
            factor = factors.get(name, 1.0) * measured_ms[name] / given[name]
            factors[name] = min(FACTOR_MAX, max(FACTOR_MIN, factor))
        if not known:
            return costs
        factors = {**factors, REST: median(factors[name] for name in known)}
    return replace(costs, factors=factors)
