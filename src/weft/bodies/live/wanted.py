"""What may a command ask of a run? A change, read like a file: what is not known in it is refused, with the reason."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Stream = Annotated[str, msgspec.Meta(pattern=r"^[^.]+\..", max_length=1_000)]
"""QUERY.OPERATOR"""
Homes = Annotated[dict[Stream, Name], msgspec.Meta(min_length=1, max_length=10_000)]


class NewQueries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Queries in plain values, as a file says them; what they hold is checked as a file is, by those who take them."""

    queries: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=1_000)]

    def __post_init__(self) -> None:
        if not all(isinstance(query.get("name"), str) for query in self.queries):
            raise ValueError("a query has no name")

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(query["name"] for query in self.queries)

    def plain(self) -> dict[str, Any]:
        """As they were said."""
        return {"queries": self.queries}


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One change: operators move (`homes`; one alone also as `query`, `operator`, `to`), queries come, or one goes."""

    homes: Homes | None = None
    query: Name | None = None
    operator: Name | None = None
    to: Name | None = None
    add: NewQueries | None = None
    remove: Name | None = None
    anyway: bool = False
    by: Literal["person", "file"] = "person"

    def __post_init__(self) -> None:
        if sum((bool(self.moves), self.add is not None, self.remove is not None)) != 1:
            raise ValueError("it must say one change: which operators move, which queries come, or which one goes")

    @property
    def moves(self) -> dict[str, str]:
        """Which operators are to move, and where."""
        if self.homes is not None:
            return self.homes
        if self.query is None or self.operator is None or self.to is None:
            return {}
        return {f"{self.query}.{self.operator}": self.to}

    @property
    def reason(self) -> str:
        """Why, in the words of the story."""
        return "the file says so" if self.by == "file" else "asked for"

    def __str__(self) -> str:
        if self.add is not None:
            return f"add {', '.join(self.add.names)}"
        if self.remove is not None:
            return f"remove {self.remove}"
        return ", ".join(f"move {stream} to {site}" for stream, site in self.moves.items())


def wanted_of(plain: Any) -> Wanted:
    """A change from plain values; ValueError where it is none."""
    return msgspec.convert(plain, Wanted)
