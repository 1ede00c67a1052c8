"""What was counted that no manifest tells? Batches, and records of users' files, over all runs of one state.

Only Spark knows how many records a file held, and it forgets. So what it reported is kept in the state, at every look
(once a second). A stop waits for what Spark has still to report, and what it overtakes is done again; but what a site
had not told when it was lost, or the desk had not kept when it died, is missing from these numbers for good, and from
nothing else. What manifests and offsets tell (results, records of channels and timed sources) is never
missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from weft.protocol.reporting import BatchDone

FILE = "counts.json"
MISSED_KEPT = 64  # batches that a site has not told of, though it or another has of later ones


class FromFiles(msgspec.Struct):
    """Records that a fragment took from a source of files, bad ones among them, and those taken before it came.

    After a move another fragment may read the source on: what the old one had taken counts for the source, but not as
    records into the new one. `follows` names the old one: its last batches may be reported when the new one runs.
    """

    records: int = 0
    bad: int = 0
    records_before: int = 0
    bad_before: int = 0
    reads: bool = False
    follows: str = ""

    @property
    def records_of_source(self) -> int:
        """Records of the source up to where this fragment has come."""
        return self.records_before + self.records

    @property
    def bad_of_source(self) -> int:
        """Bad records among them."""
        return self.bad_before + self.bad


class Counted(msgspec.Struct):
    """A fragment's batches in all runs, up to the last that was counted; another checkpoint numbers them anew.

    `missed` are those before the last that nobody has told of yet: the site that ran them may, later than another.
    """

    generation: int = 0
    batch: int = -1
    batches: int = 0
    busy_ms: int = 0
    sources: dict[str, FromFiles] = {}
    operators: dict[str, int] = {}
    missed: list[int] = []

    def note(self, generation: int, batch: int) -> bool:
        """Whether a batch was not counted before, from now on it is; a site may tell of it after those that follow."""
        if generation < self.generation:
            return True
        if generation > self.generation:
            self.generation, self.batch, self.missed = generation, -1, []
        if batch > self.batch:
            between = range(max(self.batch + 1, batch - MISSED_KEPT), batch)
            self.batch, self.missed = batch, [*self.missed, *between][-MISSED_KEPT:]
            return True
        was_missed = batch in self.missed
        self.missed = [one for one in self.missed if one != batch]
        return was_missed


class Counts(msgspec.Struct):
    """All that was counted, by fragment; and records into and out of each `query.operator`, where both are known."""

    fragments: dict[str, Counted] = {}
    operators: dict[str, tuple[int, int]] = {}

    def take(self, report: BatchDone) -> bool:
        """Count a batch, unless it was; whether it was not."""
        fragment = report.fragment
        held = self.fragments.setdefault(fragment, Counted())
        if not held.note(report.generation, report.batch):
            return False
        held.batches += report.batches
        held.busy_ms += report.busy_ms
        for source in {**report.sources, **report.bad}:
            rows, bad = report.sources.get(source, 0), report.bad.get(source, 0)
            one = held.sources.setdefault(source, FromFiles())
            one.records, one.bad = one.records + rows, one.bad + bad
            if not one.reads:
                self._push_on(source, fragment, rows, bad, {fragment})
        for operator, rows in report.operators.items():
            held.operators[operator] = held.operators.get(operator, 0) + rows
        return True

    def _push_on(self, source: str, ended: str, rows: int, bad: int, passed: set[str]) -> None:
        """Let those that went on from a fragment know of more that it had taken before it ended."""
        for name, one in self._readers(source):
            if one.follows == ended and name not in passed:
                one.records_before, one.bad_before = one.records_before + rows, one.bad_before + bad
                self._push_on(source, name, rows, bad, passed | {name})

    def follow(self, reading: Mapping[str, Collection[str]]) -> None:
        """Know who reads which source of files: one that comes later goes on where those that ended were."""
        for fragment, sources in reading.items():
            for source in sources:
                held = self.fragments.setdefault(fragment, Counted()).sources.setdefault(source, FromFiles())
                if held.reads:
                    continue
                ended = [(name, one) for name, one in self._readers(source) if source not in reading.get(name, ())]
                ways = [(fragment, held), *ended]
                held.follows, furthest = max(ways, key=lambda way: way[1].records_of_source)
                held.records_before = furthest.records_of_source - held.records
                held.bad_before = max(one.bad_of_source for _, one in ways) - held.bad
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
