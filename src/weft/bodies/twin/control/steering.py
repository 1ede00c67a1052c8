"""What is done to a run of the twin, and who does it? Scenario, agents and desk, between the record plane's events.

Every operator is a fragment of its own. The desk (conductor and mover) stands at the first site of the deployment and
does not crash; hosts crash and restart with their sites. A move pauses its operator from its clean end until it is
launched at the new site, which takes 20 ms a record that waits for it, or where it has state, as long as that takes
over the links; that a site makes ready and carries over what will start there is said and done in no time. What waits
travels along; what is under way to the old site is forwarded. Where sites balance, their balancers ask for moves; where
operators scale, their instances ask for more or fewer. All wishes go through `changes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from weft.bodies.twin.control.balancing import Balancing
from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.control.changes import CONTROLLER, DESK, Changes
from weft.bodies.twin.control.observing import Advising
from weft.bodies.twin.control.scaling import MARK as SCALE_MARK
from weft.bodies.twin.control.scaling import Scaling as Autoscaling
from weft.bodies.twin.outcome.result import Move
from weft.bodies.twin.outcome.uptime import Outage
from weft.bodies.twin.records import Records, Scaling, names_of
from weft.model import (
    AddAt,
    Control,
    CrashAt,
    Deployment,
    MoveAt,
    PartitionAt,
    Placement,
    Query,
    RemoveAt,
    RestartAt,
)
from weft.model.wishes import SPOKEN, AddQuery, MoveTo, RemoveQuery, Wish, plain_wish
from weft.plan import batch_ms, counting_hops
from weft.plan.changing.adding import coming
from weft.plan.changing.fragments import each_alone
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan, first_plan
from weft.plan.judging.admission import judge
from weft.plan.network.paths import Paths
from weft.protocol import Effect
from weft.protocol.balancing import AGAIN_MS, MARK, asks_again
from weft.protocol.change_messages import after_of
from weft.protocol.control import Controller, Rounds, looks_every_s
from weft.protocol.hosting import (
    Died,
    Fence,
    GaveUp,
    Halt,
    Halted,
    Launch,
    Launched,
    Refused,
    Remember,
    Want,
)
from weft.protocol.moving import CarriedOver, Carry, Desk, Host, InForce, Start, Warm, Warmed

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
NEVER = -(1 << 62)
START_NS_MIN = 1 * NS_PER_S
MOVE_MS_PER_RECORD = 20.0
AGAIN_NS = 1 * NS_PER_S
SCENARIO = "asked for by the scenario"


def steers(deployment: Deployment) -> bool:
    """Whether machines take part: something moves, crashes, comes or goes, sites balance, or relief acts."""
    acts = any(isinstance(what, MoveAt | CrashAt | RestartAt | AddAt | RemoveAt) for what in deployment.scenario)
    control = deployment.control
    return acts or control.balance is not None or (control.relief is not None and control.advise is None)


def interrupts(deployment: Deployment) -> bool:
    """Whether something in a deployment may hold an operator or a site in mid-service, or change who serves."""
    return steers(deployment) or deployment.control.scale is not None or looks_every_s(deployment) is not None


def _named(wish: Wish, named: Callable[[str], str]) -> Wish:
    if not isinstance(wish, MoveTo):
        return wish
    return replace(wish, homes={stream: named(site) for stream, site in wish.homes.items()})


class Steering:
    """Acts out a scenario on a record plane; machines take part only where something moves, crashes or restarts."""

    def __init__(
        self,
        deployment: Deployment,
        placement: Placement,
        records: Records,
        capacities: tuple[tuple[float, str, float], ...] = (),
        move_ms_per_record: float = MOVE_MS_PER_RECORD,
        instances: tuple[Scaling, ...] = (),
        begins: tuple[Deployment, Placement] | None = None,
        control: Control | None = None,
    ) -> None:
        self.deployment = deployment
        self._control = control or deployment.control
        self.records = records
        self.moves: list[Move] = []
        self.warnings: list[str] = []
        self._keys = {stream: names_of(stream) for stream in placement.homes}
        self._move_ms_per_record = move_ms_per_record
        self._remembered: dict[str, dict[str, int]] = {}
        self._fences: dict[str, int] = {}
        self._alive: dict[str, tuple[str, int]] = {}
        self._halted_ns: dict[str, int] = {}
        self._paused: dict[tuple[int, str], int] = {}
        self._given_up: set[str] = set()
        self._ever_given_up: set[str] = set()
        self._cut_until: dict[frozenset[str], int] = {}
        self._down: set[str] = set()
        self.outages: list[Outage] = []
        balance = deployment.control.balance
        self.steered = steers(deployment)
        self.carrier = Carrier(self.message_ns, self._perform, self._start_ns() if self.steered else 0)
        whole, (deployment, placement) = deployment, begins or (deployment, placement)
        looks = looks_every_s(deployment) is not None
        hops = counting_hops(deployment, batch_ms(deployment)) if looks else deployment
        self.rounds = Rounds(hops, placement)
        self.carrier.add(Controller(CONTROLLER, advises=deployment.control.advise is not None))
        self.changes = Changes(
            deployment, placement, records, self.carrier, self.rounds, lambda: self._rules, self._state_ns
        )
        self.changes.grant = self._grant
        self.homes = self.changes.homes
        for at_s, site, capacity in capacities:
            self._at(at_s, partial(records.set_capacity, site, capacity))
        for at_s, verb, operator, site in instances:
            self._at(at_s, partial(self._scale, operator, site, verb == "start"))
        for what in whole.scenario:
            self._plan(what)
        if self.steered:
            self._begin()
        elif instances or deployment.control.scale is not None:
            self.carrier.add(Desk(DESK))
            self.changes.plan = first_plan(deployment, placement, self._rules)
            self.carrier.take(DESK, InForce(0, ()))  # all operators run already, and no agent looks after them
        self.balancing: Balancing | None = None
        if balance is not None:
            self.balancing = Balancing(balance, deployment, placement, self.carrier, records, self._move)
        self.scaling: Autoscaling | None = None
        if (scale := deployment.control.scale) is not None:
            self.scaling = Autoscaling(
                scale, deployment, self.changes, self.carrier, records, self.moves, self.warnings, self._paths
            )
        self.advising: Advising | None = None
        if looks:
            self.advising = Advising(self.rounds, self)

    def changes_made(self, named: Callable[[str], str] = str) -> list[dict[str, Any]]:
        """Every change that was asked for or advised, in the order of time; `named` tells how a site is called."""
        told = [
            {
                "at_s": one.at_s,
                "by": SPOKEN.get(one.wish.by, one.wish.by),
                "wish": plain_wish(_named(one.wish, named)),
                "reason": one.wish.reason, "state": one.state, "why": one.why, "pause_ms": self._pause_ms(number),
            }
            for number, one in self.changes.asked.items()
            if one.state != "asked"
        ]  # fmt: skip
        return sorted([*told, *self.rounds.decisions.advised()], key=lambda one: one["at_s"])

    def _pause_ms(self, number: int) -> float | None:
        """How long the operator of a change that stood still longest did so; 0 where none had to."""
        pauses = [pause_ns / NS_PER_MS for (change, _), pause_ns in self._paused.items() if change == number]
        return max(pauses, default=0.0) if self.changes.asked[number].state == "done" else None

    def up(self, site: str) -> bool:
        """True if a site is not lost."""
        return site not in self._down

    def running(self) -> Placement:
        """Where operators run now."""
        return self.changes.plan.placement

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self.deployment)

    @cached_property
    def _rules(self) -> Rules:
        return Rules(each_alone, self._paths, instances=True)

    def _start_ns(self) -> int:
        """So long before sources flow that every operator runs when they do."""
        first = self.deployment.sites[0].name
        paths = [self._paths.between(first, site.name) for site in self.deployment.sites]
        farthest_ms = max(path.delay_ms for path in paths if path is not None)
        return -START_NS_MIN - round(4 * farthest_ms * NS_PER_MS)

    def _begin(self) -> None:
        for key in self._keys.values():
            self.records.hold(key, False)
        for site in self.deployment.sites:
            self.carrier.add(Host(site.name))
        self.carrier.add(Desk(DESK))
        self.changes.plan = first_plan(self.changes.plan.deployment, self.running(), self._rules)
        starts = tuple(Start(fragment, site) for fragment, site in self.homes.items())
        self.carrier.feed(DESK, InForce(0, starts))

    def run(self, until_ns: int) -> None:
        """Runs both planes up to a moment; what is steered at a moment comes before its events."""
        while (due_ns := self.carrier.next_ns()) is not None and due_ns < until_ns:
            if due_ns > self.records.now_ns:
                self.records.advance(due_ns)
            self.carrier.step()
        self.records.advance(until_ns)

    def _at(self, at_s: float, do: Callable[[], None]) -> None:
        self.carrier.at(round(at_s * NS_PER_S), do)

    def _plan(self, what: object) -> None:
        match what:
            case MoveAt(at_s=at_s, move=operator, to=to):
                move = MoveTo({operator: to}, SCENARIO, "scenario")
                refused = partial(self._refused, f"{operator} did not move to {to} at {at_s:g} s")
                self._at(at_s, partial(self.changes.ask, self._store(move, at_s, refused)))
            case AddAt(at_s=at_s, queries=queries, anyway=anyway):
                names = ", ".join(query.name for query in queries)
                wish = AddQuery(queries, {}, reason=SCENARIO, by="scenario")
                number = self._kept(wish, at_s, f"{names} did not come at {at_s:g} s")
                self._at(at_s, partial(self._add, number, queries, anyway))
            case RemoveAt(at_s=at_s, remove=query):
                gone = RemoveQuery(query, SCENARIO, "scenario")
                number = self._kept(gone, at_s, f"{query} did not go at {at_s:g} s")
                self._at(at_s, partial(self.changes.ask, number))
            case CrashAt(at_s=at_s, crash=site):
                self._at(at_s, lambda: self._crash(site))
            case RestartAt(at_s=at_s, restart=site):
                self._at(at_s, lambda: self._restart(site))
            case PartitionAt(at_s=at_s, partition=(one, other), for_s=for_s):
                until_ns = round((at_s + for_s) * NS_PER_S)
                self._at(at_s, lambda: self._cut(one, other, until_ns))

    def _kept(self, wish: Wish, at_s: float, refused: str) -> int:
        """Keeps a wish for its time; where it is refused, that is told."""

        def told(why_not: str | None, word: str) -> None:
            if why_not is not None:
                self._refused(refused, why_not)

        return self.changes.store(wish, at_s, told)

    def _add(self, number: int, queries: tuple[Query, ...], anyway: bool) -> None:
        """Queries come to what runs by now, placed around it, unless a promise would break; `anyway` even then."""
        plan = self.changes.plan
        wish = coming(plan.deployment, plan.placement, queries, self._control, SCENARIO, "scenario")
        if isinstance(wish, Impossible):
            self.changes.end(number, wish.why)
        elif any(stream not in self._keys for stream in wish.homes):
            self.changes.end(number, "it had no place when the run was laid out")
        elif not anyway and (refused := self._refused_promises(plan, wish)):
            self.changes.end(number, refused)
        else:
            self.changes.asked[number].wish = wish
            self.changes.ask(number)

    def _refused_promises(self, plan: RunningPlan, wish: AddQuery) -> str:
        """Which promises would break, by the ideal model, which scenarios with queries that come are run by."""
        return "; ".join(judge(plan.deployment, plan.placement, wish, None).refused)

    def _refused(self, what: str, why_not: str) -> None:
        self.warnings.append(f"{what}: {why_not}")

    def _scale(self, operator: str, site: str, more: bool) -> None:
        """An instance comes or goes as the run was told to have it; that is noted, or why it cannot be."""
        at_s = self.carrier.now_ns / NS_PER_S

        def told(why_not: str | None, word: str) -> None:
            if why_not is not None:
                self.warnings.append(f"at {self.carrier.now_ns / NS_PER_S:g} s: {why_not}")
            else:
                way = ("", site) if more else (site, "")
                self.moves.append(Move(*self._keys[operator], *way, at_s, None, SCENARIO))

        self.changes.scale(operator, site, more, SCENARIO, told, "scenario")

    def _move(self, operator: str, to: str, reason: str) -> None:
        """Asks for a move that balancers have agreed upon, at once."""
        at_s = max(0, self.carrier.now_ns) / NS_PER_S
        again = partial(self._again, operator, to, reason)
        self.changes.ask(self._store(MoveTo({operator: to}, reason, "balance"), at_s, again), at_once=False)

    def _grant(self, wish: MoveTo) -> int:
        """Keeps what a rule wishes and the controller asks for; the number of its change."""
        return self._store(wish, max(0, self.carrier.now_ns) / NS_PER_S, lambda why_not: None)

    def _store(self, wish: MoveTo, at_s: float, refused: Callable[[str], None]) -> int:
        """Keeps a move for its time; once made it is noted, and where it is refused, somebody is told."""

        def told(why_not: str | None, word: str) -> None:
            if why_not is None:
                self._note(number, wish, at_s, word)
            else:
                refused(why_not)

        number = self.changes.store(wish, at_s, told)
        return number

    def _again(self, operator: str, to: str, reason: str, why_not: str) -> None:
        """A move that a balancer counts on did not come about: it is asked for again."""
        if self.balancing and asks_again(self.homes[operator], self.balancing.homes[operator], to):
            again = partial(self._move, operator, to, reason)
            self.carrier.at(self.carrier.now_ns + AGAIN_MS * NS_PER_MS, again)

    def _note(self, number: int, wish: MoveTo, at_s: float, reason: str) -> None:
        for operator, to in wish.homes.items():
            before = self.changes.before.get((number, operator))
            if before is not None:
                pause_ns = self._paused.get((number, operator))
                pause_ms = None if pause_ns is None else pause_ns / NS_PER_MS
                names = self._keys[operator]
                self.moves.append(Move(*names, before, to, at_s, pause_ms, reason or wish.reason))

    def _cut(self, one: str, other: str, until_ns: int) -> None:
        self.records.cut(one, other, until_ns)
        self._cut_until[frozenset((one, other))] = until_ns

    def _crash(self, site: str) -> None:
        if site in self._down:
            return
        self._down.add(site)
        self.outages.append(Outage(site, dict(self.homes), self.carrier.now_ns))
        self.carrier.lose(site)
        if self.balancing is not None:
            self.balancing.crash(site)
        self.records.crash(site)
        for fragment, (where, _) in list(self._alive.items()):
            if where == site:
                del self._alive[fragment]
                self.records.hold(self._keys[fragment], False)

    def _restart(self, site: str) -> None:
        if site not in self._down:
            return
        self._down.discard(site)
        self.outages[-1 - [one.site for one in reversed(self.outages)].index(site)].until_ns = self.carrier.now_ns
        self.carrier.add(Host(site, self._remembered.get(site)))
        self.records.restart(site)
        if self.balancing is not None:
            self.balancing.restart(site)
        for fragment in sorted(self._given_up):
            self._take_up(fragment)

    def _take_up(self, fragment: str) -> None:
        """What was given up is wanted again when its site is up."""
        site = self.homes[fragment]
        if fragment in self._given_up and site not in self._down:
            self._given_up.discard(fragment)
            change = self.changes.moving[fragment][0] if fragment in self.changes.moving else 0
            self.carrier.feed(DESK, Want(fragment, site, change=change))

    def message_ns(self, sender: str, to: str) -> int | None:
        """How long a message takes; None where it is lost."""
        first = self.deployment.sites[0].name
        start, end = (first if name == DESK else self._site_of(name) for name in (sender, to))
        path = self._paths.between(start, end)
        if path is None:
            return None
        for pair in zip(path.sites, path.sites[1:], strict=False):
            if self._cut_until.get(frozenset(pair), NEVER) > self.carrier.now_ns:
                return None
        if self._cut_until.get(frozenset((start, end)), NEVER) > self.carrier.now_ns:
            return None
        return round(path.delay_ms * NS_PER_MS)

    def _site_of(self, machine: str) -> str:
        if self.scaling is not None and machine.startswith(SCALE_MARK):
            return self.scaling.site(machine)
        return machine.removeprefix(MARK)

    def _perform(self, site: str, effect: Effect) -> None:
        carrier = self.carrier
        if site == CONTROLLER and self.advising is not None:
            self.advising.perform(site, effect)
        if self.changes.perform(effect):
            return
        parts = {MARK: self.balancing, SCALE_MARK: self.scaling}
        part = parts.get(site.partition(":")[0] + ":")
        if part is not None:
            part.perform(site, effect)
            return
        match effect:
            case Remember(fragment=fragment, epoch=epoch):
                self._remembered.setdefault(site, {})[fragment] = epoch
            case Fence(fragment=fragment, epoch=epoch):
                self._fence(fragment, epoch)
            case Launch(fragment=fragment, epoch=epoch):
                self._launch(site, fragment, epoch)
            case Halt(fragment=fragment, epoch=epoch, clean=clean):
                self._halt(site, fragment, epoch, clean)
            case Warm() | Carry():
                self._prepare(site, effect)
            case GaveUp(fragment=fragment, reason=reason):
                if fragment not in self._ever_given_up:
                    self.warnings.append(f"{fragment} was given up at {carrier.now_ns / NS_PER_S:g} s: {reason}")
                self._given_up.add(fragment)
                self._ever_given_up.add(fragment)
                carrier.at(carrier.now_ns + AGAIN_NS, partial(self._take_up, fragment))

    def _prepare(self, site: str, effect: Warm | Carry) -> None:
        """Every site is ready for any operator."""
        about = (effect.number, effect.fragment)
        ready = Warmed(*about) if isinstance(effect, Warm) else CarriedOver(*about, after_of(effect.ended))
        self.carrier.feed(site, ready)

    def _fence(self, fragment: str, epoch: int) -> None:
        self._fences[fragment] = max(epoch, self._fences.get(fragment, 0))
        where, running = self._alive.get(fragment, ("", epoch))
        if running < epoch - 1 and where in self.carrier.machines:
            # What a stop fences (epoch + 1) is halted next; an older launch elsewhere ends by itself.
            del self._alive[fragment]
            self.records.hold(self._keys[fragment], False)
            self.carrier.feed(where, Died(fragment, running, "fenced"))

    def _launch(self, site: str, fragment: str, epoch: int) -> None:
        fence = self._fences.get(fragment, 0)
        if epoch < fence:
            self.carrier.feed(site, Refused(fragment, epoch, fence))
            return
        key = self._keys[fragment]
        cost_ns = 0
        if fragment in self.changes.moving:
            cost_ns = self._move_ns(fragment, self.changes.moving[fragment][1], site)
        agent = self.carrier.machines[site]

        def launched() -> None:
            if self.carrier.machines.get(site) is agent and self._fences.get(fragment, 0) <= epoch:
                self._alive[fragment] = (site, epoch)
                self.records.release(key)
                if fragment in self.changes.moving:
                    number = self.changes.moving.pop(fragment)[0]
                    now_ns = self.carrier.now_ns
                    self._paused[number, fragment] = now_ns - self._halted_ns.get(fragment, now_ns)
                self.carrier.take(site, Launched(fragment, epoch))

        self.carrier.at(self.carrier.now_ns + cost_ns, launched)

    def _move_ns(self, fragment: str, before: str, site: str) -> int:
        query, name = self._keys[fragment]
        if not self.deployment.query(query).operator(name).state_kb:
            return round(self._move_ms_per_record * self.records.waiting((query, name)) * NS_PER_MS)
        return self._state_ns(fragment, before, site)

    def _state_ns(self, fragment: str, before: str, site: str) -> int:
        query, name = self._keys[fragment]
        state_kb = self.deployment.query(query).operator(name).state_kb
        path = self._paths.between(before, site) if state_kb else None
        if path is None:
            return 0
        sending_ms = state_kb * 8192 / path.bandwidth_kbps if path.bandwidth_kbps else 0.0
        return round((path.delay_ms + sending_ms) * NS_PER_MS)

    def _halt(self, site: str, fragment: str, epoch: int, clean: bool) -> None:
        if self._alive.get(fragment, ("", 0))[0] != site:
            self.carrier.feed(site, Halted(fragment, epoch, clean=True))
            return
        del self._alive[fragment]
        now_ns = max(self.carrier.now_ns, self.records.now_ns)
        self._halted_ns[fragment] = now_ns
        ends_ns = self.records.hold(self._keys[fragment], clean)
        # The moment after its last service ended, for steering comes before the events of its moment.
        after_ns = ends_ns + 1 - now_ns if ends_ns > now_ns else 0
        self.carrier.feed(site, Halted(fragment, epoch, clean=clean or after_ns == 0), after_ns)
