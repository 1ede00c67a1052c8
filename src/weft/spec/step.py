"""What is an operator checked with? It, its query, what it reads, and where to report."""

from __future__ import annotations

from dataclasses import dataclass

from weft.model import Deployment, Operator, Query
from weft.spec.problems import Problems
from weft.spec.streams import Columns, Followed


@dataclass(frozen=True, slots=True)
class Step:
    """An operator in its place: its inputs' columns, its path, the paths of block texts, and whether what it reads
    is free of errors, so that what is missing is missing here."""

    deployment: Deployment
    query: Query
    followed: Followed
    path: str
    problems: Problems
    blocks: frozenset[str]
    clean: bool = True

    @property
    def operator(self) -> Operator:
        """The operator itself."""
        return self.followed.operator

    @property
    def inputs(self) -> dict[str, Columns]:
        """The columns of what it reads."""
        return self.followed.inputs

    def error(self, key: str, message: str, line_within: int | None = None) -> None:
        """Reports an error at one of the operator's keys, on its own line of a block text."""
        field = f"{self.path}.{key}"
        line = self.problems.line(field)
        if line is not None and line_within is not None and field in self.blocks:
            line += line_within
        self.problems.error(field, message, line)

    def warn(self, key: str, message: str) -> None:
        """Reports a warning at one of the operator's keys."""
        self.problems.warn(f"{self.path}.{key}", message)
