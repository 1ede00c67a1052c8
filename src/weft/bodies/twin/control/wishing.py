"""What is wished in a run of the twin, and what becomes of it? By the scenario, by balancers, and by rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from weft.bodies.twin.control.balancing import Balancing
from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.control.changes import Changes
from weft.bodies.twin.control.hosting import Hosting
from weft.bodies.twin.outcome.result import Move
from weft.bodies.twin.records import names_of
from weft.model import AddAt, Control, MoveAt, Query, RemoveAt
from weft.model.wishes import SPOKEN, AddQuery, MoveTo, RemoveQuery, TakeOver, Wish, plain_wish
from weft.plan.changing.adding import coming
from weft.plan.changing.running_plan import Impossible, RunningPlan
from weft.plan.judging.admission import judge
from weft.protocol.balancing import AGAIN_MS, asks_again
from weft.protocol.control import Rounds

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
SCENARIO = "asked for by the scenario"


class Wishing:
    """All wishes but those of instances; `laid_out` are the operators that the record plane has room for."""

    def __init__(
        self, carrier: Carrier, changes: Changes, hosting: Hosting, rounds: Rounds, control: Control,
        laid_out: tuple[str, ...], warnings: list[str],
    ) -> None:  # fmt: skip
        self.moves: list[Move] = []
        self.balancing: Balancing | None = None
        self._carrier, self._changes, self._hosting, self._rounds = carrier, changes, hosting, rounds
        self._control, self._laid_out, self._warnings = control, laid_out, warnings

    def happening(self, what: MoveAt | AddAt | RemoveAt) -> Callable[[], None]:
        """What the scenario wishes is kept for its time; what to do then."""
        match what:
            case MoveAt(at_s=at_s, move=operator, to=to):
                move = MoveTo({operator: to}, SCENARIO, "scenario")
                refused = partial(self._refused, f"{operator} did not move to {to} at {at_s:g} s")
                return partial(self._changes.ask, self._store(move, at_s, refused))
            case AddAt(at_s=at_s, queries=queries, anyway=anyway):
                names = ", ".join(query.name for query in queries)
                wish = AddQuery(queries, {}, reason=SCENARIO, by="scenario")
                number = self._kept(wish, at_s, f"{names} did not come at {at_s:g} s")
                return partial(self._add, number, queries, anyway)
            case RemoveAt(at_s=at_s, remove=query):
                gone = RemoveQuery(query, SCENARIO, "scenario")
                return partial(self._changes.ask, self._kept(gone, at_s, f"{query} did not go at {at_s:g} s"))

    def wished(self, at_s: float, wish: Wish) -> Callable[[], None]:
        """What a program wishes is kept for its time; what to do then."""
        said = ", ".join(f"{verb} {named}" for verb, named in plain_wish(wish).items())
        refused = f"{said} was not done at {at_s:g} s"
        if isinstance(wish, MoveTo | TakeOver):
            return partial(self._changes.ask, self._store(wish, at_s, partial(self._refused, refused)))
        return partial(self._changes.ask, self._kept(wish, at_s, refused))

    def _kept(self, wish: Wish, at_s: float, refused: str) -> int:
        """Keeps a wish for its time; where it is refused, that is told."""

        def told(why_not: str | None, word: str) -> None:
            if why_not is not None:
                self._refused(refused, why_not)

        return self._changes.store(wish, at_s, told)

    def _add(self, number: int, queries: tuple[Query, ...], anyway: bool) -> None:
        """Queries come to what runs by now, placed around it, unless a promise would break; `anyway` even then."""
        plan = self._changes.plan
        wish = coming(plan.deployment, plan.placement, queries, self._control, SCENARIO, "scenario")
        if isinstance(wish, Impossible):
            self._changes.end(number, wish.why)
        elif not wish.homes.keys() <= set(self._laid_out):
            self._changes.end(number, "it had no place when the run was laid out")
        elif not anyway and (refused := _refused_promises(plan, wish)):
            self._changes.end(number, refused)
        else:
            self._changes.asked[number].wish = wish
            self._changes.ask(number)

    def _refused(self, what: str, why_not: str) -> None:
        self._warnings.append(f"{what}: {why_not}")

    def scale(self, operator: str, site: str, more: bool) -> None:
        """An instance comes or goes as the run was told to have it; that is noted, or why it cannot be."""
        at_s = self._carrier.now_ns / NS_PER_S

        def told(why_not: str | None, word: str) -> None:
            if why_not is not None:
                self._warnings.append(f"at {self._carrier.now_ns / NS_PER_S:g} s: {why_not}")
            else:
                way = ("", site) if more else (site, "")
                self.moves.append(Move(*names_of(operator), *way, at_s, None, SCENARIO))

        self._changes.scale(operator, site, more, SCENARIO, told, "scenario")

    def move(self, operator: str, to: str, reason: str) -> None:
        """Asks for a move that balancers have agreed upon, at once."""
        at_s = max(0, self._carrier.now_ns) / NS_PER_S
        again = partial(self._again, operator, to, reason)
        self._changes.ask(self._store(MoveTo({operator: to}, reason, "balance"), at_s, again), at_once=False)

    def _again(self, operator: str, to: str, reason: str, why_not: str) -> None:
        """A move that a balancer counts on did not come about: it is asked for again."""
        if self.balancing and asks_again(self._changes.homes[operator], self.balancing.homes[operator], to):
            again = partial(self.move, operator, to, reason)
            self._carrier.at(self._carrier.now_ns + AGAIN_MS * NS_PER_MS, again)

    def grant(self, wish: MoveTo) -> int:
        """Keeps what a rule wishes and the controller asks for; the number of its change."""
        return self._store(wish, max(0, self._carrier.now_ns) / NS_PER_S, lambda why_not: None)

    def _store(self, wish: MoveTo | TakeOver, at_s: float, refused: Callable[[str], None]) -> int:
        """Keeps a move for its time; once made it is noted, and where it is refused, somebody is told."""

        def told(why_not: str | None, word: str) -> None:
            if why_not is None:
                self._note(number, wish, at_s, word)
            else:
                refused(why_not)

        number = self._changes.store(wish, at_s, told)
        return number

    def _note(self, number: int, wish: MoveTo | TakeOver, at_s: float, reason: str) -> None:
        change = self._changes.asked[number].change
        for operator, to in wish.homes.items():
            before = self._changes.before.get((change, operator))
            if before is not None:
                pause_ns = self._hosting.paused_ns.get((change, operator))
                pause_ms = None if pause_ns is None else pause_ns / NS_PER_MS
                self.moves.append(Move(*names_of(operator), before, to, at_s, pause_ms, reason or wish.reason))

    def changes_made(self, named: Callable[[str], str] = str) -> list[dict[str, Any]]:
        """Every change that was asked for or advised, in the order of time; `named` tells how a site is called."""
        told = [
            {
                "at_s": one.at_s,
                "by": SPOKEN.get(one.wish.by, one.wish.by),
                "wish": plain_wish(_named(one.wish, named)),
                "reason": one.wish.reason, "state": one.state, "why": one.why, "pause_ms": self._pause_ms(number),
            }
            for number, one in self._changes.asked.items()
            if one.state != "asked"
        ]  # fmt: skip
        return sorted([*told, *self._rounds.decisions.advised()], key=lambda one: one["at_s"])

    def _pause_ms(self, number: int) -> float | None:
        """How long the operator of a change that stood still longest did so; 0 where none had to."""
        asked, paused_ns = self._changes.asked[number], self._hosting.paused_ns
        pauses = [pause_ns / NS_PER_MS for (change, _), pause_ns in paused_ns.items() if change == asked.change]
        return max(pauses, default=0.0) if asked.state == "done" else None


def _named(wish: Wish, named: Callable[[str], str]) -> Wish:
    if not isinstance(wish, MoveTo):
        return wish
    return replace(wish, homes={stream: named(site) for stream, site in wish.homes.items()})


def _refused_promises(plan: RunningPlan, wish: AddQuery) -> str:
    """Which promises would break, by the ideal model, which scenarios with queries that come are run by."""
    return "; ".join(judge(plan.deployment, plan.placement, wish, None).refused)
