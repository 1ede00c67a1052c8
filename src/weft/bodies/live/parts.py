"""What is a run made of beside its sites? Its desk, and what hears, measures, decides and steers next to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from weft.bodies.live.adding import Adding
from weft.bodies.live.advising import Advising
from weft.bodies.live.balancing.desk import DeskBalancing
from weft.bodies.live.changes import Changes
from weft.bodies.live.controlling import Controlling
from weft.bodies.live.decision_file import DecisionFile
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.directory.finding import Finding
from weft.bodies.live.feedback.desk import DeskFeedback
from weft.bodies.live.house import House
from weft.bodies.live.measurements import Measurements
from weft.bodies.live.progress import Progress
from weft.bodies.live.reports import Reports
from weft.bodies.live.resuming import note_closing
from weft.bodies.live.steering import Steering
from weft.bodies.live.view import RunView
from weft.model import Control
from weft.plan.dataflow.sharing import is_on
from weft.protocol.control import Decisions, looks_every_s
from weft.protocol.reporting import Committed, Event


class Parts:
    """All parts of a run that has a plan; `control` is the file's own, whose ordering is not written out yet."""

    def __init__(
        self, run: RunView, sites: House, changes: Changes, control: Control, story: Callable[[str], None]
    ) -> None:
        deployment, transport = run.deployment, sites.transport
        self.sites = sites
        self.changes = changes
        self.changes.clock_s = run.flowed_s
        self.adding = Adding(run, control)
        self.steering = Steering(run)
        self.measurements = Measurements(run, run.state.path)
        self.reports = Reports(transport, self._heard, partial(note_closing, run.state, deployment), story)
        self.finding = Finding(transport, story) if is_on(deployment) else None
        self.progress = Progress(run.meter, lambda: changes.fragments, self.reports.inbox, run.state, self._committed)
        self.desk = DeskBody(changes, transport, story, self._comes_back)
        self.advising: Advising | None = None
        if looks_every_s(deployment) is not None:
            self.advising = Advising(deployment, run.meter, lambda: changes.placement, transport, story, sites.machine)
            self.advising.grant = changes.ask
        self.controlling = self.advising or Controlling(deployment, lambda: changes.placement, transport, story)
        self.controlling.decisions.note = DecisionFile(run.state.path).write
        self.balancing: DeskBalancing | None = None
        if (balance := deployment.control.balance) is not None:
            advises = deployment.control.advise is not None
            self.balancing = DeskBalancing(
                balance, changes, self.controlling, self.reports, lambda text: story(f"# {text}"), advises
            )
        self.feedback = DeskFeedback(changes, self.reports) if deployment.control.relief is not None else None
        self.controlling.tell_desk, changes.hand_on = changes.tell_desk, self.controlling.wish

    def start(self) -> None:
        """Let sites take orders; the desk gives none yet."""
        self.reports.start()
        if self.finding is not None:
            self.finding.start()
        self.sites.start()
        self.controlling.start()

    def close(self) -> None:
        """End all parts, and the sites."""
        self.adding.stop()
        self.controlling.stop()
        self.desk.stop()
        self.changes.close()
        self.sites.close()
        self.reports.stop()
        if self.finding is not None:
            self.finding.stop()

    @property
    def decisions(self) -> Decisions | None:
        """What rules and sites that balance wished; None where none may."""
        return None if self.advising is None and self.balancing is None else self.controlling.decisions

    def _heard(self, site: str, life: str, event: Event, now_ms: float) -> None:
        self.progress.hear(site, life, event, now_ms)

    def _committed(self, commit: Committed) -> None:
        self.changes.committed(commit.fragment, commit.committed_ms)

    def _comes_back(self, site: str, silent: bool) -> bool:
        """True if a site is silent or lost, and may be heard of again, or the scenario has its return in store."""
        lost = site in self.sites.lost
        return ((silent or lost) and self.sites.comes_back(site)) or (lost and self.steering.comes_back(site))
