"""Messages that cannot be meant: from strangers, out of place, said before; they are refused, and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.bodies.explorer.world import Claim, View
from weft.protocol import IllegalStep, Machine, Message, Received
from weft.protocol.messages import StartFragment

NOBODY = "nobody"
FOREIGN = StartFragment("f", 1)
"""A message of another protocol."""
REFUSED = "what cannot be meant is refused, and changes nothing"

Strange = Callable[[Any], Iterable[tuple[str, Message]]]
"""By a machine as it is: who might say what to it now, which cannot be meant."""


def refusing(
    machines: Callable[[], Mapping[str, Machine]], names: Iterable[str], strange: Strange, refuse: type,
    answered: type | None = None,
) -> dict[str, Claim]:  # fmt: skip
    """A claim for each machine; of a kind of message that is `answered`, a refusal may come with an answer."""
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
            said = [effect for effect in effects if isinstance(effect, refuse)]
            alone = len(effects) == 1 or (answered is not None and isinstance(message, answered))
            if len(said) != 1 or not alone or machine.snapshot() != before:
                return False
            if (said[0].sender, said[0].message) != (sender, type(message).__name__):  # type: ignore[attr-defined]
                return False
        return True

    def of(name: str) -> Claim:
        return lambda view: refuses(name, view)

    return {f"{REFUSED}: {name}": of(name) for name in names}
