"""How a run begins: it waits for all fragments, and where one cannot begin nothing of it is left."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.plan.changing.test_next_plan import whole
from weft.bodies.live import beginning
from weft.bodies.live.beginning import wait_for_first_batches, wait_until_all_run
from weft.bodies.live.facts import Facts
from weft.bodies.live.failing import RunFailed
from weft.bodies.live.run import Options, Run
from weft.bodies.live.transport import InProcess


def test_what_does_not_run_in_time_ends_the_run_with_what_is_known_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginning, "START_S_MAX", 0.0)
    desk: Any = SimpleNamespace(running=threading.Event(), down={"q.b": "no disk", "q.a": "no room"})
    looks: list[int] = []
    with pytest.raises(RunFailed, match=r"after 0 s \(q\.a: no room; q\.b: no disk\)"):
        wait_until_all_run(desk, lambda: False, lambda: looks.append(1))
    assert looks == [1]
    wait_until_all_run(desk, lambda: True, lambda: looks.append(1))
    assert looks == [1], "one that is over waits for nothing"


def test_first_batches_are_waited_for_until_they_are_through_or_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = iter((False, False, True))
    progress: Any = SimpleNamespace(begun=lambda: next(begun))
    looks: list[int] = []
    notes: list[str] = []
    wait_for_first_batches(progress, lambda: False, lambda: looks.append(1), notes.append)
    assert (looks, notes) == ([1, 1], [])
    monkeypatch.setattr(beginning, "FIRST_BATCHES_S_MAX", 0.0)
    wait_for_first_batches(
        SimpleNamespace(begun=lambda: False),  # type: ignore[arg-type]
        lambda: False, lambda: looks.append(1), notes.append,
    )  # fmt: skip
    assert notes == ["not all fragments were through with a first batch after 0 s"]


class NoSites:
    """Sites of which none can start."""

    def __init__(self, *given: object) -> None:
        self.transport, self.lost, self.closed = InProcess(), set[str](), False

    def open(self, over: object) -> Facts:
        return Facts(frozenset(), {})

    def start(self) -> None:
        raise OSError("no site can start")

    def machine(self, site: str) -> None:
        return None

    def alive(self, grace_s: float = 0.0) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def test_where_sites_cannot_start_the_reason_is_told_and_they_are_closed(tmp_path: Path) -> None:
    house = NoSites()
    deployment = replace(whole(), folder=str(tmp_path))
    run = Run(deployment, tmp_path / "state", Options(), lambda *given: house)  # type: ignore[arg-type,return-value]
    with pytest.raises(RunFailed, match="no site can start"):
        run.go()
    assert house.closed
    assert run.phase == "failed"
