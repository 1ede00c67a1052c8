"""Which operators do all processes of a run know? Those of the file, with what is shared, and of queries that came.

The desk says by its digest which graph it has, and hands it over to sites that have another: when they start, and when
queries come. A site that runs tries what is new on its Spark first, beside what runs, and says what came of it.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import msgspec

from weft.bodies.live.parcels import pack, unpack
from weft.model import Deployment, Query, Sharing
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.dataflow.real_time import with_real_time
from weft.plan.dataflow.sharing import as_written
from weft.protocol.words import Parcel


class Graph(msgspec.Struct, frozen=True):
    """The queries of a deployment as a run has them."""

    queries: tuple[Query, ...]
    sharing: Sharing | None = None

    def of(self, deployment: Deployment) -> Deployment:
        """A deployment with this graph."""
        return replace(deployment, queries=self.queries, sharing=self.sharing)

    def is_in(self, file: Deployment) -> bool:
        """True if it has queries of a file alone, as they stand there: some of them may have gone."""
        own = {_text(query) for query in with_real_time(with_ordering(as_written(file))).queries}
        return self.sharing is None and all(_text(query) in own for query in self.queries)


class Packed:
    """A graph on its way, and what tells it from others."""

    def __init__(self, deployment: Deployment) -> None:
        self.parcel = pack(Graph(deployment.queries, deployment.sharing))
        self.digest = sha256(self.parcel.text.encode()).hexdigest()


def graph_in(parcel: Parcel) -> Graph | None:
    """The graph in a parcel; None where there is none that can be read."""
    try:
        return unpack(parcel, Graph) if parcel.text else None
    except msgspec.MsgspecError:
        return None


def _text(query: Query) -> str:
    return pack(query).text
