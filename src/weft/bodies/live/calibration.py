"""What do micro-batches cost on this machine? One file in the user's cache, which `weft calibrate` writes."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from weft.bodies.live.last_run import last_batches
from weft.model import Deployment, Placement
from weft.plan.changing.fragments import Fragment
from weft.plan.judging.batch_costs import SHIPPED, BatchCosts, costs_from_json
from weft.plan.judging.batch_projection import on_spark
from weft.plan.observing.batches import corrected
from weft.spark.storage.cache import user_cache

FILE = "calibration.json"


def calibration_file() -> Path:
    """Where the calibration of this machine lies, or would."""
    return user_cache() / FILE


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def known_costs() -> tuple[BatchCosts, str]:
    """What batches cost here, and where that is known from; what is shipped where nothing was measured here."""
    file = calibration_file()
    try:
        found = costs_from_json(file.read_bytes())
    except OSError:
        return SHIPPED, f"as shipped, measured on {SHIPPED.setting}; `weft calibrate` measures this machine"
    except ValueError:
        return SHIPPED, f"as shipped: {file} cannot be read; `weft calibrate` writes it anew"
    if found.cores != cores():
        return (
            SHIPPED,
            f"as shipped: {file} is of a machine with {found.cores} cores; `weft calibrate` measures this one",
        )
    return found, f"measured here on {found.measured_at} ({file})"


def corrected_by_last_run(
    deployment: Deployment, folder: Path, placement: Placement, fragments: tuple[Fragment, ...], costs: BatchCosts
) -> tuple[BatchCosts, str]:
    """Costs corrected by the durations of batches that the last run measured in a state, and a word on that."""
    measured = last_batches(folder)
    streams = {f"{query.name}.{one.name}" for query in deployment.queries for one in query.operators}
    if not measured or set(placement.homes) != streams:
        return costs, ""
    found = corrected(costs, measured, lambda one: on_spark(deployment, placement, one, fragments).simulated.batch_ms)
    return found, ", corrected by the batches of the last run"


def keep(costs: BatchCosts) -> Path:
    """Write what was measured where it is looked for; where that is."""
    file = calibration_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(".new")
    aside.write_bytes(msgspec.json.format(msgspec.json.encode(costs)))
    os.replace(aside, file)
    return file
