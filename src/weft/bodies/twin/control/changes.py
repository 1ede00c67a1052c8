"""How does the plan in force change in the twin? Every wish passes the controller, the mover and the one door.

Whoever wishes (the scenario, balancers, instances) is told what became of it. What is decided is done at once to the
record plane: an operator changes its home, an instance starts when its state has come there, or ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.records import Records, names_of
from weft.model import Deployment, Placement
from weft.model.wishes import By, MoveTo, ScaleTo, TakeOver, Wish
from weft.plan.changing.difference import difference
from weft.plan.changing.next_plan import next_plan
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan
from weft.protocol import Effect
from weft.protocol.control import AskFor, Decline, Rounds
from weft.protocol.moving import Ask, Change, Changed, Decide, Decided, End, Moot, NotChanged, Start, Turn

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
DESK = "conductor"
CONTROLLER = "controller"

Told = Callable[[str | None, str], None]
"""Told when a wish is over: why it did not come about, or None and a word of the mover's."""
StateNs = Callable[[str, str, str], int]
"""How long an operator's state takes from one site to another."""


@dataclass(slots=True)
class Asked:
    """A wish, when it was asked for, who is to hear what became of it, and its change once the desk has heard of it."""

    wish: Wish
    at_s: float
    told: Told
    state: str = "asked"
    why: str = ""
    change: int = 0

    def end(self, why_not: str | None, word: str) -> None:
        """It is over: done or refused."""
        self.state, self.why = ("done", "") if why_not is None else ("refused", why_not)
        self.told(why_not, word)


