"""What is composed: a query as pieces joined by streams, and the ways it was found that it could run.

Amounts are whole numbers that all sites share: work in microseconds per second on a site of capacity 1 (so such a site
has a million), streams in kbps, times in microseconds. So sums come out the same in whatever order they are made.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

PIECES_MAX = 1_000

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Text = Annotated[str, msgspec.Meta(max_length=2_000)]
Amount = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


class Piece(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An operator of a query, or a result of it: `site` is where that must be, and it takes no work."""

    name: Name
    does: Text
    """What sites must be able to do to run it; empty of a result."""
    stream: Text
    """What it makes, named by what made it; empty where nobody may share that."""
    inputs: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=PIECES_MAX)]
    cost_us: Amount = 0
    load: Amount = 0
    kbps: Amount = 0
    """What it sends on."""
    selectivity: Amount = 1_000
    """Thousandths of a record that come of one."""
    site: Annotated[str, msgspec.Meta(max_length=500)] = ""


class Origin(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A source, and where it is."""

    name: Name
    site: Name
    kbps: Amount = 0


class QueryPlan(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A query (the document's plan): pieces in an order in which each comes after what it reads."""

    pieces: Annotated[tuple[Piece, ...], msgspec.Meta(min_length=1, max_length=PIECES_MAX)]
    origins: Annotated[tuple[Origin, ...], msgspec.Meta(max_length=PIECES_MAX)] = ()


class Level(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A promise that a query would take, and what it is worth to it."""

    latency_us: Amount
    weight: Amount = 1


class Hop(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A piece at a site, with the stream that it reads from `before`: what each takes, and its part of phi.

    `leans` names what runs there already and is shared; its time is then what is assured of that stream, sources on.
    """

    piece: Name
    site: Name
    before: Text
    exec_us: Amount
    link_us: Amount
    own: Amount = 0
    line: Amount = 0
    leans: Text = ""


class Graph(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Hops from some piece to the results; the longest way takes `us`, and `phi` is its price in millionths."""

    hops: Annotated[tuple[Hop, ...], msgspec.Meta(max_length=PIECES_MAX)] = ()
    us: Amount = 0
    phi: Amount = 0


class Broken(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Why a way is none: what would not hold, where, for which piece, by how much; `of` is whose promise it is."""

    what: Name
    site: Text
    piece: Text
    by: Amount = 0
    limit: Amount = 0
    of: Text = ""


CAPACITY, BANDWIDTH, LATENCY, PROMISE, GONE, SILENCE = (
    "capacity", "bandwidth", "latency", "promise", "gone", "silence",
)  # fmt: skip
