"""Who is at the other end of a connection? A process: that of a site, the desk's, or that of a command.

A certificate names one party as a URI, `weft:site:gw-1`, `weft:desk` or `weft:command`. A process speaks for the
addresses of its party and for no others. All commands share one key and are one party: they only ask.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.bodies.live.transport import Address

SITE, DESK_ROLE, COMMAND = "site", "desk", "command"


class Party(NamedTuple):
    """A process: its kind, and its site where it is that of one."""

    kind: str
    site: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.site}".rstrip()

    @property
    def uri(self) -> str:
        """What a certificate of this party is made out to."""
        return f"weft:{self.kind}:{self.site}" if self.kind == SITE else f"weft:{self.kind}"


THE_DESK = Party(DESK_ROLE)
A_COMMAND = Party(COMMAND)


def site(name: str) -> Party:
    """The process of a site."""
    return Party(SITE, name)


def home_of(address: Address) -> Party:
    """The process in which an address lives."""
    return site(address.site) if address.site else THE_DESK


def named_in(certificate: Any) -> set[str]:
    """What a certificate, as the ssl module tells it, is made out to."""
    names = (certificate or {}).get("subjectAltName", ())
    return {value for kind, value in names if kind == "URI"}
