"""What does a desk do for delays that are fed back? It tells each site who else runs something of its queries.

What is told holds until something else is told, and is said again every few seconds: so a word that is lost, or a site
that comes back, needs no answer.
"""

from __future__ import annotations

import time

from weft.bodies.live.changes import Changes
from weft.bodies.live.reports import Reports
from weft.protocol.feedback import DelayPart, DelayParts, parts_of

AGAIN_S = 5.0


class DeskFeedback:
    """Which queries each site takes part in, by the plan in force."""

    def __init__(self, changes: Changes, reports: Reports) -> None:
        self._changes, self._reports = changes, reports
        self._told: dict[str, tuple[DelayPart, ...]] = {}
        self._due_s = 0.0

    def look(self) -> None:
        """Tell sites what has changed for them, and now and then all of them everything."""
        plan, now_s = self._changes.in_force, time.monotonic()
        again = now_s >= self._due_s
        if again:
            self._due_s = now_s + AGAIN_S
        parts = parts_of(plan.deployment, plan.placement.homes)
        for site, told in parts.items():
            if again or told != self._told.get(site):
                self._reports.tell(site, DelayParts(told))
        self._told = parts
