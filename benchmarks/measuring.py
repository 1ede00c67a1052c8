"""What does measuring cost? The same run with and without it, in one session, by turns.

    python -m benchmarks.measuring [--records 1500000] [--rounds 6] [--json]

Files of records through three fused operators, one of which is counted on the way because nothing else tells how many
records it gave, and a window. Without measuring nobody looks at Spark's reports, stages and manifests, nothing is
counted and no line is written. Throughput is records over the time that Spark spent on the batches, the first two of
each turn left out. The ratio is the median over rounds of the ratio within a round, whose two turns are close in time:
between rounds a shared machine may change its pace by a third. Beside it stands the ratio of CPU time that the whole
run took, Spark and Python together: both queries keep the cores busy, so what measuring adds there is what it costs,
and a busy machine hardly changes it. Java's compiler takes some eight turns to settle (63 s of CPU for the first, 25 s
in the end): the first rounds do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.overhead import COLUMNS, make_data, per_record_ms
from weft.bodies.live.run import Options, Run
from weft.model import Deployment, Operator, Query, Sink, Site, Source, Watermark

FILES = 30
WARM_ROUNDS = 4


def deployment_in(folder: Path) -> Deployment:
    """A query whose inner operators change the number of records, and a windowed one, on one site."""
    plain = Query(
        "plain",
        (
            Operator("valid", ("records",), sql="SELECT * FROM records WHERE kwh >= 1"),
            Operator("shaped", ("valid",), sql="SELECT ts, upper(meter) AS meter, kwh * 1000 AS wh, n FROM valid"),
            Operator("some", ("shaped",), sql="SELECT * FROM shaped WHERE n % 2 = 0"),
        ),
        (Sink("some", "parquet", "out/plain"),),
    )
    windowed = Query(
        "windowed",
        (
            Operator(
                "sums", ("records",), watermarks=(Watermark("0 seconds"),),
                sql="SELECT window(ts, '10 seconds') w, meter, sum(kwh) kwh FROM records GROUP BY 1, 2",
            ),
        ),
        (Sink("sums", "parquet", "out/windowed"),),
    )  # fmt: skip
    source = Source("records", "a", "csv", COLUMNS, "in", {"maxFilesPerTrigger": "1"}, event_time="ts")
    return Deployment((Site("a"),), (source,), (plain, windowed), folder=str(folder))


def cpu_s(java: int) -> float:
    """CPU seconds of this process and of Spark's."""
    fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def one_turn(data: Path, folder: Path, measured: bool, java: int) -> tuple[float, float]:
    """Milliseconds of batch time per record, over both queries, and CPU seconds of the turn."""
    folder.mkdir(parents=True)
    (folder / "in").symlink_to(data)
    run = Run(deployment_in(folder), folder / ".weft", Options(until_done=True, measured=measured))
    begun_s = cpu_s(java)
    run.go()
    took_s = cpu_s(java) - begun_s
    assert run.progress is not None
    total = 0.0
    for fragment in run.progress.engine.runs.values():
        assert fragment.query is not None
        reports = [
            (int(report["numInputRows"]), float(report["durationMs"]["triggerExecution"]))
            for report in fragment.query.recentProgress
            if report["numInputRows"] > 1
        ]
        total += per_record_ms(reports)
    return total, took_s


def measure(records: int, rounds: int) -> dict[str, Any]:
    """The ratio of throughputs, with against without."""
    from weft.spark.session.starting import start_session

    work = Path(tempfile.mkdtemp(prefix="weft-measuring-"))
    session = start_session(work / "logs")
    try:
        make_data(session, work / "data", records, FILES)
        java = session._jvm.java.lang.ProcessHandle.current().pid()
        costs: dict[bool, list[float]] = {True: [], False: []}
        cpus: dict[bool, list[float]] = {True: [], False: []}
        for number in range(WARM_ROUNDS + rounds):
            for measured in (True, False) if number % 2 else (False, True):
                cost, cpu = one_turn(work / "data", work / f"{number}-{measured}", measured, java)
                if number >= WARM_ROUNDS:
                    costs[measured].append(cost)
                    cpus[measured].append(cpu)
    finally:
        session.stop()
        shutil.rmtree(work, ignore_errors=True)
    medians = {measured: statistics.median(held) for measured, held in costs.items()}
    ratios = [without / with_ for with_, without in zip(costs[True], costs[False], strict=True)]
    return {
        "records": records,
        "rounds": rounds,
        "throughput_per_s": {"with": round(1000 / medians[True]), "without": round(1000 / medians[False])},
        "ratio": round(statistics.median(ratios), 3),
        "cpu_s": {"with": round(sum(cpus[True]), 1), "without": round(sum(cpus[False]), 1)},
        "cpu_ratio": round(sum(cpus[False]) / sum(cpus[True]), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_500_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.records, asked.rounds)
    if asked.json:
        print(json.dumps(found))
        return
    print(f"with measuring     {found['throughput_per_s']['with']:>9,} records/s")
    print(f"without            {found['throughput_per_s']['without']:>9,} records/s")
    print(f"ratio              {found['ratio']:>9} (at least 0.97 is the aim; by round: {found['ratios']})")
    cpu = found["cpu_s"]
    print(f"ratio of CPU time  {found['cpu_ratio']:>9} ({cpu['with']} s with, {cpu['without']} s without)")


if __name__ == "__main__":
    main()
