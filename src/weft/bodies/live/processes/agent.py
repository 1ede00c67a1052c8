"""What does the process of a site do? It drives its site's Spark and runs what a desk has asked of it, there or not.

It ends in order when the desk says that the run is over, when it is told to by a signal, by `weft stop` where no desk
is left, and where it has heard of no desk for ten minutes and runs nothing. Its Spark gone, it ends at once: whoever
started it starts it again.

Its state is the folder that the desk has, or, where the desk says that they share none, one of its own with copies of
what a site must know of the run (`copies.py`).
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from weft.bodies.live import journal
from weft.bodies.live.balancing.kept import KeptBalance
from weft.bodies.live.companions import companions_of
from weft.bodies.live.engine import Engine
from weft.bodies.live.epochs import SiteEpochs
from weft.bodies.live.facts import facts_of, meanings
from weft.bodies.live.machine_state import MachineLook
from weft.bodies.live.mirrors.apart import Apart
from weft.bodies.live.mirrors.by_plan import ByPlan
from weft.bodies.live.mirrors.mirroring import Mirroring
from weft.bodies.live.parcels import pack
from weft.bodies.live.processes import roll
from weft.bodies.live.processes.bandwidth import BandwidthLook
from weft.bodies.live.processes.copies import Copies, claim_here, is_run_of
from weft.bodies.live.processes.learning import Learning
from weft.bodies.live.sharing import to_run
from weft.bodies.live.site import SiteBody
from weft.bodies.live.state import KEYS, STOP, CannotRun, State
from weft.bodies.live.story_file import StoryFile
from weft.bodies.live.transport import ROLL, Address, agent
from weft.bodies.live.wire.credentials import NoKey, credentials
from weft.bodies.live.wire.deployed import addresses
from weft.bodies.live.wire.parties import THE_DESK, Party
from weft.bodies.live.wire.parties import site as party_of
from weft.bodies.live.wire.port import LOOPBACK, Port
from weft.model import Deployment
from weft.model.sites import where
from weft.plan.dataflow.event_times import carried_times
from weft.plan.network.paths import Paths
from weft.protocol.agents import ENDED, FAILED, READY, STARTING, AgentHere, CutOff, DeskHere, EndAgent, Neighbour
from weft.protocol.messages import REASON_CHARS_MAX, BadMessage, decode, encode
from weft.protocol.words import Parcel
from weft.spark import process
from weft.spark.channels.folders import Folders
from weft.spark.checkpoints import inspection
from weft.spark.fragments.operators import BadOperator
from weft.spark.fragments.outputs import claims_of
from weft.spark.storage import temporary
from weft.spec import absolute

ANNOUNCE_S = 1.0
LOOK_S = 0.25
NO_DESK_S_MAX = 600.0
TOLD_S_MAX = 30.0

StartSpark = Callable[[Deployment, str, Folders, Path], process.SparkProcess]


class DeskOptions(NamedTuple):
    """How the run was asked for, as the desk said."""

    graph: str
    whole: Parcel
    until_done: bool
    measured: bool
    copies: str = ""


class NoDesk(RuntimeError):
    """No desk was heard of for too long, or the one that is there has another graph: it may be started again."""


class AgentProcess:
    """One site, in this process."""

    def __init__(
        self, deployment: Deployment, site: str, folder: Path, start: StartSpark = process.start_site,
        takes_queries: bool = False,
    ) -> None:  # fmt: skip
        self.deployment = deployment
        self.learning = Learning(takes_queries, self._learned)
        self.site = site
        self.state = State(folder, deployment.store.fsync, deployment.channels, site)
        self._start_spark = start
        self.life = uuid.uuid4().hex
        self.phase = STARTING
        self.reason = ""
        self.body: SiteBody | None = None
        self.spark: process.SparkProcess | None = None
        self._port: Port | None = None
        self._asked: DeskOptions | None = None
        self._wants_facts = False
        self._over = threading.Event()
        self._ended = threading.Event()
        self._heard_s = time.monotonic()
        self._known: dict[Party, roll.Where] = {}
        self._near = {
            far for link in deployment.links for far in (link.from_, link.to) if site in (link.from_, link.to)
        }
        self._near.discard(site)
        self._machine = MachineLook(folder.parent)
        self._bandwidth = BandwidthLook(site, deployment)
        self._where: roll.Where = LOOPBACK
        self._story: StoryFile | None = None
        self._named = addresses(deployment)
        self._copies: Copies | None = None
        self._mark = ""  # of what the desk's files hold, where it shares none with this process

    def stop(self) -> None:
        """Ask for an orderly end."""
        self._over.set()

    def go(self) -> int:
        """Run the site to its end; the process's exit status."""
        lock = roll.lock_site(self.state.path, self.site)
        try:
            if self.deployment.keys is None or not {THE_DESK, party_of(self.site)} <= self._named.keys():
                self._wait_for_state()  # it says how the desk is found
            return self._live()
        except NoDesk as error:
            self.reason = str(error)
            return 1
        finally:
            if self._story is not None:
                self._story.close()
            lock.close()

    def _wait_for_state(self) -> None:
        """A desk makes the state and its keys; an agent may be there before."""
        while self.state.record() is None or roll.find_desk(self.state.path) is None:
            self._wait(LOOK_S)
        self._take_up()

    def _take_up(self) -> None:
        record = self.state.record()
        if record is None or not is_run_of(record, self.deployment):
            raise CannotRun(f"{self.state.path} holds the run of another file; give `weft agent` the file that it runs")
        self.state.is_of(record)
        self._tell_of(self.state)

    def _take_copies(self) -> None:
        """Have what a site must know of the run of a desk whose folder is another; sinks of this site become its."""
        assert self._copies is not None
        if roll.desk_lives(self.state.path):
            raise CannotRun(f"{self.state.path} is the desk's own state: give `weft agent` another with --state")
        self.state.check_place()
        (self.state.path / STOP).unlink(missing_ok=True)  # meant for an agent that is gone
        before = self.state.record()
        while True:
            try:
                self._copies.bring(self._mark)
                break
            except OSError:
                self._wait(LOOK_S)
        self._take_up()
        record = self.state.record()
        assert record is not None
        claim_here(self.state, self.deployment, self.site, record, before is not None)

    def _tell_of(self, state: State) -> None:
        if self._story is None:
            self._story = StoryFile(state.path / "story.log")

    def _tell(self, line: str) -> None:
        """Write to the story, once it is known of which run."""
        if self._story is not None:
            self._story.write(line)

    def _share(self) -> None:
        """Have the graph that the desk has."""
        assert self._asked is not None
        own = to_run(self.deployment, self.state, False, data=False)
        found = self.learning.begin(own, self.deployment, self._asked.graph, self._asked.whole)
        if found is None:
            raise NoDesk(
                "its queries are not the desk's, or share operators otherwise; `weft agent --takes-queries` runs those "
                "that came, too"
            )
        self.deployment = found

    def _learned(self, deployment: Deployment) -> None:
        self.deployment = deployment

    def _wait(self, seconds: float) -> None:
        """Wait a moment for a desk; NoDesk where none comes, or nobody wants the site any more."""
        if self._over.wait(seconds):
            raise NoDesk("it was ended before a desk was there")
        if time.monotonic() > self._heard_s + NO_DESK_S_MAX:
            raise NoDesk(f"no desk was heard of for {NO_DESK_S_MAX:.0f} s")

    def _live(self) -> int:
        keys = self.state.path / KEYS
        if self.deployment.keys is not None:
            keys = Path(absolute(self.deployment.keys, self.deployment.folder))
        address = self.deployment.site(self.site).address
        try:
            shown = credentials(keys, party_of(self.site))
        except NoKey as error:
            raise CannotRun(str(error)) from error
        listen = LOOPBACK if address is None else where(address)
        self._port = port = Port(shown, roll.digest(self.deployment), listen, tell=self._tell)
        self._copies = Copies(port, self.state)
        try:
            found = port.start()
        except OSError as error:
            raise CannotRun(f"site {self.site} cannot listen at {listen[0]}:{listen[1]}: {error}") from error
        assert found is not None
        roll.tell_site(self.state, self.site, found)
        self._where = found
        port.open(agent(self.site), self._deliver)
        threading.Thread(target=self._announce, name="announce", daemon=True).start()
        try:
            while self._asked is None:
                self._wait(LOOK_S)
            return self._run()
        finally:
            self._ended.set()
            port.stop()

    def _run(self) -> int:
        assert self._asked is not None
        try:
            if self._asked.copies:
                self._take_copies()
            else:
                self._wait_for_state()  # a desk that starts over has made another state since
            self._share()
            self._mend()
            self._start()
        except NoDesk:
            raise
        except Exception as error:
            self._failed(error)
            self._say_ended()
            if isinstance(error, CannotRun):
                raise
            return 1
        roll.tell_site(self.state, self.site, self._where, runs=True)
        self.phase = READY
        self._look_after()
        assert self.body is not None
        assert self.spark is not None
        if not self.spark.alive():
            self._tell(f"# {self.site}: its Spark has gone; the process ends")
            os._exit(1)  # nothing can end in order, and what it would say would only confuse
        self.body.stop()
        self.spark.close()
        self._say_ended()
        return 0

    def _say_ended(self) -> None:
        """Let a desk that shares no folder with this site know that its process is over: nobody else would tell."""
        self.phase = ENDED
        if self._asked is not None and self._asked.copies and self._port is not None:
            self._port.send(agent(self.site), ROLL, encode(self._here()))

    def _start(self) -> None:
        """Spark, the engine, and the site's host."""
        record = self.state.path / "agents" / f"{self.life}.temporary"
        for left in record.parent.glob("*.temporary"):
            temporary.sweep(left)
        self.spark = spark = self._start_spark(self.deployment, self.site, self.state.folders, record)
        asked = self._asked
        assert asked is not None
        times = carried_times(self.deployment, *meanings(self.deployment, facts_of(spark.analysis)))
        engine: Engine
        engine = own = spark.engines(times, Paths(self.deployment).between, asked)(self.site)
        self.learning.run(self.deployment, spark, own)
        assert self._port is not None
        if self.state.site:
            mirroring = Mirroring(self._port, self.state.folders, self._tell)
            engine = Apart(self.site, engine, mirroring, ByPlan(self.site, self.state, mirroring), self._await_plan)
        epochs, balance = SiteEpochs(self.state, self.site), KeptBalance(self.state, self.site)
        self.body = body = SiteBody(self.site, epochs, balance, engine, self._port, self._tell, asked.measured)
        body.companions += companions_of(body, lambda: self.deployment, self.state, self._port, self._tell)
        body.start()

    def _mend(self) -> None:
        """Take back what an earlier process of this site, that was killed, has left half done."""
        if self.state.site:  # rooms that nobody else looks at
            for channel in self.state.folders.streams():
                channel.forget_aside()
        held = journal.read(self.state)
        if held is None:
            return
        own = [one for one in held.fragments if one.site == self.site]
        claims = claims_of(self.deployment, self.state.folders)
        left = inspection.left_by_a_kill(self.state.folders, own, held.generations, held.gates, claims)
        inspection.mend(left, self.state.disk)
        inspection.mend_ticks(self.state.folders, own)

    def _failed(self, error: Exception) -> None:
        """Let the desk know why this site cannot run, before the process ends."""
        self.phase = FAILED
        plain = isinstance(error, BadOperator | CannotRun)
        self.reason = str(error) if plain else f"{type(error).__name__}: {error}"
        self._over.wait(TOLD_S_MAX)

    def _look_after(self) -> None:
        """Until somebody ends the site, or nobody will ever ask anything of it."""
        assert self.body is not None
        assert self.spark is not None
        while not self._over.wait(LOOK_S) and self.spark.alive():
            if roll.desk_lives(self.state.path):
                continue
            silent = time.monotonic() > self._heard_s + NO_DESK_S_MAX
            if (self.state.path / STOP).exists() or (silent and not self.body.running):
                return

    def _await_plan(self, number: int) -> None:
        """Have the journal of a plan in this site's folder: at once where the desk writes it there."""
        if self._copies is not None and self._asked is not None and self._asked.copies:
            self._copies.have_plan(number)

    def _keep_up(self) -> None:
        """Have what the desk's files hold by now, where they are not this site's own."""
        if self._copies is not None and self._asked is not None and self._asked.copies:
            try:
                with suppress(OSError):  # it is asked for again
                    self._copies.bring(self._mark)
            except CannotRun as error:  # a desk that has begun another run, which this site cannot be part of
                self.phase, self.reason = FAILED, str(error)

    def _announce(self) -> None:
        """Say every second that this site is there."""
        assert self._port is not None
        while not self._ended.wait(ANNOUNCE_S):
            self._find_others()
            if self.phase == READY:
                self._keep_up()
            if THE_DESK in self._known:
                self._port.send(agent(self.site), ROLL, encode(self._here()))

    def _find_others(self) -> None:
        """Know where the desk listens, and other sites, whose streams may be followed."""
        assert self._port is not None
        others = [one.name for one in self.deployment.sites if one.name != self.site]
        found = {party_of(name): roll.find_site(self.state.path, name) for name in others}
        for party, entry in {THE_DESK: roll.find_desk(self.state.path), **found}.items():
            where = self._named.get(party, entry.where if entry is not None else None)
            if where is not None and where != self._known.get(party):
                self._known[party] = where
                self._port.know(party, where)
                if party.site in self._near:  # a word is enough for the port to keep a connection
                    self._port.send(agent(self.site), agent(party.site), encode(Neighbour()))

    def _here(self) -> AgentHere:
        knows = self.learning.knows  # before facts: those are of this graph, or a later one
        spark, body = self.spark, self.body
        facts = pack(facts_of(spark.analysis)) if spark is not None and self._wants_facts else pack(None)
        ui = (spark.ui or "") if spark is not None else ""
        runs = body.runs() if body is not None else ()
        assert self._port is not None
        near = {party.site: round(ms, 3) for party, ms in self._port.round_trips().items() if party.site in self._near}
        carried = {party.site: one for party, one in self._port.traffic().items() if party.site in self._near}
        ways = self._bandwidth.now(time.monotonic(), carried)
        machine = replace(self._machine.now(), round_trip_ms=near, **ways._asdict())
        reason, refuses = (self.reason or self.learning.why)[:REASON_CHARS_MAX], self.learning.refuses
        return AgentHere(self.life, os.getpid(), self.phase, reason, ui, runs, facts, machine, knows, refuses)

    def _deliver(self, sender: Address, data: bytes) -> None:
        try:
            message = decode(data)
        except BadMessage:
            return
        if sender != ROLL:
            return
        match message:
            case DeskHere(life=life) if life == self.life:
                self._heard_s = time.monotonic()
                self._wants_facts = message.wants_facts
                self._mark = message.copies
                if self._asked is None:
                    self._asked = DeskOptions(
                        message.graph, message.whole, message.until_done, message.measured, message.copies
                    )
                elif self.phase == READY:
                    self.learning.hear(message.graph, message.whole)
            case CutOff(life=life, site=site, for_s=for_s) if life == self.life and self._port is not None:
                self._port.cut(party_of(site), for_s)
            case EndAgent(life=life) if life == self.life:
                self._over.set()
