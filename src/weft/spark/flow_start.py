"""From where do timed sources flow on? From how long they had flowed, and what checkpoints have planned of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.model import Deployment
from weft.spark.channels.folders import Folders, spark_name
from weft.spark.checkpoints.checkpoint import last_planned
from weft.spark.checkpoints.offsets import count_of, read_offsets
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
        for checkpoint in folders.checkpoints():
            batch = last_planned(checkpoint)
            offsets = None if batch is None else read_offsets(checkpoint, batch)
            for name in offsets.ends if offsets else ():
                count = count_of(offsets, name)
                if count and name.startswith(f"source_{spark_name(source.name)}"):
                    yield float(flow.births(count - 1, count)[0])
