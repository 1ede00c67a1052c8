"""One turn of benchmarks.durability, in a process of its own: whichever Weft PYTHONPATH names is measured."""

from __future__ import annotations

import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import weft
import weft.model
from benchmarks import overhead, pause
from benchmarks._bench import cpu_s, java_of, spark
from weft.bodies.live.run import Options, Run
from weft.model import Deployment

WARM_S = 10.0
BULKS = 2
SETTLE_S = 2.0
Turn = dict[str, Any]


def stored(deployment: Deployment, fsync: bool | None) -> Deployment:
    """The deployment with syncing on or off; as it is where that is not asked for."""
    if fsync is None:
        return deployment
    store = getattr(deployment, "store", None) or weft.model.Store()  # type: ignore[attr-defined]
    return replace(deployment, store=replace(store, fsync=fsync))  # type: ignore[call-arg]


@contextmanager
def chosen(fsync: bool | None) -> Iterator[None]:
    """Let the benchmarks that are used here build their deployments so, for a while."""
    builders = ((overhead, "weft_deployment"), (pause, "deployment_in"))
    before = [getattr(module, name) for module, name in builders]
    for (module, name), build in zip(builders, before, strict=True):
        setattr(module, name, lambda *words, build=build, **more: stored(build(*words, **more), fsync))
    try:
        yield
    finally:
        for (module, name), build in zip(builders, before, strict=True):
            setattr(module, name, build)


@contextmanager
def opened(logs: Path) -> Iterator[Any]:
    """A session of whichever Weft is measured."""
    try:
        from weft.spark.session import lent  # noqa: F401
    except ImportError:  # another checkout, from before a session could be lent
        try:
            from weft.spark.session.starting import start_session
        except ImportError:  # or from before the folders were split
            from weft.spark.session import start_session  # type: ignore[attr-defined]
        session = start_session(logs)
        yield session
        session.stop()
        return
    with spark(logs) as session:
        yield session


def bulk(data: Path, folder: Path, sites: tuple[str, str]) -> tuple[float, Any]:
    """Records per second through filter and projection, the first files left out; what syncing took, where told.

    The time runs from the start of a batch at the source to the end of the last one at the sink.
    """
    folder.mkdir(parents=True)
    (folder / "in").symlink_to(data)
    deployment = overhead.weft_deployment(folder, sites, maxFilesPerTrigger="1")
    run = Run(deployment, folder / ".weft", Options(until_done=True))
    summary = run.go()
    batches = {name: _batches(one.query) for name, one in overhead.runs_of(run).items()}
    steady = batches["q.valid"][overhead.WARM_BATCHES :]
    ends_s = max(begun_s + took_s for held in batches.values() for begun_s, took_s, _ in held)
    return sum(rows for _, _, rows in steady) / (ends_s - steady[0][0]), summary.get("sync_ms")


def _batches(query: Any) -> list[tuple[float, float, int]]:
    """When each batch with records began, what it took, and how many they were."""
    return [
        (
            datetime.fromisoformat(report["timestamp"]).timestamp(),
            float(report["durationMs"]["triggerExecution"]) / 1000,
            int(report["numInputRows"]),
        )
        for report in query.recentProgress
        if report["numInputRows"] > 1
    ]


def pauses(folder: Path, moves: int) -> tuple[dict[str, list[float]], Any]:
    """Pauses in ms of a stateless and a stateful operator that moves to and fro; the first to and fro warms up."""
    folder.mkdir(parents=True)
    run = Run(pause.deployment_in(folder), folder / ".weft", Options())
    thread = threading.Thread(target=run.go, daemon=True)
    thread.start()
    while run.phase != "running":
        time.sleep(0.1)
        assert thread.is_alive(), "the run did not start"
    time.sleep(WARM_S)
    found: dict[str, list[float]] = {query: [] for query in pause.QUERIES}
    for number in range(2 * moves + 2):
        for query in pause.QUERIES:
            move = pause._move(run, query, "bc"[(number + 1) % 2], SETTLE_S)
            if number >= 2 and move.pause_ms is not None:
                found[query].append(move.pause_ms)
    synced = run.status().get("sync_ms")
    run.stop()
    thread.join(60)
    return found, synced


def measure(asked: Turn) -> Turn:
    """Everything that is asked of this turn."""
    assert weft.__file__ is not None
    assert Path(weft.__file__).is_relative_to(asked["src"]), f"{weft.__file__} is not in {asked['src']}"
    with chosen(asked["fsync"]), opened(Path(asked["work"]) / "logs") as session:
        return _measured(asked, java_of(session))


def _measured(asked: Turn, java: int) -> Turn:
    work, data = Path(asked["work"]), Path(asked["data"])
    found: Turn = {"values": {}, "sync_ms": {}, "took_s": {}, "load": os.getloadavg()[0]}

    def timed(name: str, act: Callable[[], None]) -> None:
        begun_s = time.monotonic()
        act()
        found["took_s"][name] = round(time.monotonic() - begun_s, 1)

    def do_bulk() -> None:
        bulk(data, work / "warm", ("a", "b"))
        rates: dict[str, list[float]] = {}
        begun_s = cpu_s(java)
        for number in range(BULKS):
            for name, sites in (("bulk, one site", ("a", "a")), ("bulk, two sites", ("a", "b"))):
                rate, found["sync_ms"][name] = bulk(data, work / f"{name}-{number}".replace(", ", "-"), sites)
                rates.setdefault(name, []).append(rate)
        found["values"]["cpu, bulk"] = cpu_s(java) - begun_s
        found["values"] |= {name: statistics.median(held) for name, held in rates.items()}

    def do_hop() -> None:
        found["values"]["hop"] = statistics.median(overhead.weft_hop(work / "hop", asked["drops"])) * 1000

    def do_pause() -> None:
        held, found["sync_ms"]["moves"] = pauses(work / "pause", asked["moves"])
        for query, values in held.items():
            found["values"][f"pause, {query}"] = statistics.median(values)

    for name, act in (("bulk", do_bulk), ("hop", do_hop), ("pause", do_pause)):
        if name in asked["parts"]:
            timed(name, act)
    return found


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    Path(wanted["result"]).write_text(json.dumps(measure(wanted)))
