"""The shape of a protocol: a machine takes one input, returns effects, and touches nothing else.

A machine is a plain object with slots. It keeps flat rows, one per thing it looks after (a fragment, an offer), each
with a `state`. `STEPS[state, kind]` holds every legal step: what is done, and the states it may lead to; the kind of
an input is its type, or the type of the message received. An input that no step allows raises `IllegalStep` with the
recent story. The snapshot is canonical: equal states give equal bytes, whatever order they were reached in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

import msgspec

from weft.protocol.story import effects_text, input_text, parse_story_line, story_line
from weft.protocol.words import CancelTimer, Effect, Input, Message, Received, Send, SetTimer, TimerFired

__all__ = [
    "CancelTimer",
    "Effect",
    "IllegalStep",
    "Input",
    "Machine",
    "Message",
    "Received",
    "Row",
    "Send",
    "SetTimer",
    "Step",
    "Steps",
    "TimerFired",
    "kind_of",
    "parse_story_line",
    "story_line",
]

STORY_LINES_MAX = 20

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


@cache
def _decoder(row: type) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(tuple[dict[str, row], Any])  # type: ignore[valid-type]


class Row(msgspec.Struct, array_like=True):
    """What a machine knows of one thing it looks after."""

    state: str


class Step(NamedTuple):
    """A legal step: `do(machine, key, row, input)` gives the effects and leaves the row in one of the states `to`."""

    do: Callable[[Any, str, Any, Any], list[Effect]]
    to: tuple[str, ...]


Steps = Mapping[tuple[str, type], Step]


class IllegalStep(Exception):
    """An input came that no step allows; the message shows what went before."""

    def __init__(self, machine: str, state: str, input: Input, story: tuple[str, ...], why: str = "") -> None:
        self.machine, self.state, self.input, self.story = machine, state, input, story
        lines = "".join(f"\n  {line}" for line in story) or "\n  nothing yet"
        what = f"{machine}: {input_text(input)} in state {state}" + (f": {why}" if why else "")
        super().__init__(f"{what}; the story so far:{lines}")


def kind_of(input: Input) -> type:
    """The column of the table an input belongs to: its type, or the type of the message received."""
    return type(input.message) if isinstance(input, Received) else type(input)


class Machine:
    """The common part of all machines: rows by key, the table of steps, snapshot and story."""

    __slots__ = ("_recent", "name", "rows")

    STEPS: ClassVar[Steps] = {}
    ROW: ClassVar[type[Row]] = Row

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[str, Any] = {}
        self._recent: deque[tuple[str, Input, list[Effect]]] = deque(maxlen=STORY_LINES_MAX)

    def key(self, input: Any) -> str:
        """Which row an input is about; the fragment or timer it names unless a machine says otherwise."""
        if isinstance(input, Received):
            input = input.message
        name: str = input.name if isinstance(input, TimerFired) else input.fragment
        return name

    def late(self, key: str, row: Any, input: Any) -> list[Effect] | None:
        """The effects of an input about something already over, which changes no row; None where it is not late."""
        return None

    def concluding(self) -> list[Effect]:
        """What is said after any step, looking at all rows."""
        return []

    def handle(self, input: Input) -> list[Effect]:
        """Takes one step and returns what the body must do, in order."""
        key = self.key(input)
        row = self.rows.get(key)
        if row is None:
            row = self.ROW()  # type: ignore[call-arg]
        before: str = row.state
        effects = self.late(key, row, input)
        if effects is None:
            step = self.STEPS.get((before, kind_of(input)))
            if step is None:
                raise IllegalStep(self.name, before, input, self.story())
            self.rows[key] = row
            effects = step.do(self, key, row, input)
            if row.state not in step.to:
                raise IllegalStep(self.name, before, input, self.story(), f"it led to {row.state}, not {step.to}")
            effects = effects + self.concluding()
        self._recent.append((before, input, effects))
        return effects

    def story(self) -> tuple[str, ...]:
        """The last steps as text, the oldest first."""
        return tuple(
            f"{self.name} [{state}] {input_text(input)} -> {effects_text(self.name, effects)}"
            for state, input, effects in self._recent
        )

    def states(self) -> dict[str, str]:
        """How each thing it looks after is doing."""
        return {key: row.state for key, row in self.rows.items()}

    def snapshot(self) -> bytes:
        """The state as canonical bytes; the story is not part of it."""
        return _encode((self.rows, self.extra()))

    def restore(self, snapshot: bytes) -> None:
        """Takes on the state of a snapshot, and begins a new story."""
        self.rows, extra = _decoder(self.ROW).decode(snapshot)
        self._recent.clear()
        self.set_extra(extra)

    def extra(self) -> Any:
        """State besides the rows, for the snapshot."""
        return None

    def set_extra(self, extra: Any) -> None:
        """Takes back what `extra` gave."""
