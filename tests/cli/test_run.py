"""`weft run` around Spark, not on it: what is refused before it starts, signals, and who may write where."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import ROOT
from tests.cli.cli_files import GOOD, changed, weft, written

RATE = changed("    format: csv\n    path: data/readings.csv\n", "    format: rate\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seconds", "0"], "must be greater than 0"),
        (["--seconds", "-3"], "must be greater than 0"),
        (["--seconds", "nan"], "must be greater than 0"),
        (["--seconds", "inf"], "must be greater than 0"),
        (["--seconds", "soon"], "--seconds"),
        (["--seconds", "3", "--until-done"], "give one"),
    ],
)
def test_a_wrong_end_is_exit_2(tmp_path: Path, words: list[str], said: str) -> None:
    result = weft("run", written(tmp_path), *words, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert not (tmp_path / ".weft").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RATE, "never ends with the endless source readings"),
        (GOOD + "scenario:\n  - {at_s: 1, partition: [gw-1, district], for_s: 1}\n",
         "`partition` is for sites that share no folder"),
        (changed("    site: gw-1\n", "    site: district\n").replace("        site: district", "        site: gw-1"),
         "tree rule"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_exit_2_before_spark_starts(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    result = weft("run", file, "--until-done", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert str(file) in result.stderr
    assert not (tmp_path / ".weft").exists()


class FakeRun:
    """A run that ends when it is asked to, or as it is told."""

    def __init__(self, folder: Path, act: Callable[[FakeRun], None]) -> None:
        self.state = SimpleNamespace(path=folder)
        self.phase = "running"
        self.flowing_s = 1.0
        self.over = threading.Event()
        self.act = act

    def go(self, watch: Callable[[Any], None]) -> dict[str, Any]:
        watch(self)
        self.act(self)
        return {"queries": {}, "stopped": self.over.is_set()}

    def stop(self) -> None:
        self.over.set()

    def status(self) -> dict[str, Any]:
        return {"phase": self.phase, "queries": {}}


def driven(folder: Path, act: Callable[[FakeRun], None]) -> dict[str, Any]:
    from weft.cli.driving import Drive
    from weft.cli.streams import Streams

    with Streams(json=False) as streams:
        return Drive(FakeRun(folder, act), streams).go()  # type: ignore[arg-type]


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_first_signal_stops_in_order(tmp_path: Path, which: signal.Signals) -> None:
    def act(run: FakeRun) -> None:
        os.kill(os.getpid(), which)
        assert run.over.wait(10)

    before = signal.getsignal(which)
    assert driven(tmp_path, act)["stopped"] is True
    assert signal.getsignal(which) is before


SECOND = """
import os, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.cli.test_run import driven
def act(run):
    os.kill(os.getpid(), signal.SIGINT)
    run.over.wait(10)
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
driven(Path({folder!r}), act)
"""


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    code = SECOND.format(root=str(ROOT), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 1
    assert "once more ends at once" in done.stderr


def test_what_goes_wrong_in_the_run_is_raised_to_whoever_drives_it(tmp_path: Path) -> None:
    def act(run: FakeRun) -> None:
        raise RuntimeError("no way")

    with pytest.raises(RuntimeError, match="no way"):
        driven(tmp_path, act)


WRITING = """
import os, subprocess, sys
from pathlib import Path
from weft.cli.streams import Streams
with Streams(json={json}) as streams:
    print("python says", flush=True)
    streams.hush(Path({log!r}))
    subprocess.run(["sh", "-c", "echo child out; echo child err >&2"])
    print("ours", file=streams.err)
    assert "child err" in streams.heard()
print('{{"the": "document"}}')
print("after", file=sys.stderr)
"""


@pytest.mark.parametrize("as_json", [True, False])
def test_with_json_only_the_document_reaches_stdout(tmp_path: Path, as_json: bool) -> None:
    log = tmp_path / "logs" / "console.log"
    code = WRITING.format(json=as_json, log=str(log))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if as_json:
        assert json.loads(done.stdout) == {"the": "document"}
    else:
        assert done.stdout.splitlines() == ["python says", "child out", '{"the": "document"}']
    assert "child err" not in done.stderr
    assert done.stderr.endswith("ours\nafter\n")
    assert log.read_text() == "child err\n"


def test_where_java_is_missing_it_says_what_spark_said_and_what_would_help() -> None:
    from weft.cli.run import _failed
    from weft.spark.failures.causes import cause_of

    heard = ["WARNING: Using incubator modules: jdk.incubator.vector", "JAVA_HOME is not set"]
    why = cause_of(RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited")).text
    assert _failed(f"f.yaml: {why}", heard, Path("f.yaml"), None).splitlines() == [
        "f.yaml: Spark could not start; it needs Java 17 or later: set JAVA_HOME, or put `java` on the PATH",
        "JAVA_HOME is not set",
    ]


def test_the_hints_after_a_failure_keep_the_state_folder() -> None:
    from weft.cli.run import _failed

    said = _failed("f.yaml: why", [], Path("f.yaml"), Path("my state"))
    assert said.splitlines() == [
        "f.yaml: why",
        "`weft logs f.yaml --state 'my state'` tells the story before it, "
        "`weft logs f.yaml --state 'my state' --spark` what Spark said",
    ]


@pytest.mark.parametrize(
    ("done", "phase", "flowed_s", "said"),
    [
        (True, "stopped", 2.0, "done, sources flowed for 2.0 s"),
        (False, "stopped", 2.0, "stopped; the same command resumes (sources flowed for 2.0 s)"),
        (False, "stopped", 0.0, "stopped; the same command resumes (before records flowed)"),
        (False, "starting", 0.0, "was done before, this is what came out then; --fresh runs it again"),
    ],
)
def test_only_what_was_read_to_the_end_is_done(done: bool, phase: str, flowed_s: float, said: str) -> None:
    from weft.cli.run import _headline

    assert _headline(flowed_s, SimpleNamespace(done=done, phase=phase)) == said


def test_a_log_that_takes_nothing_is_no_second_failure(tmp_path: Path) -> None:
    from weft.cli.streams import Streams

    if not Path("/dev/full").exists():
        pytest.skip("there is no disk that is always full here")
    with Streams(json=False) as streams:
        streams.hush(Path("/dev/full"))
        streams.keep("a traceback")


def test_the_last_table_shows_the_rates_that_the_run_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from weft.cli.run import _print

    told = {"records_in": 500, "records_out": 22_768, "promise_kept": None}
    summary = {"queries": {"q": told}, "rates_per_s": {"q": 12.5}, "fragments": {}, "moves": []}
    driven = SimpleNamespace(flowed_s=10.0, status={}, run=SimpleNamespace(phase="stopped", done=True))
    _print(tmp_path / "f.yaml", None, SimpleNamespace(queries=()), tmp_path, summary, driven)  # type: ignore[arg-type]
    shown = next(line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("q "))
    assert shown[1:4] == ["500", "22,768", "12.5"]
