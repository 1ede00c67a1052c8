"""Who vouches for the processes of a deployment? An authority of its own, made here with a key for each party.

    authority.pem  authority.key       the authority; its key is needed only to make further keys
    site-NAME.pem  site-NAME.key       one pair for each site, which alone goes to that site's machine
    desk.pem       command.pem         and their keys

Nothing is ever overwritten. Files are for their user alone.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from weft.bodies.live.wire.parties import A_COMMAND, SITE, THE_DESK, Party

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY = "authority"
DAYS = 365
SPARE_DAYS = 30
EARLY = datetime.timedelta(minutes=10)
"""Clocks of machines differ: a certificate is valid from a little before it was made."""


class KeysThere(Exception):
    """Nothing is to be made: every key that was asked for lies there already, or the authority's own is missing."""


class Made(NamedTuple):
    """What was made, what was there before, and until when the new ones hold."""

    new: tuple[str, ...]
    kept: tuple[str, ...]
    until: datetime.datetime


def file_name(party: Party) -> str:
    """What a party's files are called, without their endings."""
    return f"{SITE}-{party.site}" if party.kind == SITE else party.kind


def parties_of(sites: Iterable[str]) -> list[Party]:
    """All who need a key in a deployment with these sites."""
    return [*(Party(SITE, name) for name in sites), THE_DESK, A_COMMAND]


def make_keys(folder: Path, sites: Iterable[str], days: int = DAYS, now: datetime.datetime | None = None) -> Made:
    """Make an authority where there is none, and a key for each party that has none; KeysThere where nothing lacks."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    begins = (now or datetime.datetime.now(datetime.UTC)).replace(microsecond=0)
    until = begins + datetime.timedelta(days=days)
    names = {file_name(party): party for party in parties_of(sites)}
    kept = tuple(name for name in names if _there(folder, name))
    new = tuple(name for name in names if name not in kept)
    if not new:
        raise KeysThere(f"{folder} holds a key for everyone already; to replace them, move that folder away first")
    if _there(folder, AUTHORITY):
        if not (folder / f"{AUTHORITY}.key").is_file():
            lack = ", ".join(new)
            raise KeysThere(
                f"{folder} has no {AUTHORITY}.key, without which no key can be made for {lack}: bring it back"
            )
        certificate = x509.load_pem_x509_certificate((folder / f"{AUTHORITY}.pem").read_bytes())
        key = serialization.load_pem_private_key((folder / f"{AUTHORITY}.key").read_bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        until = min(until, certificate.not_valid_after_utc)
    else:
        certificate, key = _authority(folder, begins, until)
    for name in new:
        _write_pair(folder, name, _made_out(names[name], certificate, key, begins, until))
    return Made(new, kept, until)


def own_keys(folder: Path, sites: Iterable[str]) -> Path:
    """The keys of a run whose processes are all on this machine: made without asking, anew where they end soon."""
    names = list(sites)
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=SPARE_DAYS)
    if (folder / f"{AUTHORITY}.pem").exists() and _ends(folder / f"{AUTHORITY}.pem") < soon:
        folder.rename(folder.with_name(f"{folder.name}-until-{soon:%Y%m%d%H%M%S}"))
    with contextlib.suppress(KeysThere):
        make_keys(folder, names)
    return folder


def valid_until(folder: Path, party: Party) -> datetime.datetime:
    """When a party's certificate ends."""
    return _ends(folder / f"{file_name(party)}.pem")


def _ends(path: Path) -> datetime.datetime:
    from cryptography import x509

    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc


def _there(folder: Path, name: str) -> bool:
    return (folder / f"{name}.pem").exists() or (folder / f"{name}.key").exists()


Pair = tuple["x509.Certificate", "EllipticCurvePrivateKey"]


def _authority(folder: Path, begins: datetime.datetime, until: datetime.datetime) -> Pair:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities never bear one name, so that an error says whose certificate it was.
    label = f"weft authority {x509.random_serial_number() & 0xFFFFFFFF:08x}"
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, label)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - EARLY)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_pair(folder, AUTHORITY, (certificate, key))
    return certificate, key


def _made_out(
    party: Party, authority: x509.Certificate, signing: EllipticCurvePrivateKey, begins: datetime.datetime,
    until: datetime.datetime,
) -> Pair:  # fmt: skip
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    public = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, file_name(party)[:64])]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - EARLY)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(party.uri)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(public), critical=False)
        .sign(signing, hashes.SHA256())
    )
    return certificate, key


def _usage(signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _write_pair(folder: Path, name: str, pair: Pair) -> None:
    from cryptography.hazmat.primitives import serialization

    certificate, key = pair
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_new(folder / f"{name}.key", secret)
    _write_new(folder / f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM))


def _write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there, for its user alone."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
