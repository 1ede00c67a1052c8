"""What does measuring cost? The same run with and without it, in one session, by turns.

    python -m benchmarks.measuring [--short] [--json]

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

import shutil
import tempfile
from pathlib import Path

from benchmarks._bench import Found, Setting, cpu_s, go, java_of, line, ratios, spark, spread, turns
from benchmarks.overhead import COLUMNS, make_data, per_record_ms
from weft.bodies.live.embedded import EmbeddedSites
from weft.bodies.live.run import Options, Run
from weft.model import Deployment, Operator, Query, Sink, Site, Source, Watermark

SIDES = {"with": True, "without": False}


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


def one_turn(data: Path, folder: Path, measured: bool, java: int) -> tuple[float, float]:
    """Milliseconds of batch time per record, over both queries, and CPU seconds of the turn."""
    folder.mkdir(parents=True)
    (folder / "in").symlink_to(data)
    run = Run(deployment_in(folder), folder / ".weft", Options(until_done=True, measured=measured))
    begun_s = cpu_s(java)
    run.go()
    took_s = cpu_s(java) - begun_s
    assert isinstance(run.sites, EmbeddedSites)
    total = 0.0
    for fragment in run.sites.runs.values():
        assert fragment.query is not None
        reports = [
            (int(report["numInputRows"]), float(report["durationMs"]["triggerExecution"]))
            for report in fragment.query.recentProgress
            if report["numInputRows"] > 1
        ]
        total += per_record_ms(reports)
    return total, took_s


def measure(setting: Setting) -> Found:
    """Throughput and CPU seconds, with against without."""
    work = Path(tempfile.mkdtemp(prefix="weft-measuring-"))
    costs: dict[str, list[float]] = {name: [] for name in SIDES}
    cpus: dict[str, list[float]] = {name: [] for name in SIDES}
    try:
        with spark(work / "logs") as session:
            make_data(session, work / "data", setting["records"], setting["files"])
            java = java_of(session)
            for number, name, counts in turns(list(SIDES), setting["rounds"], setting["warm_rounds"]):
                cost, cpu = one_turn(work / "data", work / f"{number}-{name}", SIDES[name], java)
                if counts:
                    costs[name].append(cost)
                    cpus[name].append(cpu)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {
        "throughput_per_s": {name: spread([1000 / one for one in held], 0) for name, held in costs.items()},
        "ratio": ratios(costs["without"], costs["with"]),
        "cpu_s": {name: spread(held, 2) for name, held in cpus.items()},
        "cpu_ratio": ratios(cpus["without"], cpus["with"]),
    }


def show(setting: Setting, found: Found) -> None:
    """The figures for people, with all rounds."""
    for name in SIDES:
        print(line(f"{name} measuring", found["throughput_per_s"][name], "records/s"))
    print(line("with over without", found["ratio"]), setting.aim("ratio.median"))
    for name in SIDES:
        print(line(f"{name} measuring", found["cpu_s"][name], "CPU s"))
    print(line("without over with, CPU", found["cpu_ratio"]))


if __name__ == "__main__":
    go("measuring", __doc__, measure, show)
