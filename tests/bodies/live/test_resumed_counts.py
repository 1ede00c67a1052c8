"""The numbers of a run that is stopped, gone on with and moved about: in, out and bad are of all runs, rates of one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from weft.bodies.live.run import Options, Run

pytestmark = pytest.mark.spark

FILE = """
weft: 1
sites: [{name: edge}, {name: core}]
links: [{from: edge, to: core}]
sources:
  - {name: lines, site: edge, format: csv, path: in, schema: "v BIGINT", bad_records: skip}
queries:
  - name: q
    operators:
      - {name: good, from: lines, sql: "SELECT * FROM lines WHERE v >= 0", site: edge}
      - {name: small, from: good, sql: "SELECT v FROM good WHERE v < 50", site: core}
    sink: {from: small, format: csv, path: out}
"""
WAIT_S_MAX = 60.0


def give(folder: Path, name: str) -> None:
    """A file of 100 records, 50 of which come through, and a bad one."""
    (folder / "in").mkdir(exist_ok=True)
    aside = folder / f".{name}"
    aside.write_text("".join(f"{v}\n" for v in range(100)) + "bad\n")
    aside.rename(folder / "in" / f"{name}.csv")


def rows(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in (folder / "out").glob("part-*"))


def run_until(folder: Path, results: int, then: Callable[[Run], bool] = lambda run: True) -> dict[str, Any]:
    """A run that is stopped in order when so many results of all runs lie there; what it says of itself."""
    run = Run(weft.spec.load(folder / "weft.yaml"), folder / ".weft", Options())
    since_s = time.monotonic()

    def watch(run: Run) -> None:
        assert time.monotonic() < since_s + WAIT_S_MAX
        if run.phase == "running" and rows(folder) >= results and then(run):
            run.stop()

    return run.go(watch)


def test_counts_go_on_over_resumes_and_moves_while_rates_are_of_one_run(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(FILE)
    give(tmp_path, "one")
    give(tmp_path, "two")
    first = run_until(tmp_path, 100)
    told = first["queries"]["q"]
    assert (told["records_in"], told["records_out"], told["bad_records"]) == (202, 100, 2)

    again = run_until(tmp_path, 0)
    told = again["queries"]["q"]
    assert (told["records_in"], told["records_out"], told["bad_records"]) == (202, 100, 2), "nothing came"
    assert again["rates_per_s"] == {"q": 0.0}

    give(tmp_path, "three")
    second = run_until(tmp_path, 150)
    told = second["queries"]["q"]
    assert (told["records_in"], told["records_out"], told["bad_records"]) == (303, 150, 3)
    assert second["rates_per_s"]["q"] == pytest.approx(50 / second["flowed_s"], rel=0.01, abs=0.06)
    assert second["fragments"]["q.good"]["records_in"] == 303
    assert second["fragments"]["q.small"]["records_in"] == 300
    assert second["fragments"]["q.good"]["batches"] > first["fragments"]["q.good"]["batches"]
    assert second["operators"]["q.good"]["records_out"] == 300

    def moved(run: Run) -> bool:
        """The reader of the source leaves, and a relay reads on in its place."""
        if not run.changes.moves:  # type: ignore[union-attr]
            run.move("q", "good", "core")
        elif [move.state for move in run.changes.moves] == ["done"]:  # type: ignore[union-attr]
            if not (tmp_path / "in" / "four.csv").exists():
                give(tmp_path, "four")
            return rows(tmp_path) >= 200
        return False

    third = run_until(tmp_path, 150, moved)
    told = third["queries"]["q"]
    assert (told["records_in"], told["records_out"], told["bad_records"]) == (404, 200, 4)
    assert third["rates_per_s"]["q"] == pytest.approx(50 / third["flowed_s"], rel=0.01, abs=0.06)
