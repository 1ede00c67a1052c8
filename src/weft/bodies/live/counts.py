"""What was counted that no manifest tells? Batches, and records of users' files, over all runs of one state.

Only Spark knows how many records a file held, and it forgets. So what it reported is kept in the state, at every look
(once a second): what a site had not told when it was lost, or the desk had not kept, is missing from these numbers for
good, and from nothing else. What manifests and offsets tell (results, records of channels and timed sources) is never
missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from weft.protocol.reporting import BatchDone

FILE = "counts.json"


class FromFiles(msgspec.Struct):
    """Records that a fragment took from a source of files, bad ones among them, and those taken before it came.

    After a move another fragment may read the source on: what the old one had taken counts for the source, but not as
    records into the new one.
    """

    records: int = 0
    bad: int = 0
    records_before: int = 0
    bad_before: int = 0
    reads: bool = False

    @property
    def records_of_source(self) -> int:
        """Records of the source up to where this fragment has come."""
        return self.records_before + self.records

    @property
    def bad_of_source(self) -> int:
        """Bad records among them."""
        return self.bad_before + self.bad


class Counted(msgspec.Struct):
    """A fragment's batches in all runs, up to the last that was counted; another checkpoint numbers them anew."""

    generation: int = 0
    batch: int = -1
    batches: int = 0
    busy_ms: int = 0
    sources: dict[str, FromFiles] = {}
    operators: dict[str, int] = {}


class Counts(msgspec.Struct):
    """All that was counted, by fragment; and records into and out of each `query.operator`, where both are known."""

    fragments: dict[str, Counted] = {}
    operators: dict[str, tuple[int, int]] = {}

    def last(self, fragment: str, generation: int) -> int:
        """The last batch of a checkpoint that was counted; one that is reported again is not counted twice."""
        held = self.fragments.get(fragment)
        return held.batch if held is not None and held.generation == generation else -1

    def take(self, report: BatchDone) -> bool:
        """Count a batch, unless it was; whether it was not."""
        fragment = report.fragment
        if report.batch <= self.last(fragment, report.generation):
            return False
        held = self.fragments.setdefault(fragment, Counted())
        held.generation, held.batch = report.generation, report.batch
        held.batches += report.batches
        held.busy_ms += report.busy_ms
        for source, rows in report.sources.items():
            held.sources.setdefault(source, FromFiles()).records += rows
        for source, bad in report.bad.items():
            held.sources.setdefault(source, FromFiles()).bad += bad
        for operator, rows in report.operators.items():
            held.operators[operator] = held.operators.get(operator, 0) + rows
        return True

    def follow(self, reading: Mapping[str, Collection[str]]) -> None:
        """Know who reads which source of files: one that comes later goes on where those that ended were."""
        for fragment, sources in reading.items():
            for source in sources:
                held = self.fragments.setdefault(fragment, Counted()).sources.setdefault(source, FromFiles())
                if held.reads:
                    continue
                ended = [one for name, one in self._readers(source) if source not in reading.get(name, ())]
                furthest = [held, *ended]
                held.records_before = max(one.records_of_source for one in furthest) - held.records
                held.bad_before = max(one.bad_of_source for one in furthest) - held.bad
        for fragment, counted in self.fragments.items():
            for source, one in counted.sources.items():
                one.reads = source in reading.get(fragment, ())

    def forget(self, queries: Collection[str]) -> None:
        """Drop what fragments and operators of some queries did."""
        self.fragments = {one: held for one, held in self.fragments.items() if one.partition(".")[0] not in queries}
        self.operators = {one: held for one, held in self.operators.items() if one.partition(".")[0] not in queries}

    def records_into(self, fragment: str) -> int:
        """Records of users' files that a fragment took."""
        held = self.fragments.get(fragment)
        return 0 if held is None else sum(one.records for one in list(held.sources.values()))

    def records_of(self, source: str) -> int:
        """Records of a source of files; fragments that read it side by side see the same ones."""
        return max((one.records_of_source for _, one in self._readers(source)), default=0)

    def bad_of(self, source: str) -> int:
        """Bad records of a source of files."""
        return max((one.bad_of_source for _, one in self._readers(source)), default=0)

    def _readers(self, source: str) -> Iterator[tuple[str, FromFiles]]:
        for fragment, held in list(self.fragments.items()):
            if source in held.sources:
                yield fragment, held.sources[source]


def as_plain(counts: Counts) -> Any:
    """The counts as they are kept."""
    return msgspec.to_builtins(counts)


def taken_up(kept: Any) -> Counts:
    """What earlier runs counted; nothing where that is not known."""
    try:
        return msgspec.convert(kept, Counts)
    except msgspec.ValidationError:
        return Counts()
