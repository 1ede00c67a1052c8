"""What follows for a desk from what balancers have agreed upon? Moves to ask for, and when all is to begin anew.

1. Each site says which handovers it took and still holds. Where two hold an operator, the one that gave it to the other
   has not heard yet that it was taken.
2. A handover is asked for once. Where the desk refuses, it is asked for again while it is owed, so often.
3. What is asked for no more, and all that moved, came or went for another reason, is *astray*: balancers believe
   what is not so. Then a new era is to begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from weft.protocol.balancing.eras import Agreed, BalanceNow
from weft.protocol.balancing.tree import AGAIN_MS, asks_again

AGAIN_MAX = 10


class Handed(NamedTuple):
    """Operators that a balancer took, and that do not run at its site yet."""

    taker: str
    giver: str
    serial: int

    def __str__(self) -> str:
        return f"{self.taker} from {self.giver} ({self.serial})"


class Due(NamedTuple):
    """A move to ask for."""

    handed: Handed
    operators: tuple[str, ...]
    agreed: Agreed


class Agreements:
    """One era, at the desk; `homes` is where operators ran at its beginning. Giver and taker are sites."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self.owners = dict(homes)
        self._took: dict[Handed, Agreed] = {}
        self._under_way: dict[Handed, tuple[str, ...]] = {}
        self._over: set[Handed] = set()
        self._again: dict[Handed, tuple[int, int]] = {}
        self._unsettled: set[str] = set()

    def hear(self, told: Mapping[str, BalanceNow]) -> None:
        """Takes in what sites say of this era; what is said twice, or was heard before, does no harm."""
        claims: dict[str, dict[str, str]] = {}
        self._took, self._unsettled = {}, set()
        for site in sorted(told):
            for agreed in told[site].took:
                self._took[Handed(site, agreed.giver, agreed.serial)] = agreed
                for part in agreed.operators:
                    claims.setdefault(part.operator, {})[site] = agreed.giver
        for operator, by_site in claims.items():
            held = [site for site in by_site if not any(by_site[one] == site for one in by_site if one != site)]
            if len(held) == 1:
                self.owners[operator] = held[0]
            else:
                self._unsettled.add(operator)

    def due(self, homes: Mapping[str, str], now_ms: int) -> list[Due]:
        """What is to be asked for now, given where operators run; it is under way then."""
        found = []
        for handed, agreed in self._took.items():
            if handed in self._under_way or handed in self._over:
                continue
            owed = tuple(self._owed(handed, agreed, homes))
            due_ms, times = self._again.get(handed, (now_ms, 0))
            if times > AGAIN_MAX or not (owed or self._may_change(agreed)):
                self.end(handed)
            elif owed and due_ms <= now_ms:
                self._under_way[handed] = owed
                found.append(Due(handed, owed, agreed))
        return found

    def _owed(self, handed: Handed, agreed: Agreed, homes: Mapping[str, str]) -> Iterator[str]:
        for part in agreed.operators:
            if part.operator in homes:
                owner = self.owners.get(part.operator, "")
                if asks_again(homes[part.operator], owner, handed.taker):
                    yield part.operator

    def _may_change(self, agreed: Agreed) -> bool:
        """Whether something is still under way with what was handed over, so that it may come to be owed."""
        changing = self._unsettled.union(*self._under_way.values())
        return any(part.operator in changing for part in agreed.operators)

    def refused(self, handed: Handed, now_ms: int) -> None:
        """A move that was asked for did not come about: it is asked for again in a while."""
        self._under_way.pop(handed, None)
        self._again[handed] = (now_ms + AGAIN_MS, self._again.get(handed, (0, 0))[1] + 1)

    def end(self, handed: Handed) -> None:
        """A handover is made, or nobody asks for it any more."""
        self._under_way.pop(handed, None)
        self._again.pop(handed, None)
        self._over.add(handed)

    def astray(self, homes: Mapping[str, str]) -> str:
        """What balancers believe and is not so, as text; empty where all is as they believe, or will be."""
        for operator in sorted({*homes, *self.owners}):
            home, owner = homes.get(operator), self.owners.get(operator)
            if home is None or owner is None:
                return f"{operator} has {'gone' if home is None else 'come'}"
            if home != owner and not self._is_to_move(operator):
                return f"{operator} runs at {home}, and {owner} holds it"
        return ""

    def _is_to_move(self, operator: str) -> bool:
        return any(
            handed not in self._over and any(part.operator == operator for part in agreed.operators)
            for handed, agreed in self._took.items()
        )
