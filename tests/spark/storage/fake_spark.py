"""What Spark does to its checkpoint, without Spark: context, state and commits, in its order and never synced.

Two fragments: one takes numbers from a user's files and passes them on, the other keeps a running total and writes
every number with it to a sink. What the sink must hold does not depend on how batches fall.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import weft.spec
from weft.bodies.live import journal
from weft.bodies.live.identity import identity
from weft.bodies.live.resuming import Resuming
from weft.bodies.live.state import State
from weft.model import Placement
from weft.plan.changing.fragments import Fragment, cut
from weft.plan.changing.running_plan import RunningPlan
from weft.plan.dataflow.event_times import Times
from weft.spark.channels import footers
from weft.spark.channels.folders import Folders
from weft.spark.channels.gate import Gate
from weft.spark.channels.manifest import Written
from weft.spark.channels.position import POSITION, TICK
from weft.spark.checkpoints.checkpoint import last_committed, last_planned
from weft.spark.fragments.batch_times import BatchTimes
from weft.spark.fragments.wiring import Entry, RunContext
from weft.spark.fragments.writing import BatchWriter
from weft.spark.storage.disk import Disk, checked

TOTAL, PER_FILE = 15, 3
FILE = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b}]
sources: [{name: n, site: a, format: csv, path: in, schema: "v BIGINT"}]
queries:
  - name: q
    operators:
      - {name: keep, from: [n], sql: "SELECT v FROM n", site: a}
      - {name: sums, from: [keep], sql: "SELECT v FROM keep", site: b}
    sink: {from: sums, format: csv, path: out}
"""
OPENING = 'v2\n{"batchWatermarkMs":0,"batchTimestampMs":1}\n'


def expected() -> list[str]:
    """What the sink must hold, line by line."""
    return [f"{v},{v * (v + 1) // 2}" for v in range(1, TOTAL + 1)]


class Frame:
    """A batch that is worked out when it is written."""

    def __init__(self, rows: list[int], work: Any, disk: Disk) -> None:
        self.rows, self.work, self.disk = rows, work, disk

    @property
    def write(self) -> Frame:
        return self

    def format(self, name: str) -> Frame:
        return self

    def mode(self, name: str) -> Frame:
        return self

    def save(self) -> None:
        self.work(self.rows)

    def lines(self) -> list[str]:
        return list(self.work(self.rows))


def written(frame: Frame, folder: Path, format_: str) -> Written:
    """Written as Spark would: files that nobody syncs."""
    lines = frame.lines()
    frame.disk.make(folder)
    if not lines:
        return Written(folder=folder)
    frame.disk.write(folder / f"part-0.{format_}", "".join(f"{line}\n" for line in lines).encode())
    return Written(len(lines), 1, (f"part-0.{format_}",), {}, folder)


class NoneLate:
    """No watermark leaves anything out here."""

    def dropped(self) -> None:
        """Nothing was."""


