"""`status`, `logs`, `explain` and `stop` on a state folder, without Spark; and what each command imports."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_files import STATE, in_force, weft, weft_json, weft_outside, written
from weft.model.wishes import MoveTo

STATUS: dict[str, Any] = {
    "phase": "running",
    "at": 1_700_000_000.0,
    "queries": {
        "hourly_use": {
            "latency_ms": {"mean": 9.0, "p50": 8.0, "p95": 20.5, "p99": 21.0, "max": 30.0},
            "records_in": 12345, "records_out": 67, "dropped": 0, "bad_records": 0, "promise_kept": True,
        }
    },
    "fragments": {
        "hourly_use.valid": {
            "site": "gw-1", "query": "hourly_use", "operators": ["valid"], "stateful": None, "reads": ["readings"],
            "writes": ["hourly_use.valid"], "batches": 4, "batch_ms": 250, "records_in": 12345,
        },
        "hourly_use.hourly": {
            "site": "gw-1", "query": "hourly_use", "operators": ["hourly"], "stateful": "hourly",
            "reads": ["hourly_use.valid"], "writes": ["sink hourly_use"], "batches": 0, "batch_ms": None,
        },
    },
    "rates_per_s": {"hourly_use": 6.7},
    "backlog": {"hourly_use": 3},
    "down": {},
}  # fmt: skip

STORY = """\
1700000000000 gw-1 StartFragment(f, epoch 1) from conductor -> Launch(f, epoch 1)
1700000000250 district StartFragment(g, epoch 1) from conductor -> Launch(g, epoch 1)
# district refused a message from gw-1: too large
1700000000500 gw-1 Launched(f, epoch 1) -> gw-1 -> conductor FragmentRunning(f, epoch 1)
"""


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """A state folder as a live run holds it."""
    state = folder / STATE
    state.mkdir(parents=True, exist_ok=True)
    with open(state / "lock", "a+", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


def told(folder: Path, **more: Any) -> None:
    (folder / STATE).mkdir(parents=True, exist_ok=True)
    (folder / STATE / "status.json").write_text(json.dumps(STATUS | more))


def test_status_shows_what_the_directory_knows_of_each_site(tmp_path: Path) -> None:
    file = written(tmp_path)
    site = {"utilisation": 0.2, "of_quota": None, "queue_max": 3}
    known = {"load": 0.26, "level": 1, "levels": 5, "offers": ["hourly_use.valid", "hourly_use.hourly"]}
    with running(tmp_path):
        told(tmp_path, sites={"gw-1": site | {"directory": known}, "district": site | {"directory": None}})
        shown = " ".join(weft("status", file).stdout.split())
        assert weft_json("status", file)["sites"]["gw-1"]["directory"] == known
        told(tmp_path, sites={"gw-1": site})
        assert "directory" not in weft("status", file).stdout
    assert "directory" in shown
    assert "gw-1 0.260 1 of 0 to 4 hourly_use.valid, hourly_use.hourly" in shown.replace("│ ", "").replace("| ", "")
    assert "not known" in shown


def test_status_says_when_nothing_ever_ran(tmp_path: Path) -> None:
    file = written(tmp_path)
    result = weft("status", file)
    assert result.exit_code == 0
    assert "nothing ever ran" in result.stdout
    found = weft_json("status", file)
    assert (found["alive"], found["phase"], found["pid"]) == (False, "never ran", None)
    assert not (tmp_path / ".weft").exists()


def test_status_shows_a_living_run(tmp_path: Path) -> None:
    file = written(tmp_path)
    told(tmp_path)
    with running(tmp_path):
        result = weft("status", file)
        found = weft_json("status", file)
    assert f"running (process {os.getpid()})" in result.stdout
    assert ["hourly_use", "12,345", "67", "6.7", "3", "8.0", "20.5", "kept"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    assert (found["alive"], found["phase"], found["queries"]) == (True, "running", STATUS["queries"])


def test_status_tells_a_run_that_died_from_one_that_stopped(tmp_path: Path) -> None:
    file = written(tmp_path)
    with running(tmp_path):
        assert weft_json("status", file)["phase"] == "starting"
    assert weft_json("status", file)["phase"] == "ended before it ran"
    told(tmp_path)
    assert weft_json("status", file)["phase"] == "ended without stopping in order"
    told(tmp_path, phase="stopped")
    assert weft_json("status", file)["phase"] == "stopped"
    assert "the last run stopped" in weft("status", file).stdout


def test_looking_never_keeps_a_run_from_its_lock(tmp_path: Path) -> None:
    file = written(tmp_path)
    with running(tmp_path):
        pass
    weft("status", file)
    with running(tmp_path):
        assert weft_json("status", file)["alive"] is True


@pytest.mark.parametrize("command", ["status", "logs", "stop"])
def test_a_file_that_is_not_there_is_exit_2(tmp_path: Path, command: str) -> None:
    result = weft(command, tmp_path / "none.yaml")
    assert result.exit_code == 2
    assert "no such file" in result.stderr


def test_the_state_may_lie_elsewhere(tmp_path: Path) -> None:
    file = written(tmp_path)
    told(tmp_path)
    (tmp_path / STATE).rename(tmp_path / "elsewhere")
    assert weft_json("status", file, "--state", tmp_path / "elsewhere")["queries"] == STATUS["queries"]


def with_story(folder: Path) -> Path:
    file = written(folder)
    (folder / STATE).mkdir(parents=True)
    (folder / STATE / "story.log").write_text(STORY)
    return file


def test_logs_show_the_last_lines_with_the_time_of_day(tmp_path: Path) -> None:
    file = with_story(tmp_path)
    lines = weft("logs", file).stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("22:13:20.000 gw-1 StartFragment(f, epoch 1)")
    assert weft("logs", file, "-n", 1).stdout.splitlines() == lines[-1:]
    assert weft("logs", file, "-n", 0).stdout == ""


def test_logs_of_one_site_leave_the_others_out(tmp_path: Path) -> None:
    lines = weft("logs", with_story(tmp_path), "--site", "district").stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["district", "district"]


def test_logs_followed_go_on_until_the_run_ends(tmp_path: Path) -> None:
    file = with_story(tmp_path)

    def run() -> None:
        with running(tmp_path):
            held.set()
            time.sleep(0.5)
            with open(tmp_path / STATE / "story.log", "a", encoding="utf-8") as handle:
                handle.write("1700000001000 gw-1 late -> nothing\n")

    held = threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    held.wait()
    result = weft("logs", file, "--follow")
    thread.join()
    assert len(result.stdout.splitlines()) == 5
    assert result.stdout.endswith("late -> nothing\n")
    assert "the run has ended" in result.stderr


def test_sparks_own_messages_are_apart(tmp_path: Path) -> None:
    file = with_story(tmp_path)
    assert weft("logs", file, "--spark").exit_code == 1
    (tmp_path / STATE / "logs").mkdir(parents=True)
    (tmp_path / STATE / "logs" / "spark.log").write_text("12:00:00 WARN Thing: careful\n")
    assert weft("logs", file, "--spark").stdout == "12:00:00 WARN Thing: careful\n"
    assert weft("logs", file, "--spark", "--site", "gw-1").exit_code == 2


def test_sparks_messages_of_a_site_with_a_process_of_its_own_can_be_asked_for_and_followed(tmp_path: Path) -> None:
    file = written(tmp_path)
    for site in ("gw-1", "district"):
        folder = tmp_path / STATE / "logs" / "sites" / site
        folder.mkdir(parents=True)
        (folder / "spark.log").write_text(f"12:00:00 WARN Thing: {site}\n")
    assert weft("logs", file, "--spark", "--site", "gw-1").stdout == "12:00:00 WARN Thing: gw-1\n"
    assert len(weft("logs", file, "--spark").stdout.splitlines()) == 2
    followed = weft("logs", file, "--spark", "--follow")
    assert followed.exit_code == 0, followed.output
    assert weft("logs", file, "--spark", "--site", "nowhere").exit_code == 2


def test_logs_before_the_first_run_say_so(tmp_path: Path) -> None:
    result = weft("logs", written(tmp_path))
    assert result.exit_code == 1
    assert "no log in" in result.stderr


def test_explain_tells_what_would_be_before_anything_ran(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert "what would run where, and why" in weft("explain", file).stdout
    result = weft("explain", file, "hourly_use.valid")
    assert "valid: beside its input readings" in result.stdout
    assert "no Spark plan" in result.stdout


def test_explain_shows_the_plan_of_a_fragment_that_ran_and_where_the_file_now_differs(tmp_path: Path) -> None:
    file = written(tmp_path)
    in_force(tmp_path, file, MoveTo({"hourly_use.valid": "district"}))
    room = tmp_path / STATE / "fragments" / "hourly_use.hourly"
    room.mkdir(parents=True)
    (room / "plan.txt").write_text("== Physical Plan ==\n*(1) Scan\n")
    found = weft_json("explain", file, "hourly_use.hourly")["fragments"][0]
    assert found["plan"] == "== Physical Plan ==\n*(1) Scan\n"
    assert found["reasons"] == {
        "valid": "moved there from gw-1 by `weft move`; the file as it is now would put it on gw-1",
        "hourly": "planned there",
    }
    assert found["plan_number"] == 1
    assert "what runs where, and why" in weft("explain", file).stdout


def test_explain_finds_the_plan_of_a_fragment_at_a_site_with_rooms_of_its_own(tmp_path: Path) -> None:
    file = written(tmp_path)
    in_force(tmp_path, file, MoveTo({"hourly_use.valid": "district"}))
    folder = tmp_path / STATE / "sites" / "district" / "fragments" / "hourly_use.hourly"
    folder.mkdir(parents=True)
    (folder / "plan.txt").write_text("*(1) Filter (kwh > 0)\n")
    assert "*(1) Filter (kwh > 0)" in weft("explain", file, "hourly_use.hourly").stdout


def test_explain_finds_a_fragment_by_any_of_its_operators_and_lists_them_else(tmp_path: Path) -> None:
    from tests.cli.cli_files import GOOD

    file = written(tmp_path, GOOD.replace("        site: district\n", ""))
    assert weft("explain", file, "hourly_use.valid").stdout.startswith("fragment hourly_use.hourly on gw-1")
    result = weft("explain", file, "nothing")
    assert result.exit_code == 2
    assert "there are: hourly_use.hourly" in result.stderr


def test_stop_where_nothing_runs_is_done_at_once(tmp_path: Path) -> None:
    result = weft("stop", written(tmp_path))
    assert result.exit_code == 0
    assert "nothing runs there" in result.stdout
    assert not (tmp_path / ".weft").exists()


def test_stop_asks_and_waits_until_the_run_has_ended(tmp_path: Path) -> None:
    file = written(tmp_path)

    def run() -> None:
        with running(tmp_path):
            held.set()
            while not (tmp_path / STATE / "stop").exists():
                time.sleep(0.01)

    held = threading.Event()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    held.wait()
    result = weft("stop", file)
    assert result.exit_code == 0
    assert "stopped after" in result.stdout
    assert not (tmp_path / STATE / "stop").exists(), "a later run must not find the request"


def test_a_stop_that_is_not_heard_ends_with_exit_1(tmp_path: Path) -> None:
    file = written(tmp_path)
    with running(tmp_path):
        result = weft("stop", file, "--timeout", 0.2)
    assert result.exit_code == 1
    assert "still runs" in result.stderr


SPARKLESS = """
import sys
from typer.testing import CliRunner
from weft.cli.app import app
for words in {commands!r}:
    CliRunner().invoke(app, words)
