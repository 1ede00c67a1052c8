"""What does a desk do for sites that balance? It tells them where all is, and asks for the moves they agree upon.

Their wishes go through the controller and the one door, like any other. Where what runs is not what balancers believe
(somebody else moved it, a query came or went, a move was refused too often) it begins a new era.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from weft.bodies.live.changes import Changes
from weft.bodies.live.controlling import Controlling
from weft.bodies.live.moves import Asked
from weft.bodies.live.reports import Reports
from weft.bodies.live.state import BALANCE
from weft.model import Balance
from weft.model.wishes import MoveTo
from weft.protocol.balancing import Agreements, BalancedTree, BalanceFrom, BalanceNow, Due, Handed
from weft.protocol.control import ADVISED, ASKED, DONE, REFUSED
from weft.protocol.messages import BadMessage

ASTRAY_S = 1.5  # longer than what sites say of one another's handovers may be apart


class DeskBalancing:
    """The eras of a run, what each site is told, and what becomes of what they agree upon."""

    def __init__(
        self, balance: Balance, changes: Changes, controlling: Controlling, reports: Reports,
        note: Callable[[str], None], advises: bool = False,
    ) -> None:  # fmt: skip
        self._balance, self._advises, self._note = balance, advises, note
        self._changes, self._controlling, self._reports = changes, controlling, reports
        self._era = int(changes.state.noted(BALANCE) or 0)
        self._tree: BalancedTree | None = None
        self._told: dict[str, BalanceFrom] = {}
        self._agreements = Agreements({})
        self._heard: dict[str, BalanceNow] = {}
        self._asked: dict[Handed, Asked] = {}
        self._astray_s: float | None = None

    def look(self) -> None:
        """Take in what sites say, ask for what they agreed upon, and set right what they believe."""
        if self._tree is None:
            self._begin("")
        now_ms = round(time.monotonic() * 1000)
        self._end(now_ms)
        homes = self._changes.placement.homes  # after what has ended: then it holds what was done
        heard = {site: held.balance for site, held in self._reports.inbox.sites.items() if held.balance is not None}
        latest = max((one.era for one in heard.values()), default=0)
        if latest > self._era:  # of a desk whose note of it is gone
            self._era = latest
            self._begin("")
        # A site that comes back says nothing of its balancer until it is told to go on: what it said before holds.
        self._heard |= {site: one for site, one in heard.items() if one.era == self._era}
        self._agreements.hear(self._heard)
        for due in self._agreements.due(homes, now_ms):
            self._ask(due)
        self._set_right(self._agreements.astray(homes))
        for site, beginning in list(self._told.items()):
            if site not in heard or heard[site].era != self._era:
                self._tell(site, beginning)

    def _tell(self, site: str, beginning: BalanceFrom) -> None:
        try:
            self._reports.tell(site, beginning)
        except BadMessage as error:
            self._told = {}
            self._note(f"sites do not balance: {error}")

    def _begin(self, why: str) -> None:
        """A new era: balancers go on from where all runs now, and nothing of before counts."""
        self._era += 1
        self._changes.state.write(BALANCE, self._era)
        plan = self._changes.in_force
        self._tree = BalancedTree(self._balance, plan.deployment, plan.placement.homes)
        self._told = {site: self._tree.beginning(site, self._era) for site in self._tree.sites}
        self._agreements, self._heard, self._asked = Agreements(plan.placement.homes), {}, {}
        self._astray_s = None
        if why and not self._advises:  # what is only advised is astray each time
            self._note(f"balancers begin anew: {why}")

    def _set_right(self, astray: str) -> None:
        """What sites believe may be behind what is so for a moment, but not for long."""
        now_s = time.monotonic()
        if not astray:
            self._astray_s = None
        elif self._astray_s is None:
            self._astray_s = now_s
        elif now_s > self._astray_s + ASTRAY_S:
            self._begin(astray)

    def _end(self, now_ms: int) -> None:
        """What became of what was asked for."""
        for handed, asked in list(self._asked.items()):
            if asked.state == ASKED:
                continue
            del self._asked[handed]
            if asked.state == DONE:
                self._agreements.end(handed)
            else:
                self._agreements.refused(handed, now_ms)

    def _ask(self, due: Due) -> None:
        handed = due.handed
        assert self._tree is not None
        order = self._tree.in_order(due.operators, handed.giver, handed.taker)
        wish = MoveTo(dict.fromkeys(order, handed.taker), due.agreed.reason, "balance")
        asked = self._changes.expect(wish)
        asked.numbers = self._numbers(due)
        if self._advises:
            self._controlling.log(asked, ADVISED)
            self._agreements.end(handed)  # nothing comes of it: balancers begin anew
            return
        self._changes.ask(wish, expected=asked)
        if asked.state == REFUSED:  # it is impossible now, and has not come to the controller
            self._controlling.log(asked, REFUSED, asked.why)
        self._asked[handed] = asked

    def _numbers(self, due: Due) -> dict[str, Any]:
        """The loads of both sites at their last look, before and after, as shares of their capacity."""
        handed, balance = due.handed, self._balance
        assert self._tree is not None
        parts = [part for part in due.agreed.operators if part.operator in due.operators]
        sizes = [sum(each) for each in zip(*(part.loads for part in parts), strict=True)]
        sites = {}
        for site, way in ((handed.giver, -1), (handed.taker, 1)):
            looked = self._heard[site].looked if site in self._heard else ()
            capacity = self._tree.limits(site).capacity
            if looked:
                sites[site] = {
                    resource: {"before": _share(load, most), "after": _share(max(0, load + way * size), most)}
                    for resource, load, size, most in zip(self._tree.resources, looked, sizes, capacity, strict=True)
                }
        return {
            "era": self._era,
            "serial": handed.serial,
            "marks": {"low": balance.low, "target": balance.target, "high": balance.high},
            "loads": sites,
        }


def _share(load: int, capacity: int) -> float | None:
    return round(load / capacity, 4) if capacity else None
