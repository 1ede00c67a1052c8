"""What is a controller fed from one observation to the next? The same in every body that carries one.

`measured` gives what to tell it when a period has been measured, `considered` what to tell it when it lets rules look;
`wished` is what to tell it of a wish that rests on no observation, `over` of a change that is over. `told` keeps what
it says, as people and programs are shown it; `granted` is the wish of a rule that it asks for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from weft.model import Deployment, Observed, Placement
from weft.model.wishes import MoveTo, Wish
from weft.protocol.control.decisions import ASKED, Decisions, moves_of
from weft.protocol.control.neighbourhood import neighbourhood, shifts_of, with_wished
from weft.protocol.control.rules import Desire, desires, due_rules
from weft.protocol.control.words import (
    RANKS,
    Advise,
    AskFor,
    ChangeFailed,
    ChangeMade,
    Considered,
    Decline,
    Noticed,
    Observation,
    Shift,
    Wished,
)
from weft.protocol.words import Effect, Input

LOOKS_MAX = 1_000
PAST_MAX = 60
KNOWN_MAX = 64


class Rounds:
    """Numbers observations and wishes, notices changes of the placement, and remembers what was advised when."""

    def __init__(self, deployment: Deployment, running: Placement) -> None:
        self._deployment = deployment
        self._running = running
        self._observed: Observed | None = None
        self._observations = count(1)
        self._wishes = count(1)
        self._past: deque[Observed] = deque(maxlen=PAST_MAX)
        self._looked_s: dict[str, float] = {}
        self._desires: dict[int, Desire] = {}
        self._known: dict[int, Desire] = {}
        self.decisions = Decisions()
        self._looks: deque[dict[str, Any]] = deque(maxlen=LOOKS_MAX)

    def know(self, deployment: Deployment) -> None:
        """Queries have come or gone."""
        self._deployment = deployment

    def measured(self, observed: Observed, running: Placement) -> list[Input]:
        """What the controller is told of a period: changes by other doors, then what was measured."""
        inputs: list[Input] = []
        shifts = _shifts(self._running, running)
        if shifts:
            inputs.append(Noticed(next(self._wishes), shifts, neighbourhood(self._deployment, shifts)))
        self._running, self._observed = running, observed
        if observed.complete:
            self._past.append(replace(observed, homes=running.homes))
        self._desires = {}
        self._note(observed)
        return [*inputs, Observation(next(self._observations), observed.complete, observed.missing)]

    def considered(self, number: int) -> list[Input]:
        """What rules wish on the last observation, which the controller bears in mind as `number`."""
        return self.wishes(number, self.desires())

    def desires(self) -> list[Desire]:
        """What rules wish on the last observation; the only thing here that may take its time."""
        assert self._observed is not None, "rules look at what was observed"
        due = due_rules(self._deployment, self._looked_s, self._observed.at_s)
        self._looked_s |= dict.fromkeys(due, self._observed.at_s)
        return desires(self._deployment, tuple(self._past), self._running, due)

    def wishes(self, number: int, found: list[Desire]) -> list[Input]:
        """What the controller is told of what rules wish on an observation."""
        inputs: list[Input] = []
        for desire in found:
            wish = next(self._wishes)
            if not desire.shifts:
                self.decisions.add(wish, self._at_s(), desire, "declined", desire.reason)
                continue
            self._desires[wish] = self._known[wish] = desire
            touches = neighbourhood(self._deployment, desire.shifts)
            inputs.append(Wished(wish, desire.who, desire.shifts, touches, desire.reason, number))
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        return [*inputs, Considered(number)]

    def granted(self, number: int) -> MoveTo | None:
        """What is to be carried out of what rules wish; None where the number is of another wish."""
        desire = self._known.get(number)
        if desire is None:
            return None
        return MoveTo({shift.of: shift.after for shift in desire.shifts}, desire.reason, desire.by)

    def wished(self, wish: Wish, running: Placement) -> Wished:
        """A wish that is told at once; its number is the controller's own."""
        shifts = shifts_of(wish, running)
        touches = neighbourhood(with_wished(self._deployment, wish), shifts)
        return Wished(next(self._wishes), RANKS.get(wish.by, wish.by), shifts, touches, wish.reason)

    def agreed(
        self, number: int | None, wish: Wish, shifts: tuple[Shift, ...], at_s: float, numbers: Mapping[str, Any],
        state: str, why: str = "",
    ) -> None:  # fmt: skip
        """What sites have agreed upon by measurements of their own stands in the log like what a rule wishes."""
        desire = Desire(RANKS.get(wish.by, wish.by), shifts, wish.reason, wish.by, numbers)
        self.decisions.add(next(self._wishes) if number is None else number, at_s, desire, state, why)

    def over(self, number: int, why_not: str | None, running: Placement) -> Input:
        """What was asked for is in force, or did not come about; it need not be noticed then."""
        self.decisions.over(number, why_not)
        if why_not is not None:
            return ChangeFailed(number, why_not)
        self._running = running
        return ChangeMade(number)

    def told(self, effect: Effect) -> None:
        """What the controller says of a wish."""
        if isinstance(effect, AskFor) and effect.number in self._known:
            self.decisions.add(effect.number, self._at_s(), self._known[effect.number], ASKED)
        elif isinstance(effect, Advise) and effect.number in self._desires:
            self._add("advised", {"reason": effect.reason}, self._desires[effect.number])
            self.decisions.add(effect.number, self._at_s(), self._desires[effect.number], "advised")
        elif isinstance(effect, Decline) and effect.number in self._desires:
            self._add("declined", {"why": effect.why}, self._desires[effect.number])
            self.decisions.add(effect.number, self._at_s(), self._desires[effect.number], "declined", effect.why)

    def _at_s(self) -> float:
        return 0.0 if self._observed is None else self._observed.at_s

    def latest(self) -> dict[str, Any] | None:
        """What came of the last observation, and since when it has been the same; None before the first."""
        return self._looks[-1] if self._looks else None

    def history(self) -> list[dict[str, Any]]:
        """What came of all observations, equal ones joined."""
        self._join()
        return list(self._looks)

    def _note(self, observed: Observed) -> None:
        self._join()
        at_s = round(observed.at_s, 3)
        missing = list(observed.missing)
        self._looks.append({"at_s": at_s, "until_s": at_s, "missing": missing, "advised": [], "declined": []})

    def _join(self) -> None:
        """The last look becomes part of the one before, where both say the same."""
        if len(self._looks) > 1 and _says(self._looks[-1]) == _says(self._looks[-2]):
            last = self._looks.pop()
            self._looks[-1] = {**last, "at_s": self._looks[-1]["at_s"]}

    def _add(self, which: str, said: dict[str, str], desire: Desire) -> None:
        last = self._looks[-1]
        self._looks[-1] = {**last, which: [*last[which], {"who": desire.who, "moves": moves_of(desire), **said}]}


def _says(look: dict[str, Any]) -> tuple[Any, ...]:
    """What tells two looks apart: what was missing, and what would move; not the numbers in reasons."""
    return look["missing"], *([one["moves"] for one in look[which]] for which in ("advised", "declined"))


def _shifts(before: Placement, now: Placement) -> tuple[Shift, ...]:
    """What runs elsewhere than it did."""
    return tuple(
        Shift(stream, before.homes[stream], site)
        for stream, site in now.homes.items()
        if before.homes.get(stream, site) != site
    )
