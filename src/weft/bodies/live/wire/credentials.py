"""What does a process show, and whom does it believe? Its own key, and certificates of its deployment's authority."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path
from typing import NamedTuple

from weft.bodies.live.wire.authority import AUTHORITY, file_name
from weft.bodies.live.wire.parties import Party


class NoKey(Exception):
    """A key that is not there, not private or not right; the text says what helps."""


class Credentials(NamedTuple):
    """Both sides' TLS: as the one that is called, and as the one that calls."""

    party: Party
    called: ssl.SSLContext
    calls: ssl.SSLContext


def credentials(folder: Path, party: Party) -> Credentials:
    """The credentials of a party from a folder of keys; NoKey where they cannot be used."""
    pair = [folder / f"{file_name(party)}{ending}" for ending in (".pem", ".key")]
    for path in (folder / f"{AUTHORITY}.pem", *pair):
        if not path.is_file():
            raise NoKey(f"{path} is not there; `weft keys FILE` makes the keys of a deployment")
    mode = stat.S_IMODE(os.stat(pair[1]).st_mode)
    if mode & 0o077:
        raise NoKey(f"{pair[1]} can be read by others (mode {mode:o}); `chmod 600 {pair[1]}`")
    try:
        return Credentials(party, *(_context(folder, pair, calls) for calls in (False, True)))
    except ssl.SSLError as error:
        raise NoKey(f"{pair[0]} and its key cannot be used: {error}") from error


def _context(folder: Path, pair: list[Path], calls: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if calls else ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.maximum_version = ssl.TLSVersion.TLSv1_3
    # Names are URIs of parties, not hosts: the port compares them itself, both ways.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(folder / f"{AUTHORITY}.pem")
    context.load_cert_chain(pair[0], pair[1])
    return context
