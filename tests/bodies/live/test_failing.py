"""How a run that fails leaves its reason, even where its disk takes nothing more."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weft.bodies.live.failing import RunFailed, failed
from weft.bodies.live.state import State
from weft.model import Deployment
from weft.spark.fragments.operators import BadOperator


def run_in(folder: Path, **more: Any) -> Any:
    """As much of a run as failing needs."""
    state = State(folder)
    state.begin({}, {}, {})
    run = SimpleNamespace(deployment=Deployment((), (), ()), state=state, sites=None, phase="running")
    run.status = lambda: {"phase": run.phase, "queries": {"q": {}}}
    return SimpleNamespace(**{**vars(run), **more})


def status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return found


def test_any_error_becomes_a_failed_run_whose_status_says_why(tmp_path: Path) -> None:
    found = failed(run_in(tmp_path), ZeroDivisionError("division by zero"), None)
    assert isinstance(found, RunFailed)
    assert str(found) == "ZeroDivisionError: division by zero"
    assert (status(tmp_path)["phase"], status(tmp_path)["reason"]) == ("failed", str(found))
    assert status(tmp_path)["queries"] == {"q": {}}
    assert "ZeroDivisionError" in (tmp_path / "logs" / "errors.log").read_text()


def test_a_run_that_fails_before_its_state_has_a_record_leaves_nothing_that_a_next_start_refuses(
    tmp_path: Path,
) -> None:
    run = run_in(tmp_path)
    (tmp_path / "run.json").unlink()
    assert str(failed(run, OSError(28, "No space left on device"), None)).startswith("No space left on device")
    assert list(tmp_path.iterdir()) == []
    run.state.check_place()


def test_a_bad_operator_stays_one_and_what_was_known_before_is_the_reason(tmp_path: Path) -> None:
    bad = BadOperator("operator q.o: no")
    assert failed(run_in(tmp_path), bad, None) is bad
    assert str(failed(run_in(tmp_path), OSError("gone"), "q.o: first")) == "q.o: first"
    assert status(tmp_path)["reason"] == "q.o: first"


def test_a_status_that_cannot_be_made_any_more_is_no_second_failure(tmp_path: Path) -> None:
    def gone() -> dict[str, Any]:
        raise ConnectionError("Spark is gone")

    assert str(failed(run_in(tmp_path, status=gone), ValueError("why"), None)) == "ValueError: why"
    assert status(tmp_path)["reason"] == "ValueError: why"


def test_a_full_disk_takes_the_reason_in_the_place_of_the_old_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "status.json").write_text(json.dumps({"phase": "running"}))
    monkeypatch.setattr(State, "write", full)
    found = failed(run_in(tmp_path), OSError(28, "No space left on device"), None)
    assert str(found).startswith("No space left on device")
    assert (status(tmp_path)["phase"], status(tmp_path)["reason"]) == ("failed", str(found))
    monkeypatch.setattr(Path, "write_text", full)
    assert str(failed(run_in(tmp_path), OSError(28, "No space left on device"), None)) == str(found)
