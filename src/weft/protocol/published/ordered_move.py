"""The ordered move as printed (Order §4.2), for the explorer to break: a stop that names no number.

"Whenever N1 measures an event delay of a directly received event, it can update its K-value and signal N3 to stop
forwarding that event type": the old site stops at once, and the hold falls at once. What was on its way to the old site
by then is lost, and what was on its way from there may come too late.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.protocol.machine import Effect, Received, Step, Steps
from weft.protocol.ordered_move.site import OrderedRow, OrderedSite
from weft.protocol.ordered_move.words import Arrived, Ended, Forwarded, StopForwarding


class OrderedSiteAsPublished(OrderedSite):
    """Stops forwarding at the signal, and lowers the hold at the first record that comes by itself."""

    __slots__ = ()

    def on_stop(self, key: str, row: OrderedRow, input: Received) -> list[Effect]:
        """The old site stops at once."""
        message: Any = input.message
        ways = row.ways[message.stream]
        ways.stop = ways.last + 1
        return self.ending(key, row, message.stream)

    def on_coming(self, key: str, row: OrderedRow, input: Arrived) -> list[Effect]:
        """The new site lowers its hold at once."""
        ways = row.ways[input.record.stream]
        if input.record.number > ways.last and input.record.time_ms > row.after_ms:
            ways.ended = True
        return [*OrderedSite.on_coming(self, key, row, input), *self.arrived_whole(row)]

    def on_ended(self, key: str, row: OrderedRow, input: Received) -> list[Effect]:
        """Nobody waits for what is still on the way."""
        message: Any = input.message
        row.ways[message.stream].ended = True
        return self.arrived_whole(row)

    def on_straggler(self, key: str, row: OrderedRow, input: Forwarded) -> list[Effect]:
        """What was forwarded comes when nobody waits for it any more."""
        ways = row.ways[input.record.stream]
        if input.record.number > ways.forwarded and not ways.first <= input.record.number <= ways.last:
            ways.forwarded = input.record.number
            self.keep(row, input.record)
        return self.release(key, row, input.at_ms)

    STEPS: ClassVar[Steps] = (
        dict(OrderedSite.STEPS)
        | {
            key: Step(do, ("coming", "here") if key[0] == "coming" else OrderedSite.STEPS[key].to)
            for key, do in (
                (("leaving", StopForwarding), on_stop),
                (("coming", Arrived), on_coming),
                (("coming", Ended), on_ended),
            )
        }
        | {
            ("here", Ended): Step(lambda machine, key, row, input: [], ("here",)),
            ("here", Forwarded): Step(on_straggler, ("here",)),
        }
    )
