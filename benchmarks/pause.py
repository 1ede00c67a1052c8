"""How long does a move hold records up? Pauses of moved operators over the time of their batches, in one run.

    python -m benchmarks.pause [--moves 10] [--json]

A stateless and a windowed query over a steady source, in one session. Operators move between sites that hold nothing
else (the fragment stays as it is), and into the fragment of what they read and out of it again (joined, parted). A
pause runs from the last commit before to the first commit after, by the moved operator's fragment; the batch time is
the median over all batches of that fragment between moves. Ratios are medians over moves.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.bodies.live.run import Options, Run
from weft.model import Column, Constant, Deployment, Link, Operator, Query, Sink, Site, Source, Watermark

if TYPE_CHECKING:
    from weft.bodies.live.moves import Move

SPENT = ("ending", "deciding", "starting", "first_batch")  # written out, so that older checkouts can be measured too
COLUMNS = (Column("ts", "TIMESTAMP"), Column("n", "BIGINT"), Column("k", "STRING"))
RATE_PER_S = 400.0
SETTLE_S = 4.0
MOVE_S_MAX = 60.0
AIMS = {"stateless": 1.7, "stateful": 2.0}


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


def measure(moves: int) -> dict[str, Any]:
    """Pauses and batch times of both queries, alone and in fragments, by turns."""
    work = Path(tempfile.mkdtemp(prefix="weft-pause-"))
    try:
        run = Run(deployment_in(work), work / ".weft", Options())
        thread = threading.Thread(target=run.go, daemon=True)
        thread.start()
        while run.phase != "running":
            time.sleep(0.1)
            assert thread.is_alive(), "the run did not start"
        time.sleep(15)  # the compiler warms up
        found: dict[str, list[Move]] = {}
        for number in range(moves + 1):
            for query in AIMS:
                for kind, to in (("alone", "c"), ("alone", "b"), ("joined", "a"), ("parted", "b")):
                    move = _move(run, query, to)
                    if number:  # the first round warms up what moves need
                        found.setdefault(f"{query} {kind}", []).append(move)
        batches = {query: _batch_ms(run, f"{query}.moved") for query in AIMS}
        run.stop()
        thread.join(60)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {
        "moves": {name: len(held) for name, held in found.items()},
        "batch_ms": {query: round(value) for query, value in batches.items()},
        "pause_ms": {name: round(_pause_ms(held)) for name, held in found.items()},
        "spent_ms": {
            name: {part: round(statistics.median(move.spent_ms[part] for move in held)) for part in SPENT}
            for name, held in found.items()
        },
        "ratio": {name: round(_pause_ms(held) / batches[name.split()[0]], 2) for name, held in found.items()},
        "aim": AIMS,
    }


def _pause_ms(moves: list[Move]) -> float:
    return statistics.median(move.pause_ms for move in moves if move.pause_ms is not None)


def _move(run: Run, query: str, to: str) -> Move:
    time.sleep(SETTLE_S)
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.moves)
    if asked.json:
        print(json.dumps(found))
        return
    for name, ratio in found["ratio"].items():
        query = name.split()[0]
        spent = ", ".join(f"{part} {ms}" for part, ms in found["spent_ms"][name].items())
        print(
            f"{name:<16} pause {found['pause_ms'][name]:>6} ms, batch {found['batch_ms'][query]:>5} ms, "
            f"ratio {ratio:>5} (at most {AIMS[query]} is the aim): {spent}"
        )


if __name__ == "__main__":
    main()
