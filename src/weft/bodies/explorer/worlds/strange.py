"""Messages that cannot be meant: from strangers, out of place, said before; they are refused, and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.bodies.explorer.world import Claim, View
from weft.protocol import Effect, IllegalStep, Input, Machine, Message, Received
from weft.protocol.messages import StartFragment

NOBODY = "nobody"
FOREIGN = StartFragment("f", 1)
"""A message of another protocol."""
REFUSED = "what cannot be meant is refused, and changes nothing"
PASSED = "what is out of date is passed over"

Stale = tuple[Input, tuple[Effect, ...]]
"""Something that is out of date, and what is said to it."""
Strange = Callable[[Any], Iterable[tuple[str, Message]]]
"""By a machine as it is: who might say what to it now, which cannot be meant."""


def refusing(
    machines: Callable[[], Mapping[str, Machine]], names: Iterable[str], strange: Strange, refuse: type,
    answer: Callable[[Any, str, Message], list[Effect]] = lambda machine, sender, message: [],
) -> dict[str, Claim]:  # fmt: skip
    """A claim for each machine; `answer` is what must be said besides to some messages."""
    scratch: dict[str, Any] = {}

    def refuses(name: str, view: View) -> bool:
        if not scratch:
            scratch.update(machines())
        machine, now = scratch[name], view.machine(name)
        before = now.snapshot()
        for sender, message in strange(now):
            machine.restore(before)
            try:
                effects = machine.handle(Received(sender, message))
            except (IllegalStep, AssertionError):
                return False
            if not effects or not isinstance(effects[0], refuse) or machine.snapshot() != before:
                return False
            refused: Any = effects[0]
            if (refused.sender, refused.message) != (sender, type(message).__name__):
                return False
            if effects[1:] != answer(now, sender, message):
                return False
        return True

    def of(name: str) -> Claim:
        return lambda view: refuses(name, view)

    return {f"{REFUSED}: {name}": of(name) for name in names}


def passing(
    machines: Callable[[], Mapping[str, Machine]], names: Iterable[str], stale: Callable[[Any], Iterable[Input]]
) -> dict[str, Claim]:
    """A claim for each machine: what is out of date is passed over without a word."""
    return answering(machines, names, lambda machine: ((input, ()) for input in stale(machine)))


def answering(
    machines: Callable[[], Mapping[str, Machine]], names: Iterable[str], stale: Callable[[Any], Iterable[Stale]]
) -> dict[str, Claim]:
    """A claim for each machine: what is out of date changes nothing, and is answered only as it must be."""
    scratch: dict[str, Any] = {}

    def passes(name: str, view: View) -> bool:
        if not scratch:
            scratch.update(machines())
        machine, now = scratch[name], view.machine(name)
        before = now.snapshot()
        for input, answer in stale(now):
            machine.restore(before)
            try:
                if tuple(machine.handle(input)) != answer or machine.snapshot() != before:
                    return False
            except (IllegalStep, AssertionError):
                return False
        return True

    def of(name: str) -> Claim:
        return lambda view: passes(name, view)

    return {f"{PASSED}: {name}": of(name) for name in names}
