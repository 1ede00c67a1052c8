"""What a site knows of the machine that it stands on."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from weft.bodies.live import machine_state
from weft.bodies.live.machine_state import MachineLook

STAT = "cpu  {busy} 0 0 {idle} {waits} 0 0 0 0 0\ncpu0 1 2 3\n"
MEMORY = "MemTotal:        8388608 kB\nMemFree:          102400 kB\nMemAvailable:    2097152 kB\n"


def test_idle_time_is_of_the_time_since_the_last_look_and_memory_is_what_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_state, "EVERY_S", 0.0)
    (tmp_path / "stat").write_text(STAT.format(busy=1000, idle=1000, waits=0))
    (tmp_path / "meminfo").write_text(MEMORY)
    look = MachineLook(tmp_path, tmp_path)
    (tmp_path / "stat").write_text(STAT.format(busy=1300, idle=1050, waits=50))
    found = look.now()
    assert (found.cpu_idle, found.memory_mb, found.memory_free_mb) == (0.25, 8192, 2048)
    assert found.disk_free_mb
    assert look.now().cpu_idle == 0.25, "no time has passed: nothing new is known"


def test_what_a_system_does_not_tell_is_none(tmp_path: Path) -> None:
    found = MachineLook(tmp_path, tmp_path / "nowhere").now()
    assert (found.cpu_idle, found.memory_mb, found.memory_free_mb) == (None, None, None)


def test_a_look_costs_little_and_is_kept_for_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_s = [100.0]
    monkeypatch.setattr(machine_state, "time", SimpleNamespace(monotonic=lambda: at_s[0]))
    look = MachineLook(tmp_path)
    first = look.now()
    at_s[0] += 0.99
    begun_s = time.process_time()
    assert all(look.now() is first for _ in range(1000))
    assert time.process_time() - begun_s < 0.5
    at_s[0] += 0.01
    assert look.now() is not first
