"""How does one site balance? It carries a balancer, tells it what came to its operators, and keeps what it took.

What the balancer takes over is told the desk with every report, until it is there no more: the desk moves it. Until
then an operator runs on where it is, so a balancer that lets go of one need not wait for its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec

from weft.bodies.live.balancing.kept import Kept, KeptBalance
from weft.bodies.live.balancing.loads import Running, SiteLoads, Unmeasured
from weft.bodies.live.carrier import Carrier, Tell, balancers
from weft.bodies.live.transport import Transport, balancer
from weft.protocol.balancing import (
    MARK,
    Agreed,
    BalanceFrom,
    BalanceNow,
    Balancer,
    Begin,
    Check,
    Part,
    Remember,
    Stop,
    Stopped,
    balanced_site,
    balancer_name,
)
from weft.protocol.balancing.memory import GONE, TOOK
from weft.protocol.machine import Effect
from weft.protocol.reporting import Measured


class SiteBalancing:
    """The balancer of a site, once a desk has said from what to begin; `running` tells what runs here."""

    def __init__(
        self, site: str, kept: KeptBalance, transport: Transport, story: Tell, running: Callable[[], Running]
    ) -> None:
        self.site = site
        self._file = kept
        self._transport, self._story, self._running = transport, story, running
        self._told: BalanceFrom | None = None
        self._kept: Kept | None = None
        self._carrier: Carrier | None = None
        self._loads = SiteLoads()
        self._looked: tuple[int, ...] = ()
        self._measured_s = self._then_s = time.monotonic()
        self._missing = ""
        self._lock = threading.Lock()

    def hear(self, told: BalanceFrom) -> None:
        """Begin an era, or go on in the one in which an earlier life of this site was; an older one is passed over."""
        if self._told is not None and told.era <= self._told.era:
            return
        self.crash()
        held = self._file.read()
        anew = held is None or held.era != told.era
        with self._lock:
            # Until it has looked, loads are not those of now: it answers nobody.
            self._kept = Kept(told.era, told.memory) if anew or held is None else held
            self._file.write(self._kept)
            if self._told is None:
                self._then_s = self._measured_s
                self._begin_counting(told)
            self._told, self._looked = told, ()
        parent = balancer_name(told.parent) if told.parent else ""
        children = tuple(balancer_name(child) for child in told.children)
        machine = Balancer(
            balancer_name(self.site), parent, children, told.streams, self._kept.memory, told.limits, looked=False
        )
        self._carrier = Carrier(
            machine, balancer(self.site, told.era), self._transport, partial(self._perform, told.era), self._story,
            balancers(told.era),
        )  # fmt: skip
        self._carrier.start()
        self._carrier.feed(Begin())

    def _begin_counting(self, told: BalanceFrom) -> None:
        with suppress(Unmeasured):  # the first look only begins
            self._loads.look(self._running(), told, told.period_s)

    def look(self, measured: Measured, measured_s: float) -> None:
        """Take in what was measured at a moment; where a period has passed, tell the balancer what came in it."""
        self._loads.add(measured)
        self._measured_s = measured_s
        told, carrier = self._told, self._carrier
        seconds = measured_s - self._then_s
        if told is None or carrier is None or seconds < told.period_s:
            return
        self._then_s = measured_s
        try:
            parts = self._complete(self._loads.look(self._running(), told, seconds))
        except Unmeasured as missing:
            self._tell_missing(str(missing))
            return
        self._tell_missing("")
        carrier.feed(Check(parts))

    def _complete(self, found: tuple[Part, ...]) -> tuple[Part, ...]:
        """The loads of what the balancer has here; what it took and is still to come takes what it took."""
        loads = {part.operator: part for part in found}
        with self._lock:
            assert self._kept is not None
            assert self._told is not None
            here, took = self._kept.memory.here, {one.operator for each in self._kept.took for one in each.operators}
            for operator in here:
                if operator in self._told.operators and operator not in loads and operator not in took:
                    raise Unmeasured(f"records of {operator}")
            parts = tuple(loads[operator] for operator in here if operator in loads)
            used = [tuple(loads[one].loads) if one in loads else held for one, held in here.items()]
            self._looked = tuple(sum(each) for each in zip(*used, strict=True))
        return parts

    def _tell_missing(self, missing: str) -> None:
        if missing and missing != self._missing:
            self._story(f"# {self.site} does not look at its loads: {missing} are not measured")
        self._missing = missing

    def now(self) -> BalanceNow | None:
        """How the balancer stands, for the desk; None before one was asked for."""
        with self._lock:
            if self._kept is None:
                return None
            return BalanceNow(self._kept.era, self._kept.took, self._looked)

    def _perform(self, era: int, effect: Effect) -> None:
        match effect:
            case Remember():
                self._keep(era, partial(_remembered, effect, self._parent()))
            case Stop(peer=peer, serial=serial):
                # The desk ends an operator cleanly when it moves it: until then it runs on.
                if self._carrier is not None:
                    self._carrier.feed(Stopped(peer, serial))

    def _parent(self) -> str:
        return balancer_name(self._told.parent) if self._told is not None and self._told.parent else ""

    def _keep(self, era: int, change: Callable[[Kept], Kept]) -> None:
        with self._lock:
            if self._kept is not None and self._kept.era == era:  # else it is of a balancer that is gone
                self._kept = change(self._kept)
                self._file.write(self._kept)

    def crash(self) -> None:
        """The balancer is gone at once."""
        if self._carrier is not None:
            self._carrier.kill()
            self._carrier = None

    def stop(self) -> None:
        """Say no more."""
        if self._carrier is not None:
            self._carrier.stop()


def _remembered(what: Remember, parent: str, kept: Kept) -> Kept:
    """What a balancer writes down, and with it which handovers it took and still holds."""
    took = kept.took
    if what.verb in (TOOK, GONE):
        took = tuple(_without(took, {part.operator for part in what.operators}))
    if what.verb == TOOK:
        reason = what.reason.replace(MARK, "")
        took = (*took, Agreed(balanced_site(what.peer), what.serial, what.operators, reason))
    return Kept(kept.era, kept.memory.after(what, parent), took)


def _without(took: tuple[Agreed, ...], operators: set[str]) -> list[Agreed]:
    left = []
    for one in took:
        stay = tuple(part for part in one.operators if part.operator not in operators)
        if stay:
            left.append(msgspec.structs.replace(one, operators=stay))
    return left
