"""What of queries is made once for several? The queries as written, and the streams that stand for theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.model.queries import Query


@dataclass(frozen=True, slots=True)
class Sharing:
    """Queries as written, and for each stream of theirs that is not made again the one that holds the same records.

    A query of the deployment that has no sink was removed: what others use of it stays.
    """

    written: tuple[Query, ...]
    stands: Mapping[str, str] = field(default_factory=dict)

    def stands_for(self, stream: str) -> str:
        """The stream that holds what a stream was written to hold."""
        return self.stands.get(stream, stream)

    def users(self) -> dict[str, tuple[str, ...]]:
        """By each stream that is shared, the queries that use it, its own first."""
        found: dict[str, dict[str, None]] = {}
        written = {query.name for query in self.written}
        for stream, shared in self.stands.items():
            own = shared.partition(".")[0]
            users = found.setdefault(shared, {own: None} if own in written else {})
            users[stream.partition(".")[0]] = None
        return {shared: tuple(users) for shared, users in found.items()}
