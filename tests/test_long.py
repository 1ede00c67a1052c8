"""The long check keeps its budget and its ledger, begins with what failed, and goes on where it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.long.__main__ import descendants, part_of
from tests.long.ledger import Ledger, fingerprint, ranges
from tests.long.order import ordered
from tests.long.report import Outcome, report

ENOUGH_S = 3600.0
UNITS = ["t.py::a[1]", "t.py::a[2]", "t.py::a[3]", "t.py::b[x]", "t.py::c"]


def ledger_in(folder: Path, code: str = "now") -> Ledger:
    return Ledger.load(folder / "long.json", code, "abc")


def test_every_test_has_its_turn_before_one_has_a_second(tmp_path: Path) -> None:
    order = ordered(UNITS, ledger_in(tmp_path), ENOUGH_S, 2)
    assert order.units == ["t.py::a[1]", "t.py::b[x]", "t.py::c", "t.py::a[2]", "t.py::a[3]"]


def test_what_passed_on_this_code_is_not_repeated_unless_asked_and_other_code_knows_nothing(tmp_path: Path) -> None:
    ledger_in(tmp_path).note("t.py::a[1]", "passed", 3.0, "2026-01-01")
    assert "t.py::a[1]" not in ordered(UNITS, ledger_in(tmp_path), ENOUGH_S, 2).units
    assert "t.py::a[1]" in ordered(UNITS, ledger_in(tmp_path), ENOUGH_S, 2, again=True).units
    assert "t.py::a[1]" in ordered(UNITS, ledger_in(tmp_path, "other"), ENOUGH_S, 2).units


def test_what_failed_on_any_code_comes_first_until_it_passes(tmp_path: Path) -> None:
    ledger_in(tmp_path, "before").note("t.py::a[3]", "failed", 3.0, "2026-01-01")
    assert ordered(UNITS, ledger_in(tmp_path), ENOUGH_S, 2).units[0] == "t.py::a[3]"
    ledger_in(tmp_path).note("t.py::a[3]", "passed", 3.0, "2026-01-02")
    assert json.loads((tmp_path / "long.json").read_text())["failed"] == {}
    ledger_in(tmp_path).note("t.py::a[3]", "failed", 3.0, "2026-01-03")
    assert not ledger_in(tmp_path).passed("t.py::a[3]")


def test_what_needs_more_than_the_budget_is_left_out_and_large_units_begin_early(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    ledger.note("t.py::b[x]", "cut off", 700.0, "2026-01-01")
    ledger.note("t.py::c", "passed", 200.0, "2026-01-01")
    order = ordered(UNITS, ledger, 600.0, 2, again=True)
    assert order.left["t.py::b[x]"] == "needs more than 12 minutes"
    assert order.units[0] == "t.py::c"
    assert ordered(UNITS, ledger, 60.0, 1, again=True).units == ["t.py::a[1]"]


def test_a_fingerprint_is_of_contents(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    before = fingerprint(tmp_path)
    os.utime(tmp_path / "src" / "a.py", (1, 1))
    (tmp_path / "notes.md").write_text("x")
    assert fingerprint(tmp_path) == before
    (tmp_path / "src" / "a.py").write_text("2")
    assert fingerprint(tmp_path) != before


def test_parts_are_all_units_once() -> None:
    parts = [part_of(UNITS, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(unit for part in parts for unit in part) == sorted(UNITS)
    with pytest.raises(SystemExit, match="is no part"):
        part_of(UNITS, "4/3")


def test_a_report_names_seeds_and_how_to_repeat_a_failure(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    ledger.note("t.py::a[1]", "passed", 1.0, "2026-01-01")
    outcomes = {"t.py::a[2]": Outcome("passed", 2.0), "t.py::a[3]": Outcome("failed", 1.0, "because")}
    text = report({"commit": "abc"}, UNITS, ordered(UNITS, ledger, ENOUGH_S, 1), outcomes, ledger)
    assert "| t.py::a | 2 | 3 |  | 1 |  | 3 |" in text
    assert "python -m pytest -m long 't.py::a[3]'" in text
    assert "because" in text
    assert ranges(["3", "1", "2", "9", "north"]) == "1-3, 9, north"


def test_a_process_is_found_below_another_in_a_session_of_its_own() -> None:
    inner = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], start_new_session=True)"
    process = subprocess.Popen([sys.executable, "-c", inner], stdin=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not descendants(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(descendants(process.pid)) == 1
    process.communicate(b"\n", timeout=30)
