"""What do sites do in the twin? Their hosts fence, launch and halt operators on the record plane, and are lost."""

from __future__ import annotations

from functools import partial

from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.control.changes import DESK, Changes
from weft.bodies.twin.control.delays import Delays
from weft.bodies.twin.outcome.uptime import Outage
from weft.bodies.twin.records import Records, names_of
from weft.model import Site
from weft.protocol import Effect
from weft.protocol.change_messages import after_of
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
AGAIN_NS = 1 * NS_PER_S


class Hosting:
    """The hosts of all sites; `paused_ns` says how long an operator stood still in a change."""

    def __init__(
        self, carrier: Carrier, changes: Changes, records: Records, delays: Delays, warnings: list[str]
    ) -> None:
        self.outages: list[Outage] = []
        self.paused_ns: dict[tuple[int, str], int] = {}
        self._carrier, self._changes, self._records = carrier, changes, records
        self._delays, self._warnings = delays, warnings
        self._remembered: dict[str, dict[str, int]] = {}
        self._fences: dict[str, int] = {}
        self._alive: dict[str, tuple[str, int]] = {}
        self._halted_ns: dict[str, int] = {}
        self._given_up: set[str] = set()
        self._ever_given_up: set[str] = set()
        self._down: set[str] = set()

    def begin(self, sites: tuple[Site, ...]) -> None:
        """Every site gets a host, and the desk wants all that is in force to run."""
        for site in sites:
            self._carrier.add(Host(site.name))
        self._carrier.add(Desk(DESK))
        starts = tuple(Start(fragment, site) for fragment, site in self._changes.homes.items())
        self._carrier.feed(DESK, InForce(0, starts))

    def up(self, site: str) -> bool:
        """True if a site is not lost."""
        return site not in self._down

    def crash(self, site: str) -> None:
        """A site is lost, with its host and all that it runs."""
        self._down.add(site)
        self.outages.append(Outage(site, dict(self._changes.homes), self._carrier.now_ns))
        self._carrier.lose(site)
        self._records.crash(site)
        for fragment, (where, _) in list(self._alive.items()):
            if where == site:
                del self._alive[fragment]
                self._records.hold(names_of(fragment), False)

    def restart(self, site: str) -> None:
        """A lost site comes back, knowing only the epochs it was to remember."""
        self._down.discard(site)
        self.outages[-1 - [one.site for one in reversed(self.outages)].index(site)].until_ns = self._carrier.now_ns
        self._carrier.add(Host(site, self._remembered.get(site)))
        self._records.restart(site)

    def want_again(self) -> None:
        """All that was given up is wanted again, where its site is up."""
        for fragment in sorted(self._given_up):
            self._take_up(fragment)

    def _take_up(self, fragment: str) -> None:
        """What was given up is wanted again when its site is up."""
        site = self._changes.homes[fragment]
        if fragment in self._given_up and site not in self._down:
            self._given_up.discard(fragment)
            change = self._changes.moving[fragment][0] if fragment in self._changes.moving else 0
            self._carrier.feed(DESK, Want(fragment, site, change=change))

    def perform(self, site: str, effect: Effect) -> None:
        """Does what a host asks for, or hears what the desk says of one."""
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
                self._give_up(fragment, reason)

    def _give_up(self, fragment: str, reason: str) -> None:
        if fragment not in self._ever_given_up:
            self._warnings.append(f"{fragment} was given up at {self._carrier.now_ns / NS_PER_S:g} s: {reason}")
        self._given_up.add(fragment)
        self._ever_given_up.add(fragment)
        self._carrier.at(self._carrier.now_ns + AGAIN_NS, partial(self._take_up, fragment))

    def _prepare(self, site: str, effect: Warm | Carry) -> None:
        """Every site is ready for any operator."""
        about = (effect.number, effect.fragment)
        ready = Warmed(*about) if isinstance(effect, Warm) else CarriedOver(*about, after_of(effect.ended))
        self._carrier.feed(site, ready)

    def _fence(self, fragment: str, epoch: int) -> None:
        self._fences[fragment] = max(epoch, self._fences.get(fragment, 0))
        where, running = self._alive.get(fragment, ("", epoch))
        if running < epoch - 1 and where in self._carrier.machines:
            # What a stop fences (epoch + 1) is halted next; an older launch elsewhere ends by itself.
            del self._alive[fragment]
            self._records.hold(names_of(fragment), False)
            self._carrier.feed(where, Died(fragment, running, "fenced"))

    def _launch(self, site: str, fragment: str, epoch: int) -> None:
        fence = self._fences.get(fragment, 0)
        if epoch < fence:
            self._carrier.feed(site, Refused(fragment, epoch, fence))
            return
        cost_ns = 0
        if fragment in self._changes.moving:
            waiting = self._records.waiting(names_of(fragment))
            cost_ns = self._delays.move_ns(fragment, self._changes.moving[fragment][1], site, waiting)
        agent = self._carrier.machines[site]

        def launched() -> None:
            if self._carrier.machines.get(site) is agent and self._fences.get(fragment, 0) <= epoch:
                self._alive[fragment] = (site, epoch)
                for outage in self.outages:
                    if outage.until_ns is None and outage.homes.get(fragment) == outage.site != site:
                        outage.taken.setdefault(fragment, self._carrier.now_ns)
                self._records.release(names_of(fragment))
                if fragment in self._changes.moving:
                    number = self._changes.moving.pop(fragment)[0]
                    now_ns = self._carrier.now_ns
                    self.paused_ns[number, fragment] = now_ns - self._halted_ns.get(fragment, now_ns)
                self._carrier.take(site, Launched(fragment, epoch))

        self._carrier.at(self._carrier.now_ns + cost_ns, launched)

    def _halt(self, site: str, fragment: str, epoch: int, clean: bool) -> None:
        if self._alive.get(fragment, ("", 0))[0] != site:
            self._carrier.feed(site, Halted(fragment, epoch, clean=True))
            return
        del self._alive[fragment]
        now_ns = max(self._carrier.now_ns, self._records.now_ns)
        self._halted_ns[fragment] = now_ns
        ends_ns = self._records.hold(names_of(fragment), clean)
        # The moment after its last service ended, for steering comes before the events of its moment.
        after_ns = ends_ns + 1 - now_ns if ends_ns > now_ns else 0
        self._carrier.feed(site, Halted(fragment, epoch, clean=clean or after_ns == 0), after_ns)
