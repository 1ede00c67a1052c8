"""What a user should know before believing the numbers."""

from __future__ import annotations

from weft.bodies.twin.loop import columns as c
from weft.bodies.twin.plane import Plane
from weft.model import Deployment, Placement
from weft.plan.dataflow.rates import Rates


def before_warnings(deployment: Deployment, placement: Placement, rates: Rates) -> list[str]:
    """What can be told from the deployment alone: assumptions, silent sources, sites asked for more than they have."""
    warnings = list(rates.warnings)
    load: dict[str, float] = {site.name: 0.0 for site in deployment.sites}
    for stream, load_ms in rates.load_ms.items():
        load[placement.home(stream)] += load_ms / 1000.0
    for site in deployment.sites:
        asked = load[site.name]
        if site.capacity <= 0 and any(True for _ in placement.on(site.name)):
            warnings.append(f"site {site.name} has no capacity: nothing is ever served there")
        elif asked > site.capacity:
            warnings.append(
                f"site {site.name} is overloaded: {asked:.3g} of work per second asked, {site.capacity:.3g} available; "
                "queues grow as long as this lasts"
            )
        elif asked > site.capacity * site.quota:
            warnings.append(f"site {site.name} is above its quota: utilisation {asked / site.capacity:.3g} expected")
    if not deployment.queries:
        warnings.append("there is no query: sources flow to nowhere")
    return warnings


def overflow_warning(plane: Plane, records_max: int) -> str:
    """Why a run ended before its time."""
    waiting = {name: plane.get(s, c.WAITING) for name, s in plane.layout.sites.items()}
    worst = max(waiting, key=lambda name: waiting[name])
    return (
        f"stopped at {plane.now_ns / 1e9:.6g} s: more than {records_max} records in flight, {waiting[worst]} of them "
        f"wait at site {worst}; results up to here"
    )
