"""How long have timed sources flowed? One clock for a deployment, kept in its state over all starts."""

from __future__ import annotations

import time

from weft.spark.channels.folders import Folders
from weft.spark.sources.streams import read_flows, write_flows


def let_flow(folders: Folders) -> float:
    """Timed sources begin, or go on where they stopped; how long they had flowed in earlier starts."""
    flows = read_flows(folders.flows)
    flows["starts"].append([flows["flowed_s"], time.time() * 1000])
    write_flows(folders.flows, flows, folders.disk)
    return float(flows["flowed_s"])


def beat(folders: Folders) -> None:
    """Note how long sources have flowed, for a later start to go on from."""
    flows = read_flows(folders.flows)
    if flows["starts"]:
        flow_s, clock_ms = flows["starts"][-1]
        flows["flowed_s"] = flow_s + max(0.0, time.time() - clock_ms / 1000)
        write_flows(folders.flows, flows, folders.disk)
