"""What can be asked of a run? What cannot is refused before anything is laid out, in words that say why."""

from __future__ import annotations

import math

from weft.bodies.twin.records import Scaling, TimedWish
from weft.bodies.twin.setup.options import DISCIPLINES, Discipline
from weft.model import Deployment, Placement, dataflow
from weft.model.wishes import AddQuery

NS_PER_S = 1_000_000_000
SECONDS_MAX = 3_000_000.0


class CannotRun(ValueError):
    """What is asked cannot be simulated; the text says why."""


def check_times(seconds: float, warmup_s: float) -> None:
    """A run lasts a nanosecond at least, and longer than its warm-up."""
    whole = math.isfinite(seconds) and 1 <= seconds * NS_PER_S <= SECONDS_MAX * NS_PER_S
    if not whole or not 0 <= warmup_s < seconds:
        raise CannotRun(f"seconds must lie above the warm-up and at most {SECONDS_MAX:g}, found {seconds:g}")


def check_options(discipline: str | Discipline, latency: str) -> None:
    """Names must be known."""
    if isinstance(discipline, str) and discipline not in DISCIPLINES:
        raise CannotRun(f"discipline is one of {', '.join(DISCIPLINES)}, found {discipline}")
    if latency not in ("emitted", "contributing"):
        raise CannotRun(f"latency is emitted or contributing, found {latency}")


def check_placement(deployment: Deployment, placement: Placement) -> None:
    """Every operator must be somewhere, as one instance: what is to run beside it comes by a change."""
    shared = next((stream for stream, further in placement.instances.items() if further), None)
    if shared is not None:
        raise CannotRun(f"a run begins with one instance of {shared}: ask for more with `instances`")
    sites = {site.name for site in deployment.sites}
    for node in dataflow(deployment).nodes:
        if placement.homes.get(node.stream) not in sites:
            raise CannotRun(f"the placement puts {node.stream} nowhere, or on no site there is")


def check_asked(
    deployment: Deployment, instances: tuple[Scaling, ...], wishes: tuple[TimedWish, ...], on_spark: bool
) -> None:
    """Wishes are about sites as the file has them, and queries that come must be known when the run is laid out."""
    check_instances(deployment, instances)
    if wishes and on_spark:
        raise CannotRun("wishes: for the ideal model alone; the scenario can move operators in both")
    if any(isinstance(wish, AddQuery) for _, wish in wishes):
        raise CannotRun("wishes: queries come by `add` in the scenario")


def check_instances(deployment: Deployment, instances: tuple[Scaling, ...]) -> None:
    """An operator with instances must exist, and what reads it must not hold it back: which one would be held?"""
    sites, flow = {site.name for site in deployment.sites}, dataflow(deployment)
    for _, verb, target, site in instances:
        if not flow.makes(target):
            raise CannotRun(f"instances: there is no operator {target}")
        if site not in sites or verb not in ("start", "stop"):
            raise CannotRun(f"instances: {verb} at {site}: start or stop at a site of the deployment")
        queues = [node.operator.queue for node in flow.readers(target)]
        if any(queue is not None and queue.when_full == "block" for queue in queues):
            raise CannotRun(f"instances of {target}: the queue of what reads it blocks")
