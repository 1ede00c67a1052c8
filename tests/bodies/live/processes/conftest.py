"""Desk and agents of these tests look and speak ten times as often: who does what is asked here, not how soon."""

from __future__ import annotations

import pytest

from weft.bodies.live import reporting, run
from weft.bodies.live.processes import agent, house


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (agent, "ANNOUNCE_S"), (agent, "LOOK_S"), (house, "LOOK_S"), (reporting, "PERIOD_S"), (run, "STATUS_EVERY_S"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, getattr(module, name) / 10)
