"""What a balancing site knows for good: which operators it answers for, and which lie below it on which side."""

from __future__ import annotations

import msgspec

from weft.protocol.balancing.words import Loads, Name, Number, Part, Reason, Remember

GIVES, GONE, BACK, TOOK, DECLINED = "gives", "gone", "back", "took", "declined"


class Giving(msgspec.Struct, frozen=True, array_like=True):
    """Operators that were handed to a neighbour, which has not answered yet."""

    serial: Number
    number: Number
    operators: tuple[Part, ...]
    reason: Reason = ""


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What was answered to a neighbour's last handover."""

    serial: Number
    took: bool


class Memory(msgspec.Struct, frozen=True, array_like=True):
    """Operators here, operators below by the child they lie under, handovers open and answered; `count` only grows."""

    here: dict[Name, Loads]
    below: dict[Name, Name] = {}
    giving: dict[Name, Giving] = {}
    answers: dict[Name, Answer] = {}
    count: int = 0

    def after(self, what: Remember, parent: str) -> Memory:
        """The memory with what is to be remembered; `parent` is the site's own."""
        here, below, giving, answers = dict(self.here), dict(self.below), dict(self.giving), dict(self.answers)
        if what.verb == GIVES:
            giving[what.peer] = Giving(what.serial, what.number, what.operators, what.reason)
            for part in what.operators:
                del here[part.operator]
        if what.verb == GONE and what.peer != parent:
            below.update((part.operator, what.peer) for part in what.operators)
        if what.verb in (GONE, BACK):
            del giving[what.peer]
        if what.verb in (TOOK, BACK):
            for part in what.operators:
                here[part.operator] = part.loads
                below.pop(part.operator, None)
        if what.verb in (TOOK, DECLINED):
            answers[what.peer] = Answer(what.serial, what.verb == TOOK)
        return Memory(dict(sorted(here.items())), below, giving, answers, what.count)

    def measured(self, loads: tuple[Part, ...]) -> Memory:
        """The memory with other loads of the operators here."""
        now = {part.operator: part.loads for part in loads}
        here = {operator: now.get(operator, held) for operator, held in self.here.items()}
        return msgspec.structs.replace(self, here=here)
