"""What does a change touch? The sites it leaves and joins, what moves, and the streams next to it."""

from __future__ import annotations

from collections.abc import Iterable

from weft.model import Deployment, dataflow
from weft.protocol.control.words import Shift


def neighbourhood(deployment: Deployment, shifts: Iterable[Shift]) -> tuple[str, ...]:
    """The names of all that some moves touch: `site NAME` for sites, and streams by their own names."""
    reads = {node.stream: node.inputs for node in dataflow(deployment).nodes}
    touched: dict[str, None] = {}
    for shift in shifts:
        beside = (reader for reader, streams in reads.items() if shift.of in streams)
        names = (f"site {shift.before}", f"site {shift.after}", shift.of, *reads.get(shift.of, ()), *beside)
        touched.update(dict.fromkeys(names))
    return tuple(touched)
