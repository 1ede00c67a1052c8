"""How long have timed sources flowed? One clock for a deployment, kept in its state over all starts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.model import Deployment
from weft.spark.channels.folders import Folders, spark_name
from weft.spark.checkpoints.batch import count_of, read_offsets
from weft.spark.checkpoints.checkpoint import last_planned
from weft.spark.sources import streams as sources
from weft.spark.sources.arrivals import Flow
from weft.spark.sources.streams import read_flows, write_flows


def open_flows(deployment: Deployment, folders: Folders, factors: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Before a start: know how far sources had flowed, and at which rates they will."""
    flows = read_flows(folders.flows)
    flows["flowed_s"] = max([flows["flowed_s"], *_planned_s(deployment, folders, flows)])
    flows["factors"] = factors
    flows["launches"] = len(flows["starts"]) + 1
    write_flows(folders.flows, flows, folders.disk)


def _planned_s(deployment: Deployment, folders: Folders, flows: dict[str, Any]) -> Iterator[float]:
    """How far batches were planned into the flow before a crash: what is replayed must keep its births."""
    for source in deployment.sources:
        if source.arrivals is None or not source.facts.timed:
            continue
        flow = Flow(source.arrivals, sources.seed_of(source), [tuple(f) for f in flows["factors"].get(source.name, [])])
        for checkpoint in (folders.state / "fragments").glob("*/checkpoint-*"):
            batch = last_planned(checkpoint)
            offsets = None if batch is None else read_offsets(checkpoint, batch)
            for name in offsets.ends if offsets else ():
                count = count_of(offsets, name)
                if count and name.startswith(f"source_{spark_name(source.name)}"):
                    yield float(flow.births(count - 1, count)[0])


def let_flow(folders: Folders) -> float:
    """Timed sources begin, or go on where they stopped; how long they had flowed in earlier starts."""
    flows = read_flows(folders.flows)
    flows["starts"].append([flows["flowed_s"], time.time() * 1000])
    write_flows(folders.flows, flows, folders.disk)
    return float(flows["flowed_s"])


def flowed_s(folders: Folders) -> float | None:
    """How long sources have flowed by now, where they never stopped since the last start; None before the first."""
    flows = read_flows(folders.flows)
    if not flows["starts"]:
        return None
    flow_s, clock_ms = flows["starts"][-1]
    return float(flow_s + max(0.0, time.time() - clock_ms / 1000))


def beat(folders: Folders) -> None:
    """Note how long sources have flowed, for a later start to go on from."""
    flows = read_flows(folders.flows)
    now_s = flowed_s(folders)
    if now_s is not None:
        flows["flowed_s"] = now_s
        write_flows(folders.flows, flows, folders.disk)
