"""What waits at a source: records that are due and not taken, and files that are not on Spark's list of those read."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.model import Column, Constant, Source
from weft.spark.channels.folders import Folders
from weft.spark.sources.streams import write_flows
from weft.spark.sources.waiting import SAMPLE_BYTES, UnreadFiles, flow_of, records_due


def source(format_: str, **options: str) -> Source:
    return Source("s", "a", format_, (Column("id", "BIGINT"),), "in", options)


def listed(seen: Path, name: str, *files: tuple[int, Path]) -> None:
    """Spark's list of the files in its batches."""
    seen.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": path.as_uri(), "timestamp": 1, "batchId": batch}) for batch, path in files]
    (seen / name).write_text("\n".join(["v1", *lines]))


@pytest.mark.parametrize(("options", "records"), [({}, 7), ({"header": "true"}, 5)])
def test_files_count_until_the_batch_that_holds_them_is_written(
    folder: Path, options: dict[str, str], records: int
) -> None:
    (folder / "in").mkdir()
    one, other = folder / "in" / "a b.csv", folder / "in" / "b.csv"
    one.write_text("1\n2\n3\n")
    other.write_text("1\n2\n3\n4")  # the last line need not end
    (folder / "in" / "_hidden").write_text("1\n")
    seen = folder / "seen"

    def waiting(upto: int) -> int:
        return UnreadFiles(source("csv", **options), str(folder / "in"), seen).records(upto)

    assert waiting(-1) == records
    listed(seen, "0", (0, one))
    listed(seen, "1", (1, other))
    assert waiting(-1) == records
    assert waiting(0) == (4 if not options else 3)
    assert waiting(1) == 0
    (seen / "0").unlink()
    (seen / "1").unlink()
    listed(seen, "9.compact", (0, one), (1, other))
    assert waiting(1) == 0


def test_timed_records_are_due_by_the_clock_of_this_start(folder: Path) -> None:
    folders = Folders(folder)
    timed = Source("s", "a", "rate", (Column("id", "BIGINT"),), arrivals=Constant(10.0))
    now_ms = time.time() * 1000
    flows = {"starts": [(0.0, now_ms - 60_000)], "flowed_s": 2.0, "factors": {}, "launches": 2}
    write_flows(folders.flows, flows, folders.disk)
    flow = flow_of(folders, timed)
    assert records_due(folders, timed, flow) == 0  # a second start, in which nothing flows yet
    write_flows(folders.flows, {**flows, "starts": [*flows["starts"], (2.0, now_ms - 5000)]}, folders.disk)
    assert 69 <= records_due(folders, timed, flow) <= 90


def test_a_footer_tells_how_many_records_a_parquet_file_holds(folder: Path) -> None:
    (folder / "in").mkdir()
    pq.write_table(pa.table({"id": list(range(11))}), folder / "in" / "x.parquet")
    (folder / "in" / "y.parquet").write_text("not yet")
    assert UnreadFiles(source("parquet"), str(folder / "in" / "*.parquet"), folder / "seen").records(-1) == 11


def test_a_large_text_file_is_taken_to_go_on_as_it_begins(folder: Path) -> None:
    lines = 3 * SAMPLE_BYTES // 16
    (folder / "large.json").write_text("123456789012345\n" * lines)
    found = UnreadFiles(source("json"), str(folder / "large.json"), folder / "seen").records(-1)
    assert found == pytest.approx(lines, rel=0.001)
