"""A sink that is no folder: one class and two lines, and its results are exact as those of any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from weft import model
from weft.model import Sink, formats
from weft.spark.channels.channel import Fenced
from weft.spark.channels.folders import Folders
from weft.spark.channels.manifest import Manifest
from weft.spark.sinks import kinds
from weft.spark.sinks.delivery import SinkLog
from weft.spark.sinks.kind import Delivery, SinkKind
from weft.spark.sources import streams
from weft.spec.meaning import check_meaning
from weft.spec.problems import Problems


class Letterbox(SinkKind):
    """Keeps what it was given by the number of its batch; the first delivery may be cut off half way."""

    def __init__(self) -> None:
        self.got: dict[int, list[Any]] = {}
        self.cut_off = False

    def deliver(self, delivery: Delivery) -> None:
        rows = [row for name in delivery.manifest.files for row in _rows(delivery.folder / name)]
        self.got[delivery.manifest.segment] = rows[:1] if self.cut_off else rows
        if self.cut_off:
            self.cut_off = False
            raise KeyboardInterrupt


def _rows(path: Path) -> list[Any]:
    return [tuple(row.values()) for row in pq.read_table(path).to_pylist()]


@pytest.fixture
def letterbox(monkeypatch: pytest.MonkeyPatch) -> Letterbox:
    """A format that nothing else knows of."""
    found = Letterbox()
    monkeypatch.setitem(formats.SINKS, "letterbox", formats.SinkFormat("letterbox"))
    monkeypatch.setitem(kinds.SINKS, "letterbox", found)
    return found


def commit(log: SinkLog, epoch: int, batch: int, records: Any) -> None:
    """What a fragment does with a batch."""
    writer = log.open_writer(epoch, "f")
    if writer.written(batch):
        return
    written = writer.write(records, [])
    writer.commit(Manifest(writer.segment, epoch, "f", batch, rows=written.rows, files=written.files))


@pytest.mark.spark
def test_every_batch_is_delivered_once_also_where_a_delivery_is_cut_off(
    spark: Any, tmp_path: Path, letterbox: Letterbox
) -> None:
    folders = Folders(tmp_path / "state")
    sink = Sink("o", "letterbox")
    log = SinkLog(folders.sink("s", folders.console("s")), sink, folders.console("s"))
    batches = [spark.range(10 * at, 10 * at + 3).coalesce(1) for at in range(3)]
    commit(log, 1, 0, batches[0])
    letterbox.cut_off = True
    with pytest.raises(KeyboardInterrupt):
        commit(log, 1, 1, batches[1])
    assert len(letterbox.got[1]) == 1
    commit(log, 2, 1, batches[1])
    with pytest.raises(Fenced):
        commit(log, 1, 2, batches[2])
    commit(log, 2, 2, batches[2])
    assert letterbox.got == {at: [(10 * at + one,) for one in range(3)] for at in range(3)}
    assert not list(log.data.iterdir())


def test_a_format_that_has_a_line_is_known_to_checks(letterbox: Letterbox, tmp_path: Path) -> None:
    sink = model.Sink("o", "letterbox", path="out")
    source = model.Source("n", "a", "rate", (model.Column("v", "BIGINT"),), arrivals=model.Constant(1.0))
    operator = model.Operator("o", ("n",), sql="SELECT v FROM n")
    query = model.Query("q", (operator,), (sink,))
    deployment = model.Deployment((model.Site("a"),), (source,), (query,), folder=str(tmp_path))
    problems = Problems()
    check_meaning(deployment, problems)
    assert [(one.field, one.message) for one in problems.errors] == [
        ("queries[0].sink.path", "a letterbox sink has no path; leave it out")
    ]


def test_every_format_has_its_facts_and_its_reader_or_writer() -> None:
    assert formats.SINKS.keys() == kinds.SINKS.keys()
    assert formats.SOURCES.keys() == streams.READERS.keys()
    assert all(name == facts.name for known in (formats.SINKS, formats.SOURCES) for name, facts in known.items())
