"""How much waits at a source? Timed records that are due and not taken, and what lies in files that were not read yet.

Records of files are counted where that is quick: the lines of small text files, the footers of Parquet files. A large
text file is taken to go on as it begins.
"""

from __future__ import annotations

import glob
import gzip
import json
import os
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

from weft.model import Source
from weft.spark.channels.folders import Folders
from weft.spark.sources import streams as sources
from weft.spark.sources.arrivals import Flow
from weft.spark.sources.rate import Clock
from weft.spec.paths import unbraced

SAMPLE_BYTES = 1 << 20
LOOK_S = 1.0  # a folder is listed no oftener


def records_due(folders: Folders, source: Source, flow: Flow | None) -> int:
    """How many records a timed source has had to give by now."""
    recorded: int | None = None
    if source.facts.recorded:
        last = folders.recording(source.name).last()
        recorded = 0 if last is None else last.rows_total
    if flow is None:
        return recorded or 0
    flows = sources.read_flows(folders.flows)
    if len(flows["starts"]) < flows["launches"]:  # sources have not begun to flow in this start
        return 0
    born = flow.count(Clock([tuple(pair) for pair in flows["starts"]]).flow_s(time.time() * 1000))
    return born if recorded is None else min(born, recorded)


def flow_of(folders: Folders, source: Source) -> Flow | None:
    """When the records of a timed source are due; None where they are, all of them, at once."""
    if source.arrivals is None:
        return None
    factors = [tuple(pair) for pair in sources.read_flows(folders.flows)["factors"].get(source.name, [])]
    return Flow(source.arrivals, sources.seed_of(source), factors)


def files_in(pattern: str) -> list[str]:
    """The files of a folder, or that a glob finds, but for those whose names Spark passes over."""
    found: list[str] = []
    for path in [hit for one in unbraced(pattern) for hit in glob.glob(one)]:
        inner = [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else [path]
        found += [one for one in inner if not is_passed_over(os.path.basename(one)) and os.path.isfile(one)]
    return found


def is_passed_over(name: str) -> bool:
    """Whether Spark takes no notice of a file of that name."""
    return name.startswith((".", "_")) or name.endswith("._COPYING_")


class UnreadFiles:
    """What lies in a source's files that a fragment has not read, by Spark's own list of what it has."""

    def __init__(self, source: Source, pattern: str, seen: Path) -> None:
        self.source = source
        self.pattern = pattern
        self.seen = seen
        self._logs: dict[str, list[tuple[int, str]]] = {}
        self._counts: dict[tuple[str, int], int] = {}
        self._listed_s = -LOOK_S
        self._records = 0

    def records(self, upto: int) -> int:
        """Records in files that are in no batch up to that one of Spark's list."""
        now_s = time.monotonic()
        if now_s - self._listed_s >= LOOK_S:
            self._listed_s = now_s
            taken = self._taken(upto)
            self._records = sum(self._in_file(path) for path in self._files() if path not in taken)
        return self._records

    def _files(self) -> list[str]:
        return [os.path.realpath(one) for one in files_in(self.pattern)]

    def _taken(self, upto: int) -> set[str]:
        try:
            names = [name for name in os.listdir(self.seen) if name.partition(".")[0].isdigit()]
        except FileNotFoundError:
            return set()
        for name in names:
            if name not in self._logs:
                lines = (self.seen / name).read_text(encoding="utf-8").splitlines()[1:]
                entries = [json.loads(line) for line in lines]
                self._logs[name] = [(one["batchId"], _plain(one["path"])) for one in entries]
        self._logs = {name: self._logs[name] for name in names}
        return {path for entries in self._logs.values() for batch, path in entries if batch <= upto}

    def _in_file(self, path: str) -> int:
        try:
            size = os.path.getsize(path)
            if (path, size) not in self._counts:
                self._counts[path, size] = _records_in(path, size, self.source)
            return self._counts[path, size]
        except OSError:  # gone meanwhile
            return 0


def _plain(uri: str) -> str:
    return os.path.realpath(unquote(urlparse(uri).path))


def _records_in(path: str, size: int, source: Source) -> int:
    if source.format == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return int(pq.read_metadata(path).num_rows)
        except pa.ArrowInvalid:  # still being written, or none
            return 0
    packed = path.endswith(".gz")
    with gzip.open(path) if packed else open(path, "rb") as file:
        sample = file.read(SAMPLE_BYTES)
    lines = sample.count(b"\n") + (0 if sample.endswith(b"\n") or not sample else 1)
    whole = len(sample) < SAMPLE_BYTES
    if not whole:
        lines = round(lines * max(1.0, (size * 4 if packed else size) / len(sample)))
    has_head = str(source.options.get("header", "")).lower() == "true"
    return max(0, lines - 1 if has_head and source.format == "csv" else lines)
