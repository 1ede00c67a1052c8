"""No traceback reaches a user: whatever is broken is told in a sentence, and --debug shows where."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.cli_files import STATE, weft, weft_json, weft_outside, written
from tests.cli.test_looking import STORY, running, told
from weft.cli.guard import REMEDIES

BINARY = b"\xff\xfe\x00\x81 no text\x00"
WORDS: dict[str, tuple[str, ...]] = {
    "check": (), "status": (), "explain": (), "plan": (), "logs": (), "stop": (), "twin": ("--seconds", "1"),
    "move": ("hourly_use.valid", "gw-1"), "run": ("--seconds", "0"), "profile": ("no.such",),
}  # fmt: skip


def broken_plan(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
    import weft.plan

    def fault(*words: object, **more: object) -> None:
        raise error or KeyError("of all things")

    monkeypatch.setattr(weft.plan, "place", fault)


def test_an_error_nobody_expected_is_one_sentence_and_exit_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken_plan(monkeypatch)
    result = weft("plan", written(tmp_path), "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    said, where = result.stderr.splitlines()[-2:]
    assert said.startswith("weft: KeyError: 'of all things'")
    assert where == "`--debug` shows where"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_what_the_system_refuses_is_told_by_its_file_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    broken_plan(monkeypatch, OSError(number, os.strerror(number), str(tmp_path / "some file")))
    result = weft("plan", written(tmp_path))
    assert result.exit_code == 2
    said = result.stderr.splitlines()[-1]
    assert said == f"weft: {tmp_path / 'some file'}: {os.strerror(number)}; {REMEDIES[number]}"


@pytest.mark.parametrize("command", ["run", "status", "plan", "logs", "explain", "stop"])
def test_a_state_folder_of_an_impossible_name_is_wrong_input(command: str, tmp_path: Path) -> None:
    result = weft(command, written(tmp_path), "--state", tmp_path / ("x" * 300))
    assert result.exit_code == 2
    assert "name too long" in " ".join(result.stderr.replace("\u2502", " ").split())


@pytest.mark.parametrize("at", [0, 1, 2])
def test_debug_may_stand_anywhere_and_shows_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: int) -> None:
    broken_plan(monkeypatch)
    words: list[object] = ["plan", written(tmp_path)]
    result = weft(*words[:at], "--debug", *words[at:])
    assert isinstance(result.exception, KeyError)


def test_debug_prints_a_traceback_to_stderr_and_help_names_it(tmp_path: Path) -> None:
    file = written(tmp_path)
    (tmp_path / STATE).mkdir(parents=True)
    (tmp_path / STATE / "lock").symlink_to("lock")  # leads to itself
    plain, debug = weft_outside("status", file), weft_outside("status", "--debug", file)
    assert (plain.returncode, debug.returncode) == (1, 1)
    assert "Traceback" not in plain.stderr
    assert "lock" in plain.stderr
    assert "Traceback" in debug.stderr
    assert "--debug" in weft("--help").stdout


@pytest.mark.parametrize("command", WORDS)
@pytest.mark.parametrize("name", ["deployment.yaml", "status.json", "measurements.jsonl", "story.log", "lock"])
def test_a_file_that_is_no_text_gives_no_traceback(tmp_path: Path, command: str, name: str) -> None:
    file = written(tmp_path)
    (tmp_path / STATE).mkdir(parents=True)
    (file if name == "deployment.yaml" else tmp_path / STATE / name).write_bytes(BINARY)
    result = weft(command, file, *WORDS[command])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "shows where" not in result.stderr


@pytest.mark.parametrize("command", ["status", "explain", "logs", "stop", "move"])
def test_folders_in_the_place_of_files_give_no_traceback(tmp_path: Path, command: str) -> None:
    file = written(tmp_path)
    for name in ("status.json", "story.log", "lock", "measurements.jsonl"):
        (tmp_path / STATE / name).mkdir(parents=True)
    result = weft(command, file, *WORDS[command])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    shutil.rmtree(tmp_path / STATE)
    (tmp_path / STATE).write_text("a file")
    result = weft(command, file, *WORDS[command])
    assert result.exit_code == 2
    assert "is a file, where a run's state would be a folder" in result.stderr


@pytest.mark.parametrize(
    "text", [BINARY, b"{", b"[]", b"{}", b'{"phase": 3}', b'{"phase": "stopped", "queries": {"q": 1}}']
)
def test_a_broken_status_is_named_and_taken_as_absent(tmp_path: Path, text: bytes) -> None:
    file = written(tmp_path)
    (tmp_path / STATE).mkdir(parents=True)
    (tmp_path / STATE / "status.json").write_bytes(text)
    assert weft_json("status", file)["phase"] == "never ran"
    result = weft("status", file)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"{tmp_path}/{STATE}/status.json cannot be read, as if it were not there: ")
    assert "what would run where" in weft("explain", file).stdout


@pytest.mark.parametrize(
    "line", ['{"operators": 3}', '{"operators": {"hourly_use.valid": 3}}', '{"operators": {"a.b": {"cost_ms": "x"}}}']
)
def test_measurements_that_make_no_sense_are_passed_over(tmp_path: Path, line: str) -> None:
    file = written(tmp_path)
    (tmp_path / STATE).mkdir(parents=True)
    good = '{"operators": {"hourly_use.hourly": {"cost_ms": 0.25, "selectivity": 0.5}}}'
    (tmp_path / STATE / "measurements.jsonl").write_text(f"{good}\n{line}\n")
    result = weft("plan", file)
    assert result.exit_code == 0
    assert "0.25" in result.stderr, "what was measured before is known"


def test_an_answer_that_cannot_be_read_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.cli import asking

    file = written(tmp_path)
    monkeypatch.setattr(asking.time, "time_ns", lambda: 7)
    with running(tmp_path):
        (tmp_path / STATE / "requests").mkdir(parents=True)
        (tmp_path / STATE / "requests" / "7.answer.json").write_bytes(BINARY)
        result = weft("move", file, "hourly_use.valid", "district", "--state", tmp_path / STATE)
    assert result.exit_code == 1
    assert "the answer cannot be read; `weft status" in result.stderr
    assert "--state" in result.stderr


def test_a_request_that_cannot_be_read_is_no_end_of_the_run(tmp_path: Path) -> None:
    from types import SimpleNamespace

    from weft.bodies.live.steering import Steering

    told: list[str] = []
    state = SimpleNamespace(path=tmp_path)
    run = SimpleNamespace(deployment=SimpleNamespace(scenario=()), state=state, note=told.append)
    folder = tmp_path / "requests"
    (folder / "5.json").mkdir(parents=True)
    (folder / "1.json").write_bytes(BINARY)
    texts = ("[]", "", '{"query": "q", "operator"', '{"query": 1, "operator": 2, "to": 3}')
    texts += ('{"add": {}}', '{"remove": 1}')
    for number, text in enumerate(texts, 6):
        (folder / f"{number}.json").write_text(text)
    for _ in range(2):
        Steering(run).answer()  # type: ignore[arg-type]
    left = [f"{number}.unreadable" for number in (1, 10, 11, 5, 6, 7, 8, 9)]
    assert sorted(path.name for path in folder.iterdir()) == left
    assert len(told) == 8
    assert str(folder / "1.unreadable") in told[0]


def test_a_failed_run_says_why_in_its_status(tmp_path: Path) -> None:
    file = written(tmp_path)
    told(tmp_path, phase="failed", reason="q.o: in/x.csv, line 3: no number")
    assert weft("status", file).stdout.splitlines()[0].endswith("s ago: q.o: in/x.csv, line 3: no number")
    found = weft_json("status", file)
    assert (found["phase"], found["reason"]) == ("failed", "q.o: in/x.csv, line 3: no number")
    with running(tmp_path):
        assert weft_json("status", file)["phase"] == "starting"


def test_an_unknown_site_in_logs_is_exit_2_and_lists_those_there_are(tmp_path: Path) -> None:
    file = written(tmp_path)
    (tmp_path / STATE).mkdir(parents=True)
    (tmp_path / STATE / "story.log").write_text(STORY + "1700000000600 conductor Go -> nothing\n")
    result = weft("logs", file, "--site", "nosuch")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no `nosuch`; there are: gw-1, district, conductor" in result.stderr
    assert weft("logs", file, "--site", "conductor").exit_code == 0


def test_the_log_of_spark_ends_with_what_it_said_of_the_failure(tmp_path: Path) -> None:
    file = written(tmp_path)
    logs = tmp_path / STATE / "logs"
    logs.mkdir(parents=True)
    for name in ("spark.log", "errors.log", "console.log"):
        (logs / name).write_text(f"{name}\n")
    assert weft("logs", file, "--spark").stdout.splitlines() == ["console.log", "spark.log", "errors.log"]


def test_hints_keep_the_state_folder(tmp_path: Path) -> None:
    file = written(tmp_path)
    elsewhere = tmp_path / "my state"
    for command, *more in (("status",), ("logs",), ("move", "hourly_use.valid", "x"), ("explain", "hourly_use.valid")):
        result = weft(command, file, *more, "--state", elsewhere)
        assert f"`weft run {file} --state '{elsewhere}'`" in result.stdout + result.stderr


def test_pictures_and_comparisons_do_not_go_together(tmp_path: Path) -> None:
    result = weft("plan", written(tmp_path), "--compare", "--plot", tmp_path / "p.png")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--policy P --plot F" in result.stderr
