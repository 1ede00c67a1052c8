"""What sites say to one another to compose a query, what they are told, and what they ask of their bodies.

What a body owes a keeper and a composer besides the common contract: what they ask to be remembered is on disk before
the effects that follow, and a machine that comes back is given what was remembered and a life greater than all before.
Messages may be lost, doubled, late, and overtake one another.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.plan.composing.values import Amount, Broken, Graph, Level, Name, QueryPlan, Text
from weft.protocol.words import Effect, Input, Message

FEW_MAX = 10_000


class Instance(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An operator that runs at a site, and the stream that it makes."""

    stream: Text
    site: Name
    name: Name


class Hosts(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The sites that have what an operator needs."""

    does: Text
    sites: Annotated[tuple[Name, ...], msgspec.Meta(max_length=FEW_MAX)]


class Quest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What a composer looks for, as every probe carries it.

    `takes` are the pieces that take part, `shared` what some of them lean on; `dry` asks without reserving anything.
    """

    attempt: Name
    owner: Name
    plan: QueryPlan
    takes: tuple[Name, ...]
    shared: tuple[tuple[Name, Instance], ...] = ()
    hosts: tuple[Hosts, ...] = ()
    others: tuple[Name, ...] = ()
    joins: tuple[Name, ...] = ()
    limit_us: Amount = 0
    ratio: Amount = 100
    least: Amount = 2
    dry: bool = False


class Probe(Message, frozen=True):
    """Could you run this piece, which reads `before` from the site `start`? It took so long to come there."""

    quest: Quest
    piece: Name
    before: Text
    start: Text
    so_far_us: Amount
    round: Amount = 0


class Answer(Message, frozen=True):
    """The ways found from this piece on, or why there are none; `touched` is where something may be kept for it.

    `tight`: some way was given up because it took too long; one that comes sooner may ask again.
    """

    attempt: Name
    piece: Name
    before: Text
    round: Amount
    graphs: tuple[Graph, ...] = ()
    touched: tuple[tuple[Name, Name], ...] = ()
    broken: tuple[Broken, ...] = ()
    tight: bool = False


class Confirm(Message, frozen=True):
    """Keep what is reserved for this piece, with these streams; it may take so long, and all up to it so long."""

    attempt: Name
    piece: Name
    feeds: tuple[tuple[Text, Text], ...]
    bound_us: Amount
    by_us: Amount
    turn: Amount = 0


class Confirmed(Message, frozen=True):
    """It is kept, and stays so until it is settled or freed."""

    attempt: Name
    piece: Name
    turn: Amount


class NotConfirmed(Message, frozen=True):
    """It is not kept, or cannot be had in that time any more."""

    attempt: Name
    piece: Name
    turn: Amount
    broken: Broken


class Settle(Message, frozen=True):
    """The query is admitted: run it."""

    attempt: Name
    piece: Name


class Free(Message, frozen=True):
    """Nothing is wanted of this any more."""

    attempt: Name
    piece: Name


class Wanted(Message, frozen=True):
    """This is kept, and nobody says what for: is it still wanted?"""

    attempt: Name
    piece: Name


class Leave(Message, frozen=True):
    """The query leaves: end this piece, unless others lean on it."""

    attempt: Name
    piece: Name


class Left(Message, frozen=True):
    """The piece has ended; or it goes on, because others lean on it, and its end will be told."""

    attempt: Name
    piece: Name
    kept: bool = False


MESSAGES = Probe | Answer | Confirm | Confirmed | NotConfirmed | Settle | Free | Wanted | Leave | Left


class Begin(Input, frozen=True):
    """The site is up: go on with what was under way."""


class Ask(Input, frozen=True):
    """A query is asked for, with the promises that it would take; none where it takes any time."""

    request: str
    plan: QueryPlan
    levels: tuple[Level, ...] = ()


class Found(Input, frozen=True):
    """What the directory knows: who makes these streams, who has these operators, and sites with room, freest first."""

    request: str
    serial: int
    instances: tuple[Instance, ...] = ()
    hosts: tuple[Hosts, ...] = ()
    others: tuple[str, ...] = ()


class Depart(Input, frozen=True):
    """An admitted query is wanted no longer."""

    request: str


class Find(Effect, frozen=True):
    """Ask the directory who makes these streams and has these operators, and tell `Found`."""

    request: str
    serial: int
    streams: tuple[str, ...]
    does: tuple[str, ...]


class Admitted(Effect, frozen=True):
    """A query runs, with the promise it was given (0: none), and so."""

    request: str
    promised_us: int
    graph: Graph
    how: str


class Refused(Effect, frozen=True):
    """A query does not run: what would have broken, and the nearest promise that could be kept; 0: none is known."""

    request: str
    reason: str
    broken: Broken
    nearest_us: int = 0


class Gone(Effect, frozen=True):
    """A query that was to leave has left, but for what others lean on."""

    request: str


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What a keeper must not forget of a piece: for whom, what it takes and may take, what it reads."""

    attempt: str
    piece: str
    owner: str
    stream: str
    load: int
    cost_us: int
    bound_us: int
    by_us: int
    feeds: tuple[tuple[str, str, int], ...]
    leans: str
    settled: bool
    leaving: bool = False


class Remember(Effect, frozen=True):
    """A keeper writes down what it holds."""

    kept: Kept


class Forget(Effect, frozen=True):
    """A keeper no longer holds a piece."""

    attempt: str
    piece: str


class Run(Effect, frozen=True):
    """An operator runs here from now on, and the directory may tell of its stream."""

    instance: Instance
    load: int


class End(Effect, frozen=True):
    """An operator runs here no longer."""

    instance: Instance


class Decided(msgspec.Struct, frozen=True, array_like=True):
    """What a composer must not forget of a query that it admitted."""

    request: str
    attempt: str
    promised_us: int
    how: str
    graph: Graph
    left: tuple[str, ...] = ()
    leaving: bool = False


class Note(Effect, frozen=True):
    """A composer writes down a query that it admitted, or what has become of it."""

    decided: Decided


class Strike(Effect, frozen=True):
    """A composer has nothing more to do with a query."""

    request: str
