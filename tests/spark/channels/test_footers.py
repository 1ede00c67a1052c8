"""What was just written must be there: records that vanish before they are counted are no batch without records."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.spark.channels.footers import write_parquet
from weft.spark.storage.disk import Damaged


class Records:
    """Writes some numbers as Spark would, and then something happens to the folder."""

    def __init__(self, count: int, after: Any = None) -> None:
        self.count, self.after = count, after
        self.write = self

    def mode(self, _: str) -> Records:
        return self

    def options(self, **_: str) -> Records:
        return self

    def parquet(self, folder: str) -> None:
        shutil.rmtree(Path(folder) / "_temporary")
        pq.write_table(pa.table({"v": list(range(self.count))}), Path(folder) / "part-0.parquet")
        if self.after is not None:
            self.after(Path(folder))


@pytest.mark.parametrize("count", [0, 3])
def test_records_are_counted_from_what_lies_there(tmp_path: Path, count: int) -> None:
    written = write_parquet(Records(count), tmp_path / "0-1", {}, [])  # type: ignore[arg-type]
    assert (written.rows, written.files) == ((3, ("part-0.parquet",)) if count else (0, ()))


def test_a_folder_that_is_gone_is_refused_and_not_taken_for_a_batch_without_records(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="0-1: is gone while its batch was being written; the same command"):
        write_parquet(Records(3, shutil.rmtree), tmp_path / "0-1", {}, [])  # type: ignore[arg-type]
