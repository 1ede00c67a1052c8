"""How do bodies tell one another what machines only hand on? As JSON text in a parcel."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from weft.protocol.words import Parcel

Kind = TypeVar("Kind")


def pack(value: Any) -> Parcel:
    """A value as a parcel."""
    return Parcel(msgspec.json.encode(value).decode())


def unpack(parcel: Parcel, kind: type[Kind]) -> Kind:
    """The value in a parcel; msgspec.MsgspecError where it holds none of that kind."""
    return msgspec.json.decode(parcel.text, type=kind)
