"""Does the Nexmark example give the right rows, wherever its operators run?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.examples.nexmark_rows import as_words, batch, expected, module, run

DATA = os.environ.get("WEFT_DATA")
RECORDED = Path(DATA or "", "nexmark")
needs_recorded = pytest.mark.skipif(
    not DATA or not RECORDED.is_dir(), reason="WEFT_DATA does not name a folder with nexmark/"
)


def filled(folder: Path, **how: Any) -> Path:
    """A folder with data, beside which a variant can be written."""
    module("generate").fill(folder / "data", **how)
    return folder


def test_made_up_data_is_the_same_every_time(tmp_path: Path) -> None:
    generate = module("generate")
    for name in ("once", "again"):
        generate.fill(tmp_path / name, bids=100, made_up=True)
    for name in generate.NAMES:
        assert (tmp_path / "once" / f"{name}.csv").read_bytes() == (tmp_path / "again" / f"{name}.csv").read_bytes()


def test_made_up_data_has_late_records_within_the_wait(tmp_path: Path) -> None:
    generate = module("generate")
    moments = [row[5] for row in generate.made(500, 7)["bid"]]
    assert moments != sorted(moments)


@pytest.mark.parametrize(("kind", "sites"), [("spread", 4), ("free", 4), ("one-site", 1)])
def test_a_variant_keeps_the_queries_and_changes_only_places(kind: str, sites: int) -> None:
    plain = module("variant").variant(kind)
    assert [query["name"] for query in plain["queries"]] == ["q0", "q1", "q2", "q3", "q7", "q8"]
    assert len(plain["sites"]) == sites
    pinned = [operator.get("site") for query in plain["queries"] for operator in query["operators"]]
    assert all(pinned) if kind == "spread" else not any(pinned)


@needs_recorded
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["spread", "one-site"])
def test_recorded_data_gives_exactly_the_expected_rows(kind: str, spark: Any, tmp_path: Path) -> None:
    found = run(kind, filled(tmp_path))
    for query, rows in expected(RECORDED).items():
        assert as_words(found[query]) == rows, query


@pytest.mark.spark
@pytest.mark.skipif(RECORDED.is_dir() if DATA else False, reason="recorded data is at hand and says more")
def test_made_up_data_gives_the_rows_of_batch_spark(spark: Any, tmp_path: Path) -> None:
    folder = filled(tmp_path, bids=500, made_up=True)
    wanted = batch(spark, folder)
    found = run("spread", folder)
    assert {query: sum(rows.values()) for query, rows in wanted.items() if not rows} == {}
    for query, rows in wanted.items():
        assert found[query] == rows, query
