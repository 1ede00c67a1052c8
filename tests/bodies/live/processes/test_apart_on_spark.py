"""A desk and two agents that share no folder: a move with state, a stop, going on, a kill; the rows are exact."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.processes.test_apart import HEADQUARTERS, SITES, lay_out

pytestmark = [pytest.mark.spark, pytest.mark.long]
WAIT_S_MAX = 600.0
RECORDS, RATE, A_WINDOW = 3000, 60, 100
FILE = """
weft: 1
sites: [{name: desk}, {name: core}]
links: [{from: desk, to: core}]
sources:
  - {name: lines, site: desk, format: replay, path: lines.csv, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: RATE}}
queries:
  - name: q
    operators:
      - {name: good, from: lines, sql: "SELECT * FROM lines WHERE v % 2 = 0", site: desk}
      - {name: sums, from: good, watermark: 1 second, site: core,
         sql: "SELECT window(ts, '10 seconds') w, count(*) n, sum(v) s FROM good GROUP BY 1"}
      - {name: shown, from: sums, sql: "SELECT n, s FROM sums", site: core}
    sink: {from: shown, format: csv, path: out, site: core}
scenario: [{at_s: 6, move: q.sums, to: desk}]
"""


class Machines:
    """`weft run --apart` and `weft agent`, as users would type them on three machines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lay_out(folder, FILE.replace("RATE", str(RATE)))
        begin = datetime(2024, 1, 1, tzinfo=UTC)
        moments = [begin + timedelta(milliseconds=100 * v) for v in range(RECORDS)]
        lines = [f"{moment:%Y-%m-%d %H:%M:%S.%f},{v}\n" for v, moment in enumerate(moments)]
        (folder / "desk" / "lines.csv").write_text("".join(lines))
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self.desk: subprocess.Popen[bytes] | None = None

    def _weft(self, where: str, *words: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{where}.log", "ab") as log:
            line = [sys.executable, "-m", "weft", words[0], str(self.folder / where / "weft.yaml"), *words[1:]]
            return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=log)

    def start_desk(self) -> None:
        self.desk = self._weft(HEADQUARTERS, "run", "--apart", "--until-done", "--json")

    def start(self, site: str) -> None:
        self.agents[site] = self._weft(site, "agent", "--site", site)

    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.folder / HEADQUARTERS / ".weft/weft.yaml/status.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def until(self, true: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + WAIT_S_MAX
        assert self.desk is not None
        while not (found := true()):
            assert self.desk.poll() is None, self.told()
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.1)
        return found

    def rows(self) -> list[str]:
        """What lies in the sink, at the machine where it stands."""
        return sorted(
            line for path in (self.folder / "core/out").glob("*.csv") for line in path.read_text().splitlines()
        )

    def end(self) -> dict[str, Any]:
        assert self.desk is not None
        output, _ = self.desk.communicate(timeout=WAIT_S_MAX)
        assert self.desk.returncode == 0, self.told()
        for agent in self.agents.values():
            assert agent.wait(WAIT_S_MAX) == 0, self.told()
        found: dict[str, Any] = json.loads(output)
        return found

    def clear(self) -> None:
        for one in [*self.agents.values(), *([self.desk] if self.desk else [])]:
            if one.poll() is None:
                one.terminate()
        for one in [*self.agents.values(), *([self.desk] if self.desk else [])]:
            with suppress(subprocess.TimeoutExpired):
                one.communicate(timeout=60)
            one.kill()

    def told(self) -> str:
        logs = [*self.folder.glob("*.log"), *self.folder.glob("*/.weft/*/story.log")]
        return "\n".join(f"== {path}\n{path.read_text()[-2500:]}" for path in logs if path.exists())


@pytest.fixture
def machines(folder: Path) -> Iterator[Machines]:
    made = Machines(folder)
    yield made
    made.clear()


def moved(machines: Machines) -> bool:
    return any(move.get("state", "done") == "done" for move in machines.status().get("moves", []))


def test_sites_that_share_no_folder_move_state_stop_go_on_and_survive_a_kill(machines: Machines) -> None:
    machines.start("core")
    machines.start_desk()
    machines.start("desk")
    machines.until(lambda: moved(machines) and len(machines.rows()) > 5)
    before = machines.rows()
    stop = [sys.executable, "-m", "weft", "stop", str(machines.folder / HEADQUARTERS / "weft.yaml")]
    stopped = subprocess.run(stop, capture_output=True, check=False, timeout=WAIT_S_MAX)
    assert stopped.returncode == 0, machines.told()
    machines.end()
    assert set(before) <= set(machines.rows())
    assert len(machines.rows()) < RECORDS // A_WINDOW
    machines.start_desk()
    for site in reversed(SITES):
        machines.start(site)
    held = len(machines.rows())
    machines.until(lambda: len(machines.rows()) > held + 1)
    os.kill(machines.agents["desk"].pid, signal.SIGKILL)
    machines.agents["desk"].wait()
    machines.start("desk")
    machines.end()
    windows = [range(first, first + A_WINDOW, 2) for first in range(0, RECORDS, A_WINDOW)]
    assert machines.rows() == sorted(f"{len(window)},{sum(window)}" for window in windows)
    assert not (machines.folder / HEADQUARTERS / "out").exists()
