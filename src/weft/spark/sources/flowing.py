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
