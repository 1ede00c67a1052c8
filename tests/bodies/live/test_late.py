"""Records behind the watermark are told exactly and kept, whatever the operator: as batch Spark without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft.spec
from tests.bodies.live.late_shapes import RULES, SHAPES, SOURCES, Row, drawn, expected, given, late_ids, lay_down
from weft.bodies.live.run import Options, Run

pytestmark = pytest.mark.spark


def laid_out(folder: Path, shapes: list[str]) -> tuple[Path, list[Row], list[Row]]:
    """A deployment of some shapes, its files, and all records of both sources."""
    (folder / "rules.py").write_text(RULES)
    left, right = drawn(1), drawn(2)
    lay_down(folder, "left", left)
    lay_down(folder, "right", right)
    file = folder / "weft.yaml"
    file.write_text(SOURCES + "".join(SHAPES[shape] for shape in shapes))
    return file, [row for rows in left for row in rows], [row for rows in right for row in rows]


def without(rows: list[Row], late: list[int]) -> list[Row]:
    return [row for row in rows if row[0] not in late]


@pytest.fixture(scope="module")
def run(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row], list[Row], dict[str, Any]]:
    """One run of all shapes, to its end."""
    folder = tmp_path_factory.mktemp("late")
    file, left, right = laid_out(folder, list(SHAPES))
    return folder, left, right, Run(weft.spec.load(file), folder / ".weft", Options(until_done=True)).go()


@pytest.mark.parametrize("shape", ["window", "session", "distinct", "once"])
def test_what_is_missing_are_the_late_records_and_no_others(spark: Any, run: Any, shape: str) -> None:
    folder, left, right, summary = run
    late = late_ids(spark, folder / "late" / shape)
    assert len(late) == len(set(late)) > 0
    assert given(spark, folder, shape) == expected(spark, shape, without(left, late), right)
    assert summary["queries"][shape]["late"] == summary["queries"][shape]["dropped"] == len(late)


def test_a_window_of_windows_lacks_what_the_first_left_out(spark: Any, run: Any) -> None:
    folder, left, right, _ = run
    late = late_ids(spark, folder / "late" / "window")
    assert given(spark, folder, "days") == expected(spark, "days", without(left, late), right)


def test_late_records_that_the_statement_does_not_want_are_filtered_not_late(spark: Any, run: Any) -> None:
    folder, left, _, _ = run
    values = {row[0]: row[3] for row in left}
    late = late_ids(spark, folder / "late" / "window")
    assert all(values[one] >= 0 and values[one] != 7 for one in late)


@pytest.mark.parametrize("shape", ["union", "join", "outer", "semi"])
def test_of_several_inputs_each_has_its_own_late_records(spark: Any, run: Any, shape: str) -> None:
    folder, left, right, summary = run
    gone = {name: late_ids(spark, folder / "late" / shape / name) for name in ("left", "right")}
    assert all(len(late) == len(set(late)) > 0 for late in gone.values())
    kept = without(left, gone["left"]), without(right, gone["right"])
    assert given(spark, folder, shape) == expected(spark, shape, *kept)
    assert summary["queries"][shape]["late"] == sum(len(late) for late in gone.values())


def test_a_record_is_late_if_one_of_its_sliding_windows_is_closed(spark: Any, run: Any) -> None:
    folder, left, right, summary = run
    late = late_ids(spark, folder / "late" / "slide")
    assert len(late) == len(set(late)) == summary["queries"]["slide"]["late"] > 0
    least = dict(expected(spark, "slide", without(left, late), right))
    most = dict(expected(spark, "slide", left, right))
    counts = dict(given(spark, folder, "slide"))
    assert all(least.get(window, 0) <= counts.get(window, 0) <= most[window] for window in most)
    assert sum(most.values()) - sum(counts.values()) >= len(late)
