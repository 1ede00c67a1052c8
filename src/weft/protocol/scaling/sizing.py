"""Which instances start or end, and where? Decided for one instance at a time, from what its operator was asked for.

An instance's capacity is what its site leaves to it: capacity times quota, less what other operators take there. A new
instance goes to the site that has most left, of those that it may run at. Instances share an operator's records in
turn, so each gets the same. Only operators that may share are scaled: without state, window or a site of their own, and
not read through a queue that blocks. Where sites crash, nothing is scaled: instances are taken not to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from weft.model import CrashAt, Deployment, dataflow
from weft.plan.dataflow.rates import cost_ms
from weft.protocol.counting import came
from weft.protocol.scaling.decision import ScaleRule, copies
from weft.protocol.scaling.words import Grow, Shrink

NS_PER_S = 1_000_000_000

RunningAt = Callable[[str], Sequence[str]]
"""The sites of an operator's instances that work on records now, one entry for each instance."""
PossibleAt = Callable[[str], Sequence[str]]
"""The sites at which a further instance of an operator may run."""


class Sizing:
    """The decisions over operators (`query.operator`, in the order in which their loads are added up)."""

    __slots__ = ("_deployment", "_operators", "_possible_at", "_rates", "_running_at", "_seen", "rule")

    def __init__(
        self,
        rule: ScaleRule,
        deployment: Deployment,
        operators: Iterable[str],
        running_at: RunningAt,
        possible_at: PossibleAt,
    ) -> None:
        self.rule = rule
        self._deployment = deployment
        self._operators = {name: dataflow(deployment).node(name).operator for name in operators}
        self._rates: dict[str, float] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._running_at, self._possible_at = running_at, possible_at

    def saw(self, operator: str, arrived: int, now_ns: int) -> None:
        """So many records have come to one instance of an operator by now."""
        before, then_ns = self._seen.get(operator, (0, 0))
        self._seen[operator] = (arrived, now_ns)
        self._rates[operator] = came(before, arrived) * NS_PER_S / max(1, now_ns - then_ns)

    def may_share(self, operator: str) -> bool:
        """True if an operator's records may be shared by several instances."""
        told = self._operators[operator]
        crashes = any(isinstance(what, CrashAt) for what in self._deployment.scenario)
        return not (told.site or told.window or told.state_kb or crashes or _blocked(self._deployment, operator))

    def load(self, operator: str) -> float:
        """What one instance of an operator was asked for lately, in seconds of work a second."""
        return self._rates.get(operator, 0.0) * cost_ms(self._operators[operator]) / 1000.0

    def left(self, site: str, operator: str = "") -> float:
        """What a site leaves to one instance of an operator, or to a new one where none is named."""
        told = self._deployment.site(site)
        taken = sum(
            self.load(name) * sum(where == site for where in self._running_at(name))
            for name in self._operators if name != operator
        )  # fmt: skip
        beside = sum(where == site for where in self._running_at(operator)) if operator else 1
        return (told.capacity * told.quota - taken) / max(1, beside)

    def best_site(self, operator: str) -> str:
        """The site that has most left, of those at which a further instance of an operator may run."""
        return max(self._possible_at(operator), key=self.left)

    def decide(self, operator: str, site: str, keeper: bool, chance: float) -> tuple[Grow | Shrink, str] | None:
        """What an instance at a site should do now, and why; `chance` is drawn evenly from 0 to 1."""
        load, own = self.load(operator), self.left(site, operator)
        room = max((self.left(site) for site in self._possible_at(operator)), default=0.0)
        made = copies(self.rule, load, own, chance, keeper, room if room > 0 else None)
        used = f"utilisation {load / own:.2f}" if own > 0 else "no capacity left"
        if made > 0 and room > 0:
            # One at a time: where the next would go is seen only when this one runs.
            return Grow(1), f"{used}, above {self.rule.high:g}"
        if made < 0:
            return Shrink(), f"{used}, below {self.rule.low:g}"
        return None


def _blocked(deployment: Deployment, stream: str) -> bool:
    queues = [reader.operator.queue for reader in dataflow(deployment).readers(stream)]
    return any(queue is not None and queue.when_full == "block" for queue in queues)
