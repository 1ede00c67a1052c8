"""Who keeps the sites of a run? What a desk may ask of that; all else it says to the sites themselves, in messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from weft.bodies.live.facts import Facts
from weft.bodies.live.transport import Transport
from weft.model import Deployment, MachineState, dataflow
from weft.plan.dataflow.event_times import Times
from weft.protocol.agents import RunsHere


class Learned(Protocol):
    """What was found out of a deployment with queries more."""

    @property
    def deployment(self) -> Deployment:
        """The deployment that was tried out."""

    @property
    def facts(self) -> Facts:
        """What planning needs to know of it."""

    @property
    def lacks(self) -> str | None:
        """What streams that run do not carry and it would need; None where nothing is lacking."""


class House(Protocol):
    """Keeps the sites of a run: starts them, loses them, lets them come back, and ends them."""

    @property
    def transport(self) -> Transport:
        """How sites are reached."""

    @property
    def lost(self) -> set[str]:
        """Sites that are down."""

    def open(self, over: Callable[[], bool]) -> Facts:
        """Make ready what sites stand on, unless it is over; what Spark says of the operators."""

    def try_out(self, deployment: Deployment) -> Learned:
        """What Spark says of a deployment with queries more; CannotRun where sites take up no more, or Spark says no.

        Nothing is changed by it.
        """

    def learn(self, learned: Learned) -> None:
        """Let all sites know a deployment that was tried out: they will be told of its fragments."""

    def start(self) -> None:
        """Let all sites take orders."""

    def runs_of(self, site: str) -> tuple[RunsHere, ...]:
        """What a site says that it runs already."""

    def comes_back(self, site: str) -> bool:
        """Whether a site that is silent may be heard of yet, or again, without anybody letting it."""

    def about(self, site: str) -> dict[str, Any]:
        """Which process a site is, and where it is found."""

    def machine(self, site: str) -> MachineState | None:
        """What a site last told of the machine that it stands on."""

    def partition(self, one: str, other: str, for_s: float) -> None:
        """Two sites cannot speak for a while."""

    def crash(self, site: str) -> None:
        """Lose a site: all it runs, at once."""

    def restart(self, site: str) -> None:
        """A lost site comes back, knowing only the epochs it was to remember."""

    def check(self) -> None:
        """RunFailed where something is gone that cannot be helped."""

    def alive(self, grace_s: float = 0.0) -> bool:
        """Whether what sites stand on is there, given a moment to be gone."""

    def close(self) -> None:
        """End all sites."""


def lacking(before: Times, now: Times, running: Deployment) -> str | None:
    """A stream that runs, and would have to carry how far another column's time has come: it cannot begin to midway."""
    for node in dataflow(running).nodes:
        more = [column for column in now.columns(node.stream) if column not in before.columns(node.stream)]
        if more:
            return (
                f"it would need to know how far {more[0]} of {node.stream} has come, which that stream does not carry "
                "while it runs: put the query into the file, and start it again"
            )
    return None
