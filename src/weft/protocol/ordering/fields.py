"""Where does the ordering machine keep what? Flat arrays with named places, so that compiled code can reach them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.model import Order

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Flags = NDArray[np.int8]
# Times are whole (ticks) or real, as the stream's own column is; compiled code is made for both.
Times = NDArray[Any]

# Whole numbers.
TAKEN, HELD, LATE, CLOCKED, RELEASED_ANY, STARTED, ADVANCES, AHEAD, AHEAD_SINCE, FAR, MEASURED, KNOWN, AT = range(13)
TOLD_AT = 13
INTS = 14
# Real numbers.
HOLD, SIGMA, STRIDE, TOLD, HEARD, BUDGET, BURST, WORST = range(8)
FLOATS = 8
# Times.
CLOCK, RELEASED, TOLD_UNTIL = range(3)
TIMES = 3

NEWS = -1
"""In place of when a hold was told: just now."""

IN_PLACE, TOO_LATE, REVISION = 0, 1, 2
"""How a record leaves: in order, flagged, or late only because others left ahead of the hold."""

FIRST = 48
"""So many records are looked at before the first is released: a start without a stumble."""
LATE_FIRST, FIRST_MAX = 32, 256
"""With `late_max`, also so many late ones, if they come among the first so many: what is late tells how late."""
AHEAD_MAX = 16
"""So many records decide whether a leap of the clock is believed."""
AHEAD_MIN = 3
"""Fewer than so many are never believed."""
LEAP = 1024.0
"""A record that is so many usual strides, and 8 holds, ahead of the clock is not believed at once."""
KNOWN_ADVANCES = 8
"""The stream's stride is known after so many advances of its clock; until then every time is believed."""
STRIDE_OVER = 64
"""Advances of the clock that the usual stride is taken over."""
FAR_STRIDES = 8 * LEAP
"""A delay of so many strides teaches only when it recurs."""
RECURS = 16
"""So often."""


class Unit(Protocol):
    """The memory of an ordering unit, as the steps over it see it."""

    order: Order
    ints: Ints
    floats: Floats
    marks: Times
    ring: Floats
    ranked: Floats
    held_t: Times
    held_n: Ints
    ahead_t: Times
    ahead_n: Ints
