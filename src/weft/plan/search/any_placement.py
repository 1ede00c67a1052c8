"""Is there a placement that keeps pins, links and the tree rule?"""

from __future__ import annotations

from weft.model import Placement
from weft.plan.errors import NoPlacement
from weft.plan.search.nearest import nearest
from weft.plan.search.problem import Problem


def some(given: Problem) -> Placement:
    """Any placement that keeps the rules: the nearest, or where that finds none, one found by trying all."""
    try:
        return nearest(given.deployment)
    except NoPlacement:
        from weft.plan.search.narrowing import any_homes

        homes = any_homes(given)
        if homes is None:
            raise
        return given.placement(homes, "the only way found to keep links and the tree rule")