class Engine:
    """One fragment's query."""

    def __init__(self, context: RunContext, fragment: Fragment, epoch: int) -> None:
        self.context, self.fragment = context, fragment
        self.disk = context.folders.disk
        self.checkpoint = context.folders.checkpoint(fragment.id, 0)
        self.reads_files = bool(fragment.sources)
        stream, operator = ("n", "keep") if self.reads_files else ("q.keep", "sums")
        self.entry = Entry(stream, operator, f"in_{operator}", not self.reads_files, None, 0)
        gate = Gate(context.folders.gate(fragment.id, 0), False, self.disk)
        batch_times = BatchTimes(context, Times({}), fragment, False)
        self.writer = BatchWriter(
            context, fragment, batch_times, self.checkpoint, gate, 0, lambda commit: None, lambda: None, NoneLate()
        )
        self.writer.adopt(epoch, f"{fragment.id}/0")
        self.writer.load_positions([self.entry], False)
        self.writer.begin_turn()
        self.passed: int | None = None
        if self.reads_files is False:
            context.folders.stream("q.keep").create().register(f"{fragment.id}~{self.entry.name}")
        self._put("metadata", '{"id":"x"}') if not (self.checkpoint / "metadata").exists() else None

    def _put(self, name: str, text: str) -> None:
        """As Spark writes: aside, then renamed, and not synced."""
        path = self.checkpoint / name
        for folder in reversed([one for one in path.parents if not one.exists()]):
            folder.mkdir()
            self.disk.ops.append(("make", self.disk._path(folder), None))  # type: ignore[attr-defined]
        aside = path.with_name(f".{path.name}.tmp")
        self.disk.write(aside, text.encode())
        self.disk.rename(aside, path)

    def _end(self, batch: int) -> int:
        """Where a batch ends: the last file seen, or the segment to come."""
        if batch < 0 or not (self.checkpoint / "offsets" / str(batch)).exists():
            return 0
        line = (self.checkpoint / "offsets" / str(batch)).read_text().splitlines()[2]
        return int(json.loads(line.partition(":")[2])["logOffset" if self.reads_files else POSITION])

    def step(self) -> bool:
        """One batch, planned or planned before; False where there is nothing to do."""
        batch = self.plan()
        if batch is None:
            return False
        self.write(batch)
        self.commit(batch)
        return True

    def plan(self) -> int | None:
        """The next batch, planned now or before; None where there is nothing to do."""
        planned, committed = last_planned(self.checkpoint), last_committed(self.checkpoint)
        if planned is None or planned == committed:
            batch = 0 if planned is None else planned + 1
            end = self._plan(self._end(batch - 1))
            if end is None:
                return None
            key = {"logOffset": end} if self.reads_files else {POSITION: end, TICK: 1}
            self._put(f"offsets/{batch}", f"{OPENING}{self.entry.name}:{json.dumps(key)}\n")
            return batch
        return planned

    def write(self, batch: int) -> None:
        """Lets the batch be written, as `foreachBatch` does."""
        rows = self._rows(self._end(batch - 1), self._end(batch))
        self.writer.write(Frame(rows, lambda rows: self._work(rows, batch), self.disk), batch)  # type: ignore[arg-type]

    def commit(self, batch: int) -> None:
        """Writes down that a batch is over."""
        self._put(f"commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}')
        if not self.reads_files:
            if self.passed is not None:
                self.context.folders.stream("q.keep").passed(f"{self.fragment.id}~{self.entry.name}", self.passed)
            self.passed = self._end(batch)

    def _plan(self, start: int) -> int | None:
        if not self.reads_files:
            following = self.context.folders.stream("q.keep").next_segment()
            return following if following > start else None
        seen = self.checkpoint / "sources" / "0"
        known = max((int(path.name) for path in seen.glob("[0-9]*")), default=0)
        if known == start:
            if start * PER_FILE >= TOTAL:
                return None
            first = start * PER_FILE + 1
            self._put(f"sources/0/{start + 1}", json.dumps(list(range(first, first + PER_FILE))))
            known = start + 1
        return known

    def _rows(self, start: int, end: int) -> list[int]:
        if self.reads_files:
            seen = self.checkpoint / "sources" / "0"
            found = [json.loads((seen / str(number)).read_text()) for number in range(start + 1, end + 1)]
            return [row for rows in found for row in rows]
        log = self.context.folders.stream("q.keep")
        rows: list[int] = []
        for segment in range(start, end):
            for file in log.files(log.needed_manifest(segment)):
                rows += [int(line) for line in checked(*file).decode().split()]
        return rows

    def _work(self, rows: list[int], batch: int) -> list[str]:
        if self.reads_files:
            return [str(row) for row in rows]
        total = json.loads((self.checkpoint / f"state/0/0/{batch}.delta").read_text()) if batch else 0
        lines = []
        for row in rows:
            total += row
            lines.append(f"{row},{total}")
        self._put(f"state/0/0/{batch + 1}.delta", json.dumps(total))
        return lines


class World:
    """A state folder with the two fragments, taken up from wherever it was left."""

    def __init__(self, folder: Path, disk: Disk, monkeypatch: Any) -> None:
        monkeypatch.setattr(footers, "write_parquet", lambda *given: written(given[0], given[1], "parquet"))
        monkeypatch.setattr(footers, "write_text", lambda *given: written(given[0], given[1], given[2]))
        self.folder, self.disk = folder, disk
        (folder / "in").mkdir(exist_ok=True)
        (folder / "d.yaml").write_text(FILE)
        deployment = weft.spec.load(folder / "d.yaml")
        self.state = State(folder / "state")
        self.state.disk = disk
        self.state.folders = Folders(self.state.path, "", disk)
        resuming = Resuming(self.state, deployment, identity(deployment))
        resuming.look(False)
        resuming.open()
        self.notes = resuming.notes
        placement = Placement({"q.keep": "a", "q.sums": "b"})
        fragments = cut(deployment, placement, lambda query, one: one.name == "sums", lambda *_: True)
        if journal.read(self.state) is None:
            self.state.write("flows.json", {"starts": []})
            journal.write(self.state, RunningPlan(0, deployment, placement, fragments), {}, {})
        epoch = 1 + (self.state.read("epochs.json") or {"x": {"all": 0}})["x"]["all"]
        self.state.write("epochs.json", {"x": {"all": epoch}})
        context = RunContext(deployment, self.state.folders, {})
        self.engines = [Engine(context, one, epoch) for one in sorted(fragments, key=lambda one: not one.sources)]

    def acknowledged(self) -> int:
        """Batches that the sink was told are committed."""
        return int(self.engines[1].writer.outputs[0].writer.segment)

    def run(self, steps: int = 1000) -> None:
        """Batches by turns until all is read, or so many."""
        first, second = self.engines
        for step in range(steps):
            went = first.step()
            if not went:
                first.writer.finish_sources()
            # The second is one behind now and then, so that segments wait.
            went = (second.step() if step % 3 or not went else True) or went
            if not went:
                return

    def delivered(self) -> list[str]:
        """What a reader of plain files finds."""
        files = sorted((self.folder / "out").glob("*.csv"))
        return [line for file in files for line in file.read_text().splitlines()]
