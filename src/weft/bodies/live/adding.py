"""How do queries come to a run? Checked, placed and tried out beside it; then their sinks are claimed, and it is asked.

One file of queries at a time: until it is in force or refused, the next waits. What takes its time (planning, Spark's
word on each operator) is done beside the run; what changes its state is done in its own thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from weft.bodies.live.assembly import cutting
from weft.bodies.live.calibration import corrected_by_last_run, known_costs
from weft.bodies.live.facts import meanings
from weft.bodies.live.last_run import last_measured
from weft.bodies.live.moves import Asked
from weft.bodies.live.rates import kept_rates
from weft.bodies.live.resuming import CLOSING, Resuming
from weft.bodies.live.returning_queries import coming_again, remove_left
from weft.bodies.live.state import CannotRun, why_not_delivered
from weft.model import Control, Deployment, Query
from weft.model.wishes import AddQuery, By
from weft.plan import counting_hops
from weft.plan.changing.adding import coming
from weft.plan.changing.next_plan import next_plan, why_taken
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan
from weft.plan.dataflow.offering import nearest_offered
from weft.plan.dataflow.real_time import real_time
from weft.plan.dataflow.sharing import as_written
from weft.plan.judging.admission import judge, why_ideal_now
from weft.plan.observing.measured import with_measured, with_series
from weft.spark.channels.kinds import MIRROR
from weft.spark.failures.causes import cause_of
from weft.spark.fragments.outputs import claims_of
from weft.spark.kafka.client import KafkaTrouble
from weft.spark.kafka.jars import NoJars
from weft.spark.kafka.topics import check_topics
from weft.spark.sinks.ownership import RUN_FILE
from weft.spark.storage.disk import Damaged
from weft.spec import as_plain_queries, beside_state, plain_added

if TYPE_CHECKING:
    from weft.bodies.live.house import Learned
    from weft.bodies.live.view import RunView

CLOSES = "the run is coming to its end, and has begun to close its windows"


@dataclass(slots=True)
class _Coming:
    """Queries that wait, as plain values, and what becomes of them."""

    plain: Mapping[str, Any]
    asked: Asked
    reason: str
    by: By
    anyway: bool


@dataclass(frozen=True, slots=True)
class _Ready:
    """Queries that nothing stands against, and what was found out of them."""

    wish: AddQuery
    learned: Learned


class Adding:
    """The way of queries into a run; `control` is the file's own, whose ordering is not written out yet."""

    def __init__(self, run: RunView, control: Control) -> None:
        self.run = run
        self.control = control
        self._waiting: deque[_Coming] = deque()
        self._tried: tuple[_Coming, Future[_Ready]] | None = None
        self._under_way: Asked | None = None
        self._work = ThreadPoolExecutor(max_workers=1, thread_name_prefix="adding")

    def add(self, plain: Mapping[str, Any], names: tuple[str, ...], reason: str, by: By, anyway: bool = False) -> Asked:
        """Let queries come, `anyway` though a promise breaks; what becomes of them stands in the value returned."""
        assert self.run.changes is not None, "queries come to a run that has begun"
        unplaced = AddQuery(tuple(Query(name, (), ()) for name in names), {}, reason=reason, by=by)
        asked = self.run.changes.expect(unplaced)
        self._waiting.append(_Coming(plain, asked, reason, by, anyway))
        return asked

    @property
    def busy(self) -> bool:
        """True while queries are on their way into the plan."""
        return self._under_way is not None and self._under_way.state == "asked"

    def look(self) -> None:
        """Take the next step, if it can be taken."""
        if self.busy:
            return
        self._under_way = None
        if self._tried is not None:
            if self._tried[1].done():
                (one, future), self._tried = self._tried, None
                self._take(one, future)
        elif self._waiting:
            one = self._waiting.popleft()
            self._tried = (one, self._work.submit(self._try, one))

    def leave(self, why: str) -> None:
        """What still waits does not come."""
        changes = self.run.changes
        assert changes is not None
        waiting = [*self._waiting, *([self._tried[0]] if self._tried is not None else [])]
        self._waiting.clear()
        self._tried = None
        for one in waiting:
            changes.refuse(one.asked, why)

    def stop(self) -> None:
        """No more is done."""
        self._work.shutdown(wait=False, cancel_futures=True)

    def _try(self, one: _Coming) -> _Ready:
        """Find out, without changing anything, whether queries can come; CannotRun where they cannot."""
        changes, house = self.run.changes, self.run.sites
        assert changes is not None
        assert house is not None
        now = changes.in_force
        taken = why_taken(now.deployment, one.asked.wish.queries) if isinstance(one.asked.wish, AddQuery) else None
        if taken is not None:
            raise CannotRun(taken)
        added = plain_added(one.plain, as_written(now.deployment))
        if added.errors:
            raise CannotRun("; ".join(f"{problem.field}: {problem.message}" for problem in added.errors))
        wish = coming(
            now.deployment, now.placement, added.queries, self.control, one.reason, one.by, self._as_planners_see
        )
        if isinstance(wish, Impossible):
            raise CannotRun(wish.why)
        names = {query.name for query in wish.queries}
        whole = replace(now.deployment, queries=(*now.deployment.queries, *wish.queries))
        at_once = names & set(real_time(whole))
        if at_once:
            raise CannotRun(f"{min(at_once)} runs record by record, which a run must start with: put it into the file")
        wish = self._with_offered(self._admitted(now, wish, one.anyway), whole)
        self._refuse_sinks(replace(whole, queries=wish.queries))
        learned = house.try_out(whole)
        if learned.lacks is not None:
            raise CannotRun(learned.lacks)
        return _Ready(wish, learned)

    def _admitted(self, now: RunningPlan, wish: AddQuery, anyway: bool) -> AddQuery:
        """The wish, with what it means for promises as its reason; CannotRun where one would break, unless anyway.

        Judged as `weft plan --add` does: with what was measured so far, around what runs.
        """
        running = self._as_planners_see(now.deployment)
        costs = None
        if why_ideal_now(running) is None:
            known, _ = known_costs()
            costs, _ = corrected_by_last_run(running, self.run.state.path, now.placement, now.fragments, known)
        found = judge(running, now.placement, wish, costs)
        if found.refused and not anyway:
            raise CannotRun("; ".join(found.refused))
        told = [*(f"anyway: {why}" for why in found.refused), *found.levels]
        return replace(wish, reason="; ".join([wish.reason, *told])) if told else wish

    def _with_offered(self, wish: AddQuery, whole: Deployment) -> AddQuery:
        """The wish, with what of it sites offer already, as the directory last told, among its reasons."""
        names = {query.name for query in wish.queries}
        where = self.run.finding.where() if self.run.finding is not None else {}
        told = [one.words for one in nearest_offered(whole, names, where)] if where else []
        return replace(wish, reason="; ".join([wish.reason, *told]))

    def _as_planners_see(self, deployment: Deployment) -> Deployment:
        known, _ = with_measured(deployment, last_measured(self.run.state.path))
        if known.control.project is not None:
            known, _ = with_series(known, kept_rates(self.run.state))
        return counting_hops(known, known_costs()[0].hop_ms)

    def _refuse_sinks(self, deployment: Deployment) -> None:
        """Refuse folders that cannot be written or lie in the way of the state, and topics that are not there."""
        for message in beside_state(deployment, str(self.run.state.path)):
            raise CannotRun(message)
        for claim in claims_of(deployment, self.run.state.folders):
            why_not = why_not_delivered(claim.path, claim.hidden) if claim.has_path else None
            if why_not:
                raise CannotRun(f"sink of {claim.sink}: {claim.path}: {why_not}")
        if any(sink.facts.has_topic for query in deployment.queries for sink in query.sinks):
            try:
                check_topics(deployment)
            except (KafkaTrouble, NoJars) as error:
                raise CannotRun(str(error)) from error

    def _take(self, one: _Coming, future: Future[_Ready]) -> None:
        changes, house = self.run.changes, self.run.sites
        assert changes is not None
        assert house is not None
        try:
            ready = future.result()
            learned = ready.learned
            facts = meanings(learned.deployment, learned.facts)
            rules = Rules(cutting(*facts), changes.rules.paths, changes.rules.instances)
            door = next_plan(changes.in_force, ready.wish, rules)
            if isinstance(door, Impossible):
                raise CannotRun(door.why)
            self._claim(ready.wish)
        except (CannotRun, Damaged) as error:
            changes.refuse(one.asked, str(error))
            return
        except Exception as error:
            folder = self.run.deployment.folder
            changes.refuse(one.asked, cause_of(error, folder, places=[str(self.run.state.path)]).text)
            return
        changes.rules = rules
        house.learn(learned)
        self.run.know(learned.deployment)
        self._under_way = changes.ask(ready.wish, expected=one.asked)

    def _claim(self, wish: AddQuery) -> None:
        """Let sinks be this run's, and forget what queries of these names left; CannotRun where results double."""
        state, changes = self.run.state, self.run.changes
        assert changes is not None
        if state.read(CLOSING) is not None:
            raise CannotRun(CLOSES)
        alone = replace(changes.in_force.deployment, queries=wish.queries, sharing=None)
        resuming = Resuming(state, alone, {})
        record = state.record()
        assert record is not None, "a run that has begun has a record"
        claims = claims_of(alone, state.folders)
        again = coming_again(state, {query.name for query in wish.queries}, claims)
        if again and state.channels.uses(MIRROR):
            raise CannotRun(
                f"query {again[0]} ran before, and sites hold what it left: where streams are mirrored it does not "
                "come again; give it another name"
            )
        standings = resuming.standings(record, again)
        sinks = {**record.sinks, **{claim.sink: str(claim.path) for claim in claims}}
        record = msgspec.structs.replace(record, sinks=sinks)
        state.write(RUN_FILE, record)
        if again:
            remove_left(state, again)
            changes.forget_query(again)
            self.run.forget(again)
        resuming.claim(record, standings)
        for text in [*(f"query {name} ran before, and begins anew" for name in again), *resuming.notes]:
            self.run.note(text)


def plain_of(queries: tuple[Query, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Queries as a request holds them, and their names."""
    return as_plain_queries(queries), tuple(query.name for query in queries)
