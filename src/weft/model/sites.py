"""Where things run: sites, the links between them, and the paths streams take."""

from __future__ import annotations

from dataclasses import dataclass

from weft.model.running import Spark


@dataclass(frozen=True, slots=True)
class Batch:
    """Micro-batches: at most one an interval, each at a fixed cost besides that of its records."""

    interval_ms: float = 0.0
    fixed_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Site:
    """A place with capacity; `capacity` 2.0 halves the time a record takes."""

    name: str
    capacity: float = 1.0
    quota: float = 1.0
    memory_mb: float | None = None
    parent: str | None = None
    failure_probability: float = 0.0
    batch: Batch | None = None
    spark: Spark = Spark()
    address: str | None = None
    cap: bool = False


def where(address: str) -> tuple[str, int]:
    """The host and the port of an address, as `host:port`."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


@dataclass(frozen=True, slots=True)
class Link:
    """A way between two sites, both ways unless `oneway`."""

    from_: str
    to: str
    delay_ms: float = 0.0
    bandwidth_kbps: float | None = None
    oneway: bool = False
    emulate: bool = False
