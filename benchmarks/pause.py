"""How long does a move hold records up? Pauses of moved operators over the time of their batches, in one run.

    python -m benchmarks.pause [--short] [--json]

A stateless and a windowed query over a steady source, in one session. Operators move between sites that hold nothing
else (the fragment stays as it is), and into the fragment of what they read and out of it again (joined, parted). A
pause runs from the last commit before to the first commit after, by the moved operator's fragment; the batch time is
the median over all batches of that fragment between moves. Ratios are medians over moves.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._bench import Found, Setting, go, line, spread
from weft.bodies.live.run import Options, Run
from weft.model import Column, Constant, Deployment, Link, Operator, Query, Sink, Site, Source, Watermark

if TYPE_CHECKING:
    from weft.bodies.live.moves import Move

SPENT = ("ending", "deciding", "starting", "first_batch")  # written out, so that older checkouts can be measured too
COLUMNS = (Column("ts", "TIMESTAMP"), Column("n", "BIGINT"), Column("k", "STRING"))
RATE_PER_S = 400.0
MOVE_S_MAX = 60.0
START_S_MAX = 180.0
QUERIES = ("stateless", "stateful")
WAYS = (("alone", "c"), ("alone", "b"), ("joined", "a"), ("parted", "b"))


def deployment_in(folder: Path) -> Deployment:
    """Two queries over one source at site a: what moves starts at b."""
    source = Source("made", "a", "rate", COLUMNS, arrivals=Constant(RATE_PER_S), event_time="ts")
    plain = Query(
        "stateless",
        (
            Operator("keep", ("made",), sql="SELECT * FROM made WHERE n % 3 <> 0", site="a"),
            Operator("moved", ("keep",), sql="SELECT ts, upper(k) k, n * 2 n FROM keep", site="b"),
        ),
        (Sink("moved", "parquet", "out/stateless"),),
    )
    windowed = Query(
        "stateful",
        (
            Operator("valid", ("made",), sql="SELECT * FROM made WHERE n % 5 <> 0", site="a"),
            Operator(
                "moved", ("valid",), site="b", watermarks=(Watermark("0 seconds"),),
                sql="SELECT window(ts, '100 milliseconds') w, k, count(*) n FROM valid GROUP BY 1, 2",
            ),
        ),
        (Sink("moved", "parquet", "out/stateful"),),
    )  # fmt: skip
    sites = (Site("a"), Site("b"), Site("c"))
    links = (Link("a", "b"), Link("a", "c"), Link("b", "c"))
    return Deployment(sites, (source,), (plain, windowed), links, folder=str(folder))


def measure(setting: Setting) -> Found:
    """Pauses and batch times of both queries, alone and in fragments, by turns."""
    work = Path(tempfile.mkdtemp(prefix="weft-pause-"))
    found: dict[str, list[Move]] = {}
    run = Run(deployment_in(work), work / ".weft", Options())
    thread = threading.Thread(target=run.go, daemon=True)
    try:
        thread.start()
        begun_s = time.monotonic()
        while not _flows(run):
            time.sleep(0.5)
            assert thread.is_alive(), "the run did not start"
            assert time.monotonic() < begun_s + START_S_MAX, f"no results of both queries within {START_S_MAX:.0f} s"
        time.sleep(setting["warm_s"])
        for number in range(setting["warm_rounds"] + setting["rounds"]):
            for query in QUERIES:
                for kind, to in WAYS:
                    move = _move(run, query, to, setting["settle_s"])
                    if number >= setting["warm_rounds"]:
                        found.setdefault(f"{query} {kind}", []).append(move)
        batches = {query: _batch_ms(run, f"{query}.moved") for query in QUERIES}
    finally:
        run.stop()
        thread.join(60)
        shutil.rmtree(work, ignore_errors=True)
    pauses = {name: [move.pause_ms for move in held if move.pause_ms is not None] for name, held in found.items()}
    return {
        "batch_ms": {query: round(value) for query, value in batches.items()},
        "pause_ms": {name: spread(held, 0) for name, held in pauses.items()},
        "spent_ms": {
            name: {part: round(statistics.median(move.spent_ms[part] for move in held)) for part in SPENT}
            for name, held in found.items()
        },
        "ratio": {name: spread([one / batches[name.split()[0]] for one in held], 2) for name, held in pauses.items()},
    }


def _flows(run: Run) -> bool:
    """Whether both queries have given something: a pause begins with a commit."""
    return run.phase == "running" and all(run.status()["queries"][query]["records_out"] for query in QUERIES)


def _move(run: Run, query: str, to: str, settle_s: float) -> Move:
    time.sleep(settle_s)
    move = run.move(query, "moved", to)
    deadline = time.monotonic() + MOVE_S_MAX
    while move.pause_ms is None:
        assert move.state != "refused", move.why
        assert time.monotonic() < deadline, f"{query} to {to}: no pause is known after {MOVE_S_MAX} s"
        time.sleep(0.02)
    return move


def _batch_ms(run: Run, fragment: str) -> float:
    assert run.progress is not None
    return statistics.median(duration for rows, duration in run.progress.history[fragment])


def show(setting: Setting, found: Found) -> None:
    """The figures for people, with all rounds."""
    for name, held in found["ratio"].items():
        spent = ", ".join(f"{part} {ms}" for part, ms in found["spent_ms"][name].items())
        print(line(f"{name}, pause", found["pause_ms"][name], "ms"), f"of which {spent}")
        print(line(f"{name}, pause over batch", held), setting.aim(f"ratio.{name}.median"))
    print("batches:", ", ".join(f"{query} {ms} ms" for query, ms in found["batch_ms"].items()))


if __name__ == "__main__":
    go("pause", __doc__, measure, show)
