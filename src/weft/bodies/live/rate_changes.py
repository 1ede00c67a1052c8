"""What does the scenario say of sources' rates?"""

from __future__ import annotations

from weft.model import Deployment


def factors_of(deployment: Deployment) -> dict[str, list[tuple[float, float]]]:
    """When the scenario has sources flow at another rate, and by which factor, by source."""
    factors: dict[str, list[tuple[float, float]]] = {}
    for happening in deployment.scenario:
        for source, factor in getattr(happening, "rate", {}).items():
            factors.setdefault(source, []).append((happening.at_s, factor))
    return factors
