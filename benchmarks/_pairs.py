"""Is the order of two placements right? Two drawn placements of one drawn deployment, projected and run, by median.

What a placement comes to is the mean of its queries' medians, after the start. A pair counts where the two differ by
more than a share when they are run; it is right where a projection puts them in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

Runs = dict[str, Any]
SITE = "        site: "  # of an operator, as `drawn` writes it
OPERATORS_MIN = 3


def pair(seed: int, drawn: Callable[[int], str]) -> tuple[str, str]:
    """Two texts of a deployment that differ in the sites of its operators: one query of several, at two or more sites.

    Of several queries side by side most placements come to the same: they share the cores, wherever they are.
    """
    rng = Random(seed)
    for at in count():
        text = drawn(1000 * seed + at)
        sites = [f"s{number}" for number in range(3) if f"name: s{number}" in text]
        if len(sites) < 2 or text.count(SITE) < OPERATORS_MIN or text.count("    sink: ") > 1:
            continue
        one, other = _placed(text, sites, rng), _placed(text, sites, rng)
        if one != other:
            return one, other
    raise AssertionError("counting does not end")


def _placed(text: str, sites: list[str], rng: Random) -> str:
    lines = text.splitlines()
    return "\n".join(SITE + rng.choice(sites) if line.startswith(SITE) else line for line in lines) + "\n"


def median_ms(run: Runs, by: str) -> float | None:
    """The mean of the queries' medians, projected or measured; None where one is not known."""
    medians = [(one[by] or {}).get("p50") for one in run.get("queries", {}).values()]
    return None if not medians or None in medians else sum(medians) / len(medians)


def judged(runs: list[tuple[Runs, Runs]], differ: float) -> Runs:
    """How many pairs differ by more than a share as measured, and of these how many each projection puts in order."""
    pairs = []
    for one, other in runs:
        told = {by: (median_ms(one, by), median_ms(other, by)) for by in ("plan", "twin", "measured")}
        pairs.append({by: None if None in both else list(both) for by, both in told.items()})
    apart = [one for one in pairs if one["measured"] and _differ(one["measured"]) > differ]
    right = {
        by: sum(bool(one[by]) and _first(one[by]) == _first(one["measured"]) for one in apart)
        for by in ("plan", "twin")
    }
    return {"pairs": pairs, "apart": len(apart), "right": right}


def _differ(both: list[float]) -> float:
    return max(both) / min(both) - 1.0 if min(both) > 0 else 0.0


def _first(both: list[float]) -> bool:
    return both[0] < both[1]