print(sorted(name for name in sys.modules if name.split(".")[0] in {unwanted!r}))
"""


def test_no_command_but_run_imports_spark(tmp_path: Path) -> None:
    import subprocess
    import sys

    file = str(written(tmp_path))
    told(tmp_path)
    commands = [["check", file], ["schema"], ["status", file], ["logs", file],
                ["stop", file], ["--help"], ["run", file, "--seconds", "0"],
                ["run", file + "x"]]  # fmt: skip
    slow = ("pyspark", "py4j", "pandas")
    # Compiled searches and simulations need numpy, the others answer without it.
    compiled = [["plan", file], ["explain", file], ["explore", "nothing"], ["twin", file]]
    for asked, unwanted in ((commands, (*slow, "numpy")), (compiled, slow)):
        code = SPARKLESS.format(commands=asked, unwanted=unwanted)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"


def test_python_m_weft_is_weft() -> None:
    assert weft_outside("--version").stdout.startswith("weft ")


LOOK = {"at_s": 30.0, "until_s": 60.0, "missing": [], "advised": [], "declined": []}
MOVES = [{"query": "hourly_use", "operator": "valid", "from": "gw-1", "to": "district"}]


@pytest.mark.parametrize(
    ("look", "line"),
    [
        (LOOK, "advice since 30 s: leave everything where it is"),
        (
            {**LOOK, "advised": [{"who": "balance", "moves": MOVES, "reason": "latency 3 ms instead of 9 ms"}]},
            "advice since 30 s: move hourly_use.valid from gw-1 to district: latency 3 ms instead of 9 ms",
        ),
        (
            {**LOOK, "until_s": 30.0, "declined": [{"who": "scale", "moves": MOVES, "why": "site gw-1 rests"}]},
            "advice at 30 s: do not move hourly_use.valid from gw-1 to district yet: site gw-1 rests",
        ),
        (
            {**LOOK, "missing": ["a", "b", "c", "d"]},
            "advice since 30 s: none, not everything was measured (a, b, c, ...)",
        ),
        ({"failed": "no memory"}, "advice: none any more, the controller failed: no memory"),
    ],
)
def test_status_shows_what_is_advised(tmp_path: Path, look: dict[str, Any], line: str) -> None:
    file = written(tmp_path)
    told(tmp_path, advice=look)
    assert line in weft("status", file).stdout.splitlines()
    assert weft_json("status", file)["advice"] == look


def test_status_says_nothing_of_advice_where_nobody_asked(tmp_path: Path) -> None:
    file = written(tmp_path)
    told(tmp_path)
    assert "advice" not in weft("status", file).stdout


NEXT_BEST = {
    "homes": {"hourly_use.valid": "gw-2"}, "latency_ms": 50.0, "utilisation": {"gw-2": 0.9}, "keeps": True
}  # fmt: skip
ADVISED = {
    "number": 3, "at_s": 35.0, "until_s": 35.0, "times": 1, "by": "place", "who": "balance", "moves": MOVES,
    "reason": "latency 40 ms instead of without bound", "state": "advised", "why": "",
    "numbers": {
        "objective": {"name": "latency", "before": None, "after": 40.0}, "price": 10.0, "why": {},
        "busy": {"gw-1": {"before": 1.2, "after": 0.3}, "district": {"before": 0.1, "after": 0.55}},
    },
}  # fmt: skip
DECISION = {
    "number": 1, "at_s": 25.0, "until_s": 25.0, "times": 1, "by": "relief", "who": "promise", "moves": MOVES,
    "reason": "hourly_use.valid leaves gw-1: 7.6 s expected in 5 s against a promise of 5 s; district keeps it",
    "state": "asked", "why": "",
    "numbers": {
        "slack_ms": {"hourly_use.valid": -2600.0}, "bias_ms": 20.0, "utilisation": {"gw-1": 1.5, "district": None},
        "sources": {"readings": {"at_horizon_per_s": 600.0, "by": "trend"}}, "site": "gw-1",
        "operators": {
            "hourly_use.valid": {"in_per_s": 600.0, "load": 1.5}, "hourly_use.mean": {"in_per_s": 6.0, "load": 0.0},
        },
        "tried": [
            {"homes": {"hourly_use.valid": "district"}, "latency_ms": 41.0, "utilisation": {"district": 0.6},
             "keeps": True}, NEXT_BEST,
        ],
        "next_best": NEXT_BEST,
    },
}  # fmt: skip


def test_explain_shows_what_was_decided_and_by_which_numbers(tmp_path: Path) -> None:
    from weft.bodies.live.decision_file import DecisionFile

    file = written(tmp_path)
    told(tmp_path)
    assert "no rule has wished anything" in weft("explain", file, "--decisions").stdout
    log = DecisionFile(tmp_path / STATE)
    log.write(DECISION)
    log.write({**DECISION, "state": "done"})
    log.write({**DECISION, "number": 2, "at_s": 30.0, "state": "declined", "why": "site gw-1 rests", "numbers": {}})
    first, *lines = weft("explain", file, "--decisions").stdout.splitlines()
    assert first == f"25 s, relief, done: {DECISION['reason']}"
    assert lines[0] == "  time left by then: hourly_use.valid -2,600.0 ms; not from sites: 20.0 ms"
    assert lines[1] == "  at the horizon: readings 600.0/s (by trend); use of sites: gw-1 150%, district without end"
    assert lines[2] == "  at gw-1 then, by load: hourly_use.valid 600.0/s, 150%; hourly_use.mean 6.0/s, 0%"
    assert lines[3] == "  with hourly_use.valid at district: 41.0 ms, district 60%, keeps all promises"
    assert lines[4] == "  with hourly_use.valid at gw-2: 50.0 ms, gw-2 90%, keeps all promises, next best"
    assert lines[5] == f"30 s, relief, not done: {DECISION['reason']}; site gw-1 rests"
    assert [one["state"] for one in weft_json("explain", file, "--decisions")["decisions"]] == ["done", "declined"]
    log.write(ADVISED)
    assert weft("explain", file, "--decisions").stdout.splitlines()[-2:] == [
        "35 s, place, advised: latency 40 ms instead of without bound",
        "  latency without bound then 40.0, a move costs 10.0; use of sites: gw-1 120% then 30%, district 10% then 55%",
    ]
