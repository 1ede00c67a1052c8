"""The long check, as a person runs it.

    python -m tests.long [--minutes 60] [--processes 2] [--shard 1/1] [--only TEXT] [--again]

Units are tests with one seed each. What failed the last time comes first, then one unit of every test, then a second
of each. What passed on this very code (a fingerprint of its files) is not done again unless asked for. When the budget
is over (or at Ctrl-C) what is under way is ended and counts as cut off, neither passed nor failed. The ledger is
`results/long.json`, kept after every unit; the report, with all seeds, is printed and written to `results/long.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.long.ledger import Ledger, commit, fingerprint
from tests.long.order import Order, ordered
from tests.long.plugin import ORDER, TOLD
from tests.long.report import Outcome, report

LOOK_S = 1.0
END_S_MAX = 5.0


def collected(only: str | None) -> list[str]:
    """All units there are."""
    command = [sys.executable, "-m", "pytest", "-o", "addopts=--strict-markers", "-m", "long", "--collect-only", "-q"]
    command += ["-k", only] if only else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 5):
        sys.exit(f"the tests could not be collected:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return [line for line in done.stdout.splitlines() if "::" in line and not line.startswith(" ")]


def part_of(units: list[str], shard: str) -> list[str]:
    """Every so manyth unit: 2/3 is the second of three parts."""
    number, _, of = shard.partition("/")
    if not (number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        sys.exit(f"--shard {shard}: is no part such as 1/2 (the first of two)")
    return units[int(number) - 1 :: int(of)]


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that they have, in sessions of their own or not."""
    told = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    children: dict[int, list[int]] = {}
    for line in told.splitlines():
        one, parent = map(int, line.split())
        children.setdefault(parent, []).append(one)
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    below = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    try:
        process.wait(END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pid in below:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


class Told:
    """Reads what pytest tells, and takes it down in the ledger."""

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self.path = path
        self.ledger = ledger
        self.outcomes: dict[str, Outcome] = {}
        self.begun_s: dict[str, float] = {}
        self.seen = 0

    def read(self) -> None:
        """What is new."""
        if not self.path.exists():
            return
        with open(self.path, encoding="utf-8") as file:
            file.seek(self.seen)
            for line in iter(file.readline, ""):
                if not line.endswith("\n"):  # still being written
                    return
                self.seen = file.tell()
                self._take(json.loads(line))

    def _take(self, what: dict[str, Any]) -> None:
        unit, state = what["unit"], what["state"]
        if state == "begun":
            self.begun_s[unit] = what["at_s"]
        elif state == "ended":
            return
        elif unit not in self.outcomes or state == "failed":  # a failure at the end makes a failure of what had passed
            self._note(unit, state, what["seconds"], what.get("text", ""))

    def cut_off(self) -> None:
        """What has begun and was not told of."""
        for unit, begun_s in self.begun_s.items():
            if unit not in self.outcomes:
                self._note(unit, "cut off", time.time() - begun_s, "")

    def _note(self, unit: str, outcome: str, seconds: float, text: str) -> None:
        self.outcomes[unit] = Outcome(outcome, seconds, text)
        self.ledger.note(unit, outcome, seconds, time.strftime("%Y-%m-%d", time.gmtime()))
        print(f"{outcome:<8} {seconds:7.1f} s  {unit}", flush=True)


def go(order: Order, ledger: Ledger, deadline: float, processes: int) -> tuple[dict[str, Outcome], int]:
    """Run units until all are done or the budget is over; how they ended, and pytest's own status."""
    with tempfile.TemporaryDirectory(prefix="weft-long-") as folder:
        asked, said = Path(folder) / "order", Path(folder) / "told"
        asked.write_text("\n".join(order.units), encoding="utf-8")
        told = Told(said, ledger)
        files = list(dict.fromkeys(unit.partition("::")[0] for unit in order.units))
        shared = ["-n", str(processes), "--dist", "load", "--maxschedchunk", "1"] if processes > 1 else []
        command = [sys.executable, "-m", "pytest", "-m", "long", "-p", "tests.long.plugin", *shared, *files]
        environment = {**os.environ, ORDER: str(asked), TOLD: str(said)}
        with open(Path(folder) / "pytest.log", "wb") as log:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
            try:
                while process.poll() is None and time.monotonic() < deadline:
                    time.sleep(LOOK_S)
                    told.read()
            except KeyboardInterrupt:
                print("stopped; what has passed is kept", file=sys.stderr)
            finally:
                over = process.poll() is None
                if over:
                    end(process)
                told.read()
                told.cut_off()
        status = 0 if over else process.returncode
        if status not in (0, 1) or (status == 1 and not any(one.outcome == "failed" for one in told.outcomes.values())):
            print((Path(folder) / "pytest.log").read_text(errors="replace")[-4000:], file=sys.stderr)
        return told.outcomes, status


def main() -> int:
    """Run, report, and fail where anything has failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--shard", default="1/1", help="one part of all units, for several machines: 1/3, 2/3, 3/3")
    parser.add_argument("--only", metavar="TEXT", help="units that pytest's -k chooses")
    parser.add_argument("--again", action="store_true", help="also what passed on this code")
    parser.add_argument("--ledger", type=Path, default=ROOT / "results" / "long.json")
    asked = parser.parse_args()
    begun_s = time.monotonic()
    ledger = Ledger.load(asked.ledger, fingerprint(ROOT), commit(ROOT))
    units = part_of(collected(asked.only), asked.shard)
    budget_s = asked.minutes * 60
    order = ordered(units, ledger, budget_s, asked.processes, asked.again)
    print(f"{len(order.units)} of {len(units)} units in {asked.minutes:g} minutes, code {ledger.code}", flush=True)
    outcomes, status = go(order, ledger, begun_s + budget_s, asked.processes) if order.units else ({}, 0)
    facts = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": ledger.commit,
        "code": ledger.code,
        "minutes": f"{asked.minutes:g} asked, {(time.monotonic() - begun_s) / 60:.1f} taken",
        "processes": str(asked.processes),
        "part": asked.shard,
    }
    text = report(facts, units, order, outcomes, ledger)
    asked.ledger.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 1 if status not in (0, 5) or any(one.outcome == "failed" for one in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
