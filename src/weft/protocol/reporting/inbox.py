"""What does the desk know from reports? How each site stands, and of what has happened each event once.

1. Events are taken in order of their numbers, within one life of a site: those taken already, and those behind a gap,
   are passed over. The answer says up to where all is there, so what was passed over is said again.
2. A desk that knows nothing of a life begins where an earlier desk had said that it had all.
3. Another life takes the place of the one before. A report of that one may still bring events, but no longer tells
   how the site stands.
4. Of the reports of a life only a later one than those heard tells how the site stands.
5. CPU seconds are counted by every life of a site anew: those of all lives add up.
"""

from __future__ import annotations

import msgspec

from weft.protocol.balancing.eras import BalanceNow
from weft.protocol.reporting.words import Event, FragmentNow, Report, Reported

LIVES_KEPT = 8


class Heard(msgspec.Struct):
    """What one site has told."""

    life: str = ""
    number: int = 0
    fragments: dict[str, FragmentNow] = {}
    at_ms: float = 0.0
    """When they stood so, by the site's clock; 0 where it did not say."""
    cpu_s: dict[str, float] = {}
    """By life, the CPU seconds of its tasks."""
    cpu_s_before: float = 0.0
    """Those of lives that are no longer kept."""
    bad: dict[str, int] = {}
    balance: BalanceNow | None = None
    """What its balancer last said, also where the site is gone since."""
    slack_ms: dict[str, float] = {}
    """The time left for operators, as the site itself knows it."""
    dropped: int = 0
    complete: int = 0
    """The greatest question that was answered with nothing missing."""
    taken: dict[str, int] = {}
    """By life: the last event that was taken."""


class Inbox:
    """What all sites have told."""

    def __init__(self, lives_kept: int = LIVES_KEPT) -> None:
        self.sites: dict[str, Heard] = {}
        self.lives_kept = lives_kept

    def take(self, site: str, report: Report) -> tuple[list[Event], Reported]:
        """The events of a report that are new, and the answer."""
        held = self.sites.setdefault(site, Heard())
        if report.life != held.life and report.life not in held.taken:
            held.life, held.number, held.fragments = report.life, 0, {}
            held.taken[report.life] = report.had
            for life in list(held.taken)[: -self.lives_kept]:
                del held.taken[life]
                held.cpu_s_before += held.cpu_s.pop(life, 0.0)
        upto = held.taken[report.life]
        new: list[Event] = []
        if report.first <= upto + 1:
            new = list(report.events[upto + 1 - report.first :])
            upto = held.taken[report.life] = upto + len(new)
        if report.life == held.life and report.number > held.number:
            self._stands(held, report)
            if report.answers and not report.more and upto == report.first + len(report.events) - 1:
                held.complete = max(held.complete, report.answers)
        return new, Reported(report.life, upto)

    def _stands(self, held: Heard, report: Report) -> None:
        held.number, held.dropped, held.at_ms = report.number, report.dropped, report.now.at_ms
        held.fragments.update({one.fragment: one for one in report.now.fragments})
        held.bad = dict(report.now.bad)
        held.balance, held.slack_ms = report.now.balance, dict(report.now.slack_ms)
        held.cpu_s[report.life] = report.now.cpu_s

    def lose(self, site: str) -> None:
        """A site is gone: how it stood tells nothing any more."""
        held = self.sites.get(site)
        if held is not None:
            held.fragments, held.slack_ms = {}, {}

    def fragment(self, site: str, fragment: str) -> FragmentNow | None:
        """How a fragment at a site stands, where it has told."""
        held = self.sites.get(site)
        return None if held is None else held.fragments.get(fragment)

    def at_ms(self, site: str) -> float:
        """When the fragments of a site stood as they are told, by its clock; 0 where it did not say."""
        held = self.sites.get(site)
        return 0.0 if held is None else held.at_ms

    def cpu_s(self, site: str) -> float:
        """CPU seconds that a site's tasks have taken, over all its lives heard of."""
        held = self.sites.get(site)
        return 0.0 if held is None else held.cpu_s_before + sum(held.cpu_s.values())
