"""How is the machine doing that a site stands on? A few small reads of the system, no more than once a second."""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from weft.model import MachineState

EVERY_S = 1.0
MB = 1 << 20


def machine_as_plain(machine: MachineState | None) -> dict[str, Any] | None:
    """As `weft status --json` shows it."""
    return None if machine is None else msgspec.to_builtins(machine)


class MachineLook:
    """Looks at the machine of this process; `disk` is where the site keeps what it must not lose.

    What a system does not tell (`/proc` is Linux's) is None.
    """

    def __init__(self, disk: Path, proc: Path = Path("/proc")) -> None:
        self._disk = disk
        self._proc = proc
        self._lock = threading.Lock()
        self._ticks: tuple[int, int] | None = self._cpu_ticks()
        self._idle: float | None = None
        self._last: tuple[float, MachineState] | None = None

    def now(self) -> MachineState:
        """How it is doing; looked at again after a second."""
        with self._lock:
            if self._last is None or time.monotonic() >= self._last[0] + EVERY_S:
                self._last = time.monotonic(), self._look()
            return self._last[1]

    def _look(self) -> MachineState:
        memory_mb, free_mb = self._memory_mb()
        load = disk_mb = None
        with suppress(OSError):
            load = tuple(round(one, 2) for one in os.getloadavg())
        with suppress(OSError):
            disk_mb = shutil.disk_usage(self._disk).free // MB
        return MachineState(self._cpu_idle(), load, memory_mb, free_mb, disk_mb)

    def _cpu_idle(self) -> float | None:
        """The share of all cores' time that nobody used since the last look."""
        before, self._ticks = self._ticks, self._cpu_ticks()
        if before is not None and self._ticks is not None and self._ticks[1] > before[1]:
            idle = (self._ticks[0] - before[0]) / (self._ticks[1] - before[1])
            self._idle = round(min(1.0, max(0.0, idle)), 3)
        return self._idle

    def _cpu_ticks(self) -> tuple[int, int] | None:
        """Idle time (waiting for disks included) and all time so far."""
        with suppress(OSError, ValueError, IndexError):
            times = [int(one) for one in (self._proc / "stat").read_text().splitlines()[0].split()[1:9]]
            return times[3] + times[4], sum(times)
        return None

    def _memory_mb(self) -> tuple[int | None, int | None]:
        """All memory, and what could be had without swapping."""
        with suppress(OSError, ValueError, KeyError, IndexError):
            lines = (self._proc / "meminfo").read_text().splitlines()
            found = {
                name: int(rest.split()[0]) // 1024 for name, _, rest in (line.partition(":") for line in lines[:8])
            }
            return found["MemTotal"], found["MemAvailable"]
        return None, None
