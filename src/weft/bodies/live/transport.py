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


def reporter(site: str) -> Address:
    """Who tells what was measured at a site."""
    return Address("reporter", site)


Deliver = Callable[[str, bytes], None]


class Transport(Protocol):
    """Carries bytes between places; what is sent may be lost, but never changed or overtaken."""

    def open(self, place: str, deliver: Deliver) -> None:
        """Let messages for a place be delivered: `deliver(sender, data)`, which must not block."""

    def send(self, sender: str, to: str, data: bytes) -> None:
        """Pass bytes on; returns at once."""

    def close(self, place: str) -> None:
        """No more is delivered to a place."""


class InProcess:
    """All places in one process; a message to a closed place is lost, as it would be over a network."""

    def __init__(self) -> None:
        self._places: dict[str, Deliver] = {}
        self._lock = threading.Lock()

    def open(self, place: str, deliver: Deliver) -> None:
        """Let messages for a place be delivered."""
        with self._lock:
            self._places[place] = deliver

    def send(self, sender: str, to: str, data: bytes) -> None:
        """Pass bytes on, in the order sent."""
        with self._lock:
            deliver = self._places.get(to)
        if deliver is not None:
            deliver(sender, data)

    def close(self, place: str) -> None:
        """No more is delivered to a place."""
        with self._lock:
            self._places.pop(place, None)
