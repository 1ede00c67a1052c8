"""How long do messages, state and moves take in the twin? As the least-delay path says, and no word over a cut link."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from weft.bodies.twin.control.changes import DESK
from weft.bodies.twin.records import names_of
from weft.model import Deployment
from weft.plan.network.paths import Paths

NS_PER_MS = 1_000_000
NEVER = -(1 << 62)
START_NS_MIN = 1_000_000_000


class Delays:
    """The delays of a deployment; `site_of` says where a machine is, `now_ns` which moment it is."""

    def __init__(
        self, deployment: Deployment, move_ms_per_record: float, site_of: Callable[[str], str],
        now_ns: Callable[[], int],
    ) -> None:  # fmt: skip
        self.deployment = deployment
        self._move_ms_per_record = move_ms_per_record
        self._site_of, self._now_ns = site_of, now_ns
        self._desk = deployment.sites[0].name
        self._cut_until: dict[frozenset[str], int] = {}

    @cached_property
    def paths(self) -> Paths:
        """The ways between sites."""
        return Paths(self.deployment)

    def start_ns(self) -> int:
        """So long before sources flow that every operator runs when they do."""
        paths = [self.paths.between(self._desk, site.name) for site in self.deployment.sites]
        farthest_ms = max(path.delay_ms for path in paths if path is not None)
        return -START_NS_MIN - round(4 * farthest_ms * NS_PER_MS)

    def cut(self, one: str, other: str, until_ns: int) -> None:
        """No word gets over a link, or from one site to the other, until a moment."""
        self._cut_until[frozenset((one, other))] = until_ns

    def message_ns(self, sender: str, to: str) -> int | None:
        """How long a message takes; None where it is lost."""
        start, end = (self._desk if name == DESK else self._site_of(name) for name in (sender, to))
        path = self.paths.between(start, end)
        if path is None:
            return None
        pairs = [*zip(path.sites, path.sites[1:], strict=False), (start, end)]
        if any(self._cut_until.get(frozenset(pair), NEVER) > self._now_ns() for pair in pairs):
            return None
        return round(path.delay_ms * NS_PER_MS)

    def move_ns(self, stream: str, before: str, site: str, waiting: int) -> int:
        """How long an operator's move takes: that of its state, or of the records that wait for it."""
        if not self._state_kb(stream):
            return round(self._move_ms_per_record * waiting * NS_PER_MS)
        return self.state_ns(stream, before, site)

    def state_ns(self, stream: str, before: str, site: str) -> int:
        """How long an operator's state takes from one site to another."""
        state_kb = self._state_kb(stream)
        path = self.paths.between(before, site) if state_kb else None
        if path is None:
            return 0
        sending_ms = state_kb * 8192 / path.bandwidth_kbps if path.bandwidth_kbps else 0.0
        return round((path.delay_ms + sending_ms) * NS_PER_MS)

    def _state_kb(self, stream: str) -> float:
        query, name = names_of(stream)
        return self.deployment.query(query).operator(name).state_kb
