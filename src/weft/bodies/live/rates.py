"""How did sources flow in earlier runs of a state? Their rates, kept beside it over all its starts.

Nothing rests on it but forecasts: a power cut may take the last minute, and what cannot be read begins anew. How it
stays bounded is said in `plan/observing/history.py`.
"""

from __future__ import annotations

import time

import msgspec

from weft.bodies.live.state import State
from weft.model import Observed
from weft.plan.observing.history import History, Span, added

FILE = "rates.json"
KEEP_EVERY_S = 60.0


class SourceRates:
    """The history of a state's source rates."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.history: History = ()
        self._due_s = 0.0
        self._new = False

    def take_up(self) -> None:
        """Go on with what earlier runs kept."""
        self.history = kept_rates(self.state)

    def take(self, observed: Observed) -> None:
        """A period was measured; what of it is not known is left out."""
        rates = {name: one.rate_per_s for name, one in observed.sources.items() if one.rate_per_s is not None}
        if rates and observed.period_s > 0:
            now_s = time.time()
            span = Span(round(now_s - observed.period_s, 3), round(now_s, 3), observed.period_s, rates)
            self.history = added(self.history, span)
            self._new = True

    def keep(self, finally_: bool = False) -> None:
        """Write it down, once a minute and at the end."""
        if self._new and (finally_ or time.monotonic() >= self._due_s):
            self._due_s = time.monotonic() + KEEP_EVERY_S
            self._new = False
            self.state.note(FILE, msgspec.to_builtins(self.history))


def kept_rates(state: State) -> History:
    """The rates that earlier runs of a state kept; none where they cannot be read."""
    try:
        return msgspec.convert(state.noted(FILE) or [], History)
    except (ValueError, msgspec.ValidationError):
        return ()