class Changes:
    """Holds the plan in force and where operators are, and makes one of the other as wishes come true."""

    def __init__(
        self, deployment: Deployment, placement: Placement, records: Records, carrier: Carrier, rounds: Rounds,
        rules: Callable[[], Rules], state_ns: StateNs,
    ) -> None:  # fmt: skip
        self.plan = RunningPlan(0, deployment, placement, ())
        self.homes: dict[str, str] = dict(placement.homes)
        self.before: dict[tuple[int, str], str] = {}
        self.moving: dict[str, tuple[int, str]] = {}
        self.asked: dict[int, Asked] = {}
        self.grant: Callable[[MoveTo], int] = lambda wish: self.store(wish, 0.0, lambda why_not, word: None)
        self._records, self._carrier, self._rounds = records, carrier, rounds
        self._rules, self._state_ns = rules, state_ns
        self._next: dict[int, RunningPlan] = {}
        self._of_wish: dict[int, int] = {}
        self._of_change: dict[int, int] = {}
        self._stored: dict[int, int] = {}
        self._told_last = 0
        self._resizing: dict[int, tuple[str, bool]] = {}
        self._coming: Counter[tuple[str, str]] = Counter()

    def store(self, wish: Wish, at_s: float, told: Told) -> int:
        """Keeps a wish for its time; its number."""
        number = len(self.asked) + 1
        self.asked[number] = Asked(wish, at_s, told)
        return number

    def ask(self, number: int, at_once: bool = True) -> None:
        """Tells the controller of a wish, within this step or after it."""
        wished = self._rounds.wished(self.asked[number].wish, self.plan.placement)
        self._of_wish[wished.number], self._of_change[number] = number, wished.number
        (self._carrier.take if at_once else self._carrier.feed)(CONTROLLER, wished)

    def scale(self, stream: str, site: str, more: bool, reason: str, told: Told, by: By = "scale") -> None:
        """Asks for one more instance of an operator at a site, or for one less."""
        wish = self._sized(stream, site, more, reason, by)
        number = self.store(wish, max(0, self._carrier.now_ns) / NS_PER_S, told)
        self._resizing[number] = (site, more)
        self.ask(number)

    def _sized(self, stream: str, site: str, more: bool, reason: str, by: By) -> ScaleTo:
        """An operator with one instance more or less than it has now."""
        sites = list(self.plan.placement.instances.get(stream, ()))
        if more:
            sites.append(site)
        elif site in sites:
            sites.remove(site)
        return ScaleTo(stream, (self.homes[stream], *sites), reason, by)

    def perform(self, effect: Effect) -> bool:
        """Does what controller and mover ask for; False where the effect is not about changes."""
        match effect:
            case AskFor(number=number):
                if number not in self._of_wish:
                    self._take_up(number)
                self._carrier.take(DESK, Ask(self._number(self._of_wish[number])))
            case Decline(number=number, why=why) if number in self._of_wish:
                self.end(self._of_wish[number], why, "")
            case Turn(number=number):
                self._carrier.feed(DESK, self._turn(number))
            case Decide(number=number):
                self._decide(number)
            case Changed(number=number, reason=word):
                self._over(number, None, word)
            case NotChanged(number=number, reason=why):
                self._over(number, why)
            case _:
                return False
        return True

    def _number(self, asked: int) -> int:
        """The number of a wish's change: epochs follow it, so one that the desk hears of later has a higher one."""
        self._told_last = max(asked, self._told_last + 1)
        self._stored[self._told_last] = asked
        self.asked[asked].change = self._told_last
        return self._told_last

    def _take_up(self, wished: int) -> None:
        """What a rule wishes becomes a change like any other."""
        wish = self._rounds.granted(wished)
        assert wish is not None, "what is asked for was wished"
        number = self.grant(wish)
        self._of_wish[wished], self._of_change[number] = number, wished

    def _turn(self, number: int) -> Change | Moot:
        """What a wish ends and starts, given the plan in force."""
        asked = self._stored[number]
        wish = self.asked[asked].wish
        if isinstance(wish, ScaleTo) and asked in self._resizing:
            site, more = self._resizing[asked]
            if not more and site not in self.plan.placement.instances.get(wish.stream, ()):
                return Moot(number, f"no further instance of {wish.stream} runs at {site}")
            # Others may have come and gone since it was asked.
            wish = self._sized(wish.stream, site, more, wish.reason, wish.by)
        then = next_plan(self.plan, wish, self._rules(), number)
        if isinstance(then, Impossible):
            return Moot(number, then.why)
        self._next[number] = then
        change = difference(self.plan, then, wish.site if isinstance(wish, TakeOver) else None)
        ends = tuple(End(old.id, old.site, drains) for old, drains in change.ends)
        starts = tuple(Start(new.id, new.site) for new in change.starts)
        return Change(number, ends, starts, tuple(old.id for old in change.lost) or None)

    def _decide(self, number: int) -> None:
        """Lets a plan be in force, and does to the record plane what it says."""
        if self.plan.number != number:
            before, self.plan = self.plan, self._next.pop(number)
            for stream, to in self.plan.placement.homes.items():
                if stream not in self.homes:  # its query comes; the record plane has held its records so far
                    self._records.rehome(names_of(stream), to)
                    self.homes[stream] = to
                elif self.homes[stream] != to:
                    self.before[number, stream] = self.homes[stream]
                    self.moving[stream] = (number, self.homes[stream])
                    self._records.rehome(names_of(stream), to)
                    self.homes[stream] = to
            for stream in [stream for stream in self.homes if stream not in self.plan.placement.homes]:
                del self.homes[stream]  # its query goes; what still comes for it waits for nobody
            self._resize(before.placement, self.plan.placement)
        self._carrier.feed(DESK, Decided(number))

    def _over(self, number: int, why_not: str | None, word: str = "") -> None:
        """A change is over: whoever asked is told, and the controller."""
        asked = self._stored[number]
        self.end(asked, why_not, word)
        wish = self._of_change[asked]
        self._carrier.feed(CONTROLLER, self._rounds.over(wish, why_not, self.plan.placement))

    def end(self, asked: int, why_not: str | None, word: str = "") -> None:
        """A wish is over, made or not."""
        self.asked[asked].end(why_not, word)

    def _resize(self, before: Placement, then: Placement) -> None:
        for stream in dict.fromkeys((*before.instances, *then.instances)):
            was, is_ = (Counter(one.instances.get(stream, ())) for one in (before, then))
            for site in (is_ - was).elements():
                self._start(stream, site)
            for site in (was - is_).elements():
                self._stop(stream, site)

    def _start(self, stream: str, site: str) -> None:
        """An instance takes its share once its state, if any, has come over the links."""
        now_ns = max(self._carrier.now_ns, self._records.now_ns)
        self._coming[stream, site] += 1
        self._carrier.at(now_ns + self._state_ns(stream, self.homes[stream], site), partial(self._come, stream, site))

    def _come(self, stream: str, site: str) -> None:
        if self._coming[stream, site]:
            self._coming[stream, site] -= 1
            self._records.start_instance(names_of(stream), site)

    def _stop(self, stream: str, site: str) -> None:
        """What waits for an instance goes to the others over the links; one that has not come yet does not come."""
        if self._coming[stream, site]:
            self._coming[stream, site] -= 1
        else:
            self._records.stop_instance(names_of(stream), site)
