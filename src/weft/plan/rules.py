"""Does a placement keep pins, links and the tree rule, and is there one that does?"""

from __future__ import annotations

from random import Random

import numpy as np

from weft.model import Placement
from weft.plan.errors import NoPlacement
from weft.plan.flat import Problem
from weft.plan.near import near
from weft.plan.stop import after_steps
from weft.plan.ways import Ints


def keeps(given: Problem, homes: Ints) -> bool:
    """Whether homes keep pins, links and the tree rule."""
    flat, m = given.flat, len(given.operators)
    if (homes < 0).any() or not flat.choices[np.arange(m), homes].all():
        return False
    if flat.free:
        return True
    whole = np.concatenate([homes, flat.home[m:]])
    starts = np.repeat(np.arange(len(flat.home)), np.diff(flat.out_at))
    return bool(flat.allowed[whole[starts], whole[flat.out_to]].all())


def some(given: Problem) -> Placement:
    """Any placement that keeps the rules: `near`'s, or where that finds none, one found by trying all."""
    try:
        return near(given.deployment, None, Random(0), after_steps(1))
    except NoPlacement:
        from weft.plan.settle import any_homes

        homes = any_homes(given)
        if homes is None:
            raise
        return given.placement(homes, "the only way found to keep links and the tree rule")
