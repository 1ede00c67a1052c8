"""What runs beside the file? Queries that came while it ran, and those of the file that went: the journal holds both.

`weft add` and `weft remove` leave the user's file as it is. What they did outlives a stop: a run that goes on has the
queries of its file, less those that were removed, and those that were added. Once the file says the same, it says it
alone; `weft apply` lets the file's word count again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec

from weft.model import Deployment, Query
from weft.model.wishes import AddQuery, RemoveQuery, Wish


@dataclass(frozen=True, slots=True)
class Beside:
    """Queries that run and that the file does not have, as written, and names in it that do not run."""

    added: tuple[Query, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def after(self, wish: Wish) -> Beside:
        """As it is once a wish is granted; what the file asks for is not beside it."""
        match wish:
            case AddQuery():
                names = {query.name for query in wish.queries}
                removed = tuple(name for name in self.removed if name not in names)
                new = tuple(one for one in wish.written if wish.by != "file" and one.name not in self.removed)
                return Beside((*(one for one in self.added if one.name not in names), *new), removed)
            case RemoveQuery(query=name, by=by):
                own = any(query.name == name for query in self.added)
                added = tuple(query for query in self.added if query.name != name)
                return Beside(added, self.removed if own or by == "file" else (*self.removed, name))
            case _:
                return self

    def of_file(self, deployment: Deployment) -> Beside:
        """What is still beside a file that may have changed."""
        names = {query.name for query in deployment.queries}
        added = tuple(query for query in self.added if query.name not in names)
        return Beside(added, tuple(name for name in self.removed if name in names))

    def applied(self, deployment: Deployment) -> Deployment:
        """The queries of a file, less those that were removed, and those that were added."""
        still = self.of_file(deployment)
        kept = tuple(query for query in deployment.queries if query.name not in still.removed)
        return replace(deployment, queries=(*kept, *still.added))

    def notes(self) -> list[str]:
        """What a run that goes on says of it."""
        came = [
            f"query {query.name} came while it ran and goes on, though the file does not have it: put it there, or let "
            "`weft apply` remove it"
            for query in self.added
        ]
        went = [
            f"query {name} of the file was removed while it ran and stays away: take it out, or let `weft apply` bring "
            "it back"
            for name in self.removed
        ]
        return [*came, *went]

    def plain(self) -> dict[str, Any]:
        """As the journal holds it."""
        return {"beside": {"added": [asdict(query) for query in self.added], "removed": list(self.removed)}}


def beside_of(found: Mapping[str, Any]) -> Beside:
    """From what the journal holds; an earlier version holds nothing."""
    held = found.get("beside", {})
    return Beside(
        tuple(msgspec.convert(plain, Query) for plain in held.get("added", ())), tuple(held.get("removed", ()))
    )
