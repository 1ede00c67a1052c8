"""How does a desk keep sites that are processes? It starts those that lack one, hears of them, and ends them all.

The desk itself has no Spark: what Spark says of the operators, the first agent to be ready tells. An agent that dies is
started again, after pauses that grow; one that is there already, started by somebody else or by an earlier desk, is
taken as it is.

Where sites share no folder with the desk (`apart`) others start them, with `weft agent` on their machines: the file
says where they listen, and what they say every second tells that they are there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from weft.bodies.live import journal
from weft.bodies.live.carrier import Tell
from weft.bodies.live.commands.answering import Answering
from weft.bodies.live.facts import Facts
from weft.bodies.live.failing import RunFailed
from weft.bodies.live.house import Learned
from weft.bodies.live.machine_state import machine_as_plain
from weft.bodies.live.opening import Options
from weft.bodies.live.parcels import unpack
from weft.bodies.live.processes import roll
from weft.bodies.live.processes.copies import Giving, mark_of
from weft.bodies.live.processes.trying import Trying
from weft.bodies.live.state import KEYS, CannotRun, State
from weft.bodies.live.transport import ROLL, Address, agent
from weft.bodies.live.wire.authority import own_keys
from weft.bodies.live.wire.credentials import NoKey, credentials
from weft.bodies.live.wire.deployed import addresses
from weft.bodies.live.wire.parties import THE_DESK
from weft.bodies.live.wire.parties import site as party_of
from weft.bodies.live.wire.port import LOOPBACK, Port
from weft.model import Deployment, MachineState, rate_changes
from weft.model.sites import where
from weft.protocol.agents import ENDED, FAILED, READY, AgentHere, CutOff, DeskHere, EndAgent, RunsHere
from weft.protocol.messages import BadMessage, decode, encode
from weft.spark.flow_start import open_flows
from weft.spark.fragments.outputs import sweep_aside
from weft.spark.process import site_logs
from weft.spec import absolute

LOOK_S = 0.1
UP_S_MAX = 8.0
OPEN_S_MAX = 600.0
JOIN_S_MAX = 60.0
JOIN_APART_S_MAX = 15.0
"""The longest that a run which goes on waits for sites that may run on: whether they do they alone know."""
END_S_MAX = 45.0
TERM_S_MAX = 10.0
PAUSE_S, PAUSE_S_MAX = 0.5, 30.0
STEADY_S = 60.0
WRONG_INPUT = 2
LOG_BYTES = 2000


@dataclass(slots=True)
class _Child:
    """The process of a site that this desk has started."""

    process: subprocess.Popen[bytes]
    started_s: float
    failures: int = 0
    due_s: float | None = None


class ProcessSites:
    """The sites of a run, each in a process of its own; `starts`: those that lack one get it from here."""

    def __init__(
        self, deployment: Deployment, state: State, options: Options, story: Tell, file: Path, starts: bool = True
    ) -> None:
        self.deployment = deployment
        self.state = state
        self.options = options
        self.file = file.resolve()
        self.starts = starts and not options.apart
        self.apart = options.apart
        self._opened = not options.apart
        self._named = addresses(deployment)
        self.crashed: set[str] = set()
        self._story = story
        self._names = [site.name for site in deployment.sites]
        self._heard: dict[str, tuple[AgentHere, float]] = {}
        self._children: dict[str, _Child] = {}
        self._facts: Facts | None = None
        self._known: dict[str, roll.Where] = {}
        self._trying = Trying(deployment, self._up)
        keys = state.path / KEYS if deployment.keys is None else Path(absolute(deployment.keys, deployment.folder))
        if deployment.keys is None:
            own_keys(keys, self._names)
        try:
            shown = credentials(keys, THE_DESK)
        except NoKey as error:
            raise CannotRun(str(error)) from error
        listen = LOOPBACK if deployment.desk is None else where(deployment.desk)
        self.transport = Port(shown, roll.digest(deployment), listen, tell=story)

    @property
    def lost(self) -> set[str]:
        """Sites that are not heard of."""
        return {site for site in self._names if not self.is_up(site)}

    def is_up(self, site: str) -> bool:
        """Whether a site is ready, and was heard of lately."""
        held = self._heard.get(site)
        return held is not None and held[0].phase == READY and time.monotonic() < held[1] + UP_S_MAX

    def comes_back(self, site: str) -> bool:
        """A process that is slow to start or to answer is waited for; one that is gone is started again."""
        return site not in self.crashed

    def open(self, over: Callable[[], bool]) -> Facts:
        """Start what lacks a process, and hear from the first that is ready what Spark says of the operators."""
        running = roll.running(self.state.path)
        if not running and not self.apart:
            self._open_state()
        self.transport.open(ROLL, self._deliver)
        Answering(self.state, self._story).at(self.transport)
        Giving(self.state).at(self.transport)
        address = self.transport.start()
        assert address is not None
        roll.tell_desk(self.state, address)
        if self.apart:
            self._join_apart(over)
        deadline, joined_s = time.monotonic() + OPEN_S_MAX, time.monotonic() + JOIN_S_MAX
        while self._facts is None or (time.monotonic() < joined_s and any(self._unheard(site) for site in running)):
            self.check()
            if over():
                raise RunFailed("stopped before its sites were there")
            if time.monotonic() > deadline:
                silent = ", ".join(sorted(self.lost))
                raise RunFailed(f"no site was ready after {OPEN_S_MAX:.0f} s; not heard of: {silent}")
            time.sleep(LOOK_S)
        return self._facts

    def _open_state(self) -> None:
        sweep_aside(self.deployment, self.state.folders)
        open_flows(self.deployment, self.state.folders, rate_changes(self.deployment.scenario))

    def _join_apart(self, over: Callable[[], bool]) -> None:
        """Hear whether sites run on since a desk before this one; where none does, sources are to flow anew."""
        deadline = time.monotonic() + JOIN_APART_S_MAX
        goes_on = journal.read(self.state) is not None
        while goes_on and len(self._heard) < len(self._names) and time.monotonic() < deadline and not over():
            self.check()
            time.sleep(LOOK_S)
        if not any(here.runs for here, _ in list(self._heard.values())):
            self._open_state()
        self._opened = True

    def _living(self) -> dict[str, int]:
        """The sites that have a process, as files of this machine say, or they themselves."""
        if not self.apart:
            return roll.living(self.state.path)
        now_s = time.monotonic()
        there = [(site, here) for site, (here, heard_s) in list(self._heard.items()) if now_s < heard_s + UP_S_MAX]
        return {site: here.pid for site, here in there if here.phase != ENDED}

    def _where(self, site: str) -> roll.Where | None:
        """Where a site listens, as its process or the file says."""
        entry = roll.find_site(self.state.path, site)
        return self._named.get(party_of(site), None if entry is None else entry.where)

    def _unheard(self, site: str) -> bool:
        return site in self._names and not self.is_up(site) and site in self._living()

    def try_out(self, deployment: Deployment) -> Learned:
        """Let all sites know a deployment with queries more; CannotRun where one cannot, or does not in time."""
        if self.apart:
            raise CannotRun(
                "sites that share no folder take only the queries of their files: put it into all of them, and start "
                "over in other folders"
            )
        assert self._facts is not None, "queries come to a run that has begun"
        return self._trying.try_out(deployment, self.deployment, self._facts)

    def _up(self) -> dict[str, AgentHere]:
        """The last word of each site that is up."""
        return {site: self._heard[site][0] for site in self._names if self.is_up(site)}

    def learn(self, learned: Learned) -> None:
        """Know more queries; the sites do already."""
        self.deployment, self._facts = learned.deployment, learned.facts
        self._trying.learn()

    def start(self) -> None:
        """Sites take orders as they come."""

    def runs_of(self, site: str) -> tuple[RunsHere, ...]:
        """What a site has said that it runs."""
        held = self._heard.get(site)
        return held[0].runs if held is not None and self.is_up(site) else ()

    def about(self, site: str) -> dict[str, Any]:
        """Which process a site is, and where it is found."""
        held, there = self._heard.get(site), self._where(site)
        return {
            "pid": held[0].pid if held is not None else None,
            "address": None if there is None else f"{there[0]}:{there[1]}",
            "up": self.is_up(site),
            "spark_ui": (held[0].ui or None) if held is not None else None,
            "machine": machine_as_plain(self.machine(site)),
        }

    def machine(self, site: str) -> MachineState | None:
        """What a site last told of the machine that it stands on."""
        held = self._heard.get(site)
        return None if held is None else held[0].machine

    def partition(self, one: str, other: str, for_s: float) -> None:
        """Each of two sites is told to let nothing pass to the other, or from it."""
        self._story(f"# {one} and {other} are cut off from one another for {for_s:g} s")
        for site, far in ((one, other), (other, one)):
            held = self._heard.get(site)
            if held is not None:
                self.transport.send(ROLL, agent(site), encode(CutOff(held[0].life, far, for_s)))

    def crash(self, site: str) -> None:
        """Lose a site: its process is killed, and not started again until it is to come back."""
        self.crashed.add(site)
        held = self._heard.pop(site, None)
        pid = roll.living(self.state.path).get(site)
        if held is not None and pid == held[0].pid:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def restart(self, site: str) -> None:
        """A lost site comes back."""
        self.crashed.discard(site)

    def check(self) -> None:
        """Start again what has died; RunFailed where a site says that it can never run."""
        for site, (here, _) in list(self._heard.items()):
            if here.phase == FAILED:
                raise RunFailed(f"site {site}: {here.reason}")
        running = self._living()
        for site in self._names:
            there = self._where(site) if site in running or self.apart else None
            if there is not None and self._known.get(site) != there:
                self._known[site] = there
                self.transport.know(party_of(site), there)
            if self.starts and site not in running and site not in self.crashed:
                self._bring_up(site)

    def _bring_up(self, site: str) -> None:
        child, now_s = self._children.get(site), time.monotonic()
        if child is None:
            self._children[site] = _Child(self._process(site), now_s)
            return
        status = child.process.poll()
        if status is None:
            return  # it has only just started, or is about to be gone
        if child.due_s is None:
            if status == WRONG_INPUT:
                raise RunFailed(f"site {site} could not start: {self._last_words(site)}")
            child.failures = 1 if now_s > child.started_s + STEADY_S else child.failures + 1
            child.due_s = now_s + min(PAUSE_S_MAX, PAUSE_S * 2 ** (child.failures - 1))
            self._story(f"# {site}: its process ended with status {status}; it is started again")
        elif now_s >= child.due_s:
            self._children[site] = _Child(self._process(site), now_s, child.failures)

    def _process(self, site: str) -> subprocess.Popen[bytes]:
        logs = site_logs(self.state.folders, site)
        logs.mkdir(parents=True, exist_ok=True)
        words = ["agent", str(self.file), "--site", site, "--state", str(self.state.path), "--takes-queries"]
        with open(logs / "agent.log", "ab") as log:
            # A session of its own: Ctrl-C at the desk's terminal is for the desk alone.
            return subprocess.Popen(
                [sys.executable, "-m", "weft", *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _last_words(self, site: str) -> str:
        with suppress(OSError):
            said = (site_logs(self.state.folders, site) / "agent.log").read_bytes()[-LOG_BYTES:]
            lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
            return lines[-1] if lines else "it said nothing"
        return "it said nothing"

    def alive(self, grace_s: float = 0.0) -> bool:
        """The desk stands on nothing that could go."""
        return True

    def close(self) -> None:
        """End all sites in order; those that this desk has started, by force where it takes too long."""
        self.starts = False
        deadline, told_s = time.monotonic() + END_S_MAX, 0.0
        while (left := self._left()) and time.monotonic() < deadline:
            if time.monotonic() >= told_s:
                told_s = time.monotonic() + 1.0
                for site in left:
                    held = self._heard.get(site)
                    if held is not None:
                        self.transport.send(ROLL, agent(site), encode(EndAgent(held[0].life)))
                    elif site in self._children:  # it has not spoken yet: there is nothing to end in order
                        self._children[site].process.terminate()
            time.sleep(LOOK_S)
        for child in self._children.values():
            self._end(child.process)
        self.transport.stop()

    def _left(self) -> list[str]:
        children = [site for site, child in self._children.items() if child.process.poll() is None]
        return [site for site in self._names if site in {*self._living(), *children}]

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(TERM_S_MAX)
        if process.poll() is None:
            process.kill()
        process.wait()

    def _deliver(self, sender: Address, data: bytes) -> None:
        try:
            message = decode(data)
        except BadMessage as error:
            self._story(f"# the desk refused a message from {sender}: {error}")
            return
        if not isinstance(message, AgentHere) or sender != agent(sender.site) or sender.site not in self._names:
            return
        if sender.site in self.crashed:
            return
        self._heard[sender.site] = (message, time.monotonic())
        told: Facts | None = None
        with suppress(msgspec.MsgspecError):
            told = unpack(message.facts, Facts | None)  # type: ignore[arg-type]
        if self._facts is None:
            self._facts = told
        self._trying.hear(message, told)
        if not self._opened:  # what it would read of the run is not all there yet
            return
        digest, whole, wants_facts = self._trying.answer(message, self._facts is None)
        options, mark = self.options, mark_of(self.state) if self.apart else ""
        answer = DeskHere(message.life, digest, options.until_done, options.measured, wants_facts, mark, whole)
        self.transport.send(ROLL, sender, encode(answer))
