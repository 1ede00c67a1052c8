"""What does a change touch? The sites it leaves and joins, what moves, and the streams next to it."""

from __future__ import annotations

from collections.abc import Iterable

from weft.model import Deployment, dataflow
from weft.protocol.control.words import Shift


def neighbourhood(deployment: Deployment, shifts: Iterable[Shift]) -> tuple[str, ...]:
    """The names of all that some moves touch: `site NAME` for sites, and streams by their own names."""
    flow = dataflow(deployment)
    touched: dict[str, None] = {}
    for shift in shifts:
        reads = flow.node(shift.of).inputs if flow.makes(shift.of) else ()
        beside = (reader.stream for reader in flow.readers(shift.of))
        names = (f"site {shift.before}", f"site {shift.after}", shift.of, *reads, *beside)
        touched.update(dict.fromkeys(names))
    return tuple(touched)
