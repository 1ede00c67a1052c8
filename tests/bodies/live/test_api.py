"""`weft.run` around Spark, not on it: what is refused, where the state lies, and what Ctrl-C does."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.bodies.live import api
from weft.bodies.live.run import Options, Run
from weft.model import Column, Deployment, Operator, Order, Query, Sink, Site, Source
from weft.plan.dataflow.ordering import with_ordering
from weft.spec import SpecError

FILE = """
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT", arrivals: {kind: constant, rate_per_s: 1}}]
queries: [{name: q, operators: [{name: o, from: [s], sql: "SELECT * FROM s"}], sink: {from: o, format: csv, path: out}}]
"""


def built(folder: Path, **operator: Any) -> Deployment:
    (folder / "in").mkdir(exist_ok=True)
    source = Source("readings", "a", "csv", (Column("ts", "TIMESTAMP"),), "in", event_time="ts")
    one = replace(Operator("o", ("readings",), sql="SELECT * FROM readings"), **operator)
    return Deployment((Site("a"),), (source,), (Query("q", (one,), (Sink("o", "csv", "out"),)),), folder=str(folder))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that would have been driven."""
    runs: list[Run] = []
    monkeypatch.setattr(api, "_carried", lambda run: runs.append(run) or {})
    return runs


def test_a_deployment_built_wrong_is_refused_with_everything_that_is_wrong(tmp_path: Path) -> None:
    wrong = built(tmp_path, from_="readings")
    sink = Query("r", (Operator("o", ("reading",), sql="SELECT * FROM reading"),), Sink("o", "csv", "out"))  # type: ignore[arg-type]
    wrong = replace(wrong, queries=(*wrong.queries, sink))
    for attempt in (lambda: weft.run(wrong), lambda: Run(wrong, tmp_path / ".weft", Options())):
        with pytest.raises(SpecError) as told:
            attempt()
        text = str(told.value)
        assert "queries[0].operators[0].from: must be a tuple, found a str" in text
        assert "queries[1].sinks: must be a tuple, found a Sink" in text
        assert "no source or operator of this query is called `reading`" in text
    assert not (tmp_path / ".weft").exists()


def test_what_is_no_deployment_at_all_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match="must be a mapping"):
        weft.run(None)  # type: ignore[arg-type]


def test_a_deployment_whose_ordering_is_written_out_is_right(tmp_path: Path) -> None:
    ordered = with_ordering(built(tmp_path, order=Order()))
    assert len(ordered.queries[0].operators) == 2
    assert Run(ordered, tmp_path / ".weft", Options()).deployment == ordered


def test_a_file_has_the_state_that_the_command_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[Run]
) -> None:
    from weft.bodies.live.state import state_folder

    monkeypatch.chdir(tmp_path)
    Path("weft.yaml").write_text(FILE)
    weft.run("weft.yaml", seconds=1)
    weft.run(Path("weft.yaml"), state="elsewhere", seconds=1)
    weft.run(weft.load("weft.yaml"), state=Path("elsewhere"), seconds=1)
    assert [run.state.path for run in made] == [
        state_folder(tmp_path / "weft.yaml", None), tmp_path / "elsewhere", tmp_path / "elsewhere",
    ]  # fmt: skip


def test_a_relative_state_is_as_good_as_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Run(built(tmp_path), Path(".weft"), Options()).state.path == tmp_path / ".weft"


@pytest.mark.parametrize(
    ("asked", "why"), [({"seconds": 0}, "greater than 0"), ({"seconds": 1, "until_done": True}, "give one")]
)
def test_a_wrong_end_is_refused(tmp_path: Path, asked: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        weft.run(built(tmp_path), **asked)


class FakeRun:
    """A run that goes on until it is asked to stop, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.over = threading.Event()
        self.error = error

    def go(self) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        return {"stopped in order": self.over.wait(10)}

    def stop(self) -> None:
        self.over.set()


def test_an_interrupt_stops_in_order_and_the_summary_is_given() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert api._carried(FakeRun()) == {"stopped in order": True}  # type: ignore[arg-type]
    assert signal.getsignal(signal.SIGINT) == before


def test_what_a_run_dies_of_is_raised_to_the_caller() -> None:
    with pytest.raises(ValueError, match="because"):
        api._carried(FakeRun(ValueError("because")))  # type: ignore[arg-type]


def test_a_second_interrupt_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(FakeRun):
        def stop(self) -> None:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    begun_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        api._carried(Slow())  # type: ignore[arg-type]
    assert time.monotonic() - begun_s < 5
