"""How do the parts of a run reach one another? Encoded messages between addresses, in order per pair.

An address is a role and, where each site has that role, the site: so no site's name can be taken for the desk's.
Embedded, all are in one process; sites in other processes need another `Transport` and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol


class Address(NamedTuple):
    """Who is meant: a role, and the site that has it; the desk's roles have none."""

    role: str
    site: str = ""

    def __str__(self) -> str:
        return f"{self.role} {self.site}".rstrip()


DESK = Address("desk")
CONTROLLER = Address("controller")
REPORTS = Address("reports")
"""Who takes in what sites report."""


def host(site: str) -> Address:
    """Who runs fragments at a site."""
    return Address("host", site)


ROLL = Address("roll")
"""Who knows which processes of sites are there."""


def agent(site: str) -> Address:
    """The process of a site."""
    return Address("agent", site)


def reporter(site: str) -> Address:
    """Who tells what was measured at a site."""
    return Address("reporter", site)


def directory(site: str) -> Address:
    """Who keeps a site's part of the directory: it speaks with those of other sites."""
    return Address("directory", site)


FINDING = Address("finding")
"""Who asks the directory, at the desk."""


def guide(site: str) -> Address:
    """Who puts others' questions to the directory at a site."""
    return Address("guide", site)


def delays(site: str) -> Address:
    """Who feeds delays back at a site: it speaks with those of other sites of a query."""
    return Address("delays", site)


def balancer(site: str, era: int) -> Address:
    """Who balances a site in an era: what is said in one era reaches nobody in another."""
    return Address(f"balancer {era}", site)


Deliver = Callable[[Address, bytes], None]


class Transport(Protocol):
    """Carries bytes between addresses; what is sent may be lost, but never changed or overtaken."""

    def open(self, address: Address, deliver: Deliver) -> None:
        """Let messages for an address be delivered: `deliver(sender, data)`, which must not block."""

    def send(self, sender: Address, to: Address, data: bytes) -> None:
        """Pass bytes on; returns at once."""

    def close(self, address: Address) -> None:
        """No more is delivered to an address."""


class InProcess:
    """All addresses in one process; a message to one that is closed is lost, as it would be over a network."""

    def __init__(self) -> None:
        self._open: dict[Address, Deliver] = {}
        self._lock = threading.Lock()

    def open(self, address: Address, deliver: Deliver) -> None:
        """Let messages for an address be delivered."""
        with self._lock:
            self._open[address] = deliver

    def send(self, sender: Address, to: Address, data: bytes) -> None:
        """Pass bytes on, in the order sent."""
        with self._lock:
            deliver = self._open.get(to)
        if deliver is not None:
            deliver(sender, data)

    def close(self, address: Address) -> None:
        """No more is delivered to an address."""
        with self._lock:
            self._open.pop(address, None)
