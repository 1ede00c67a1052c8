"""What does sharing save? Ten near-equal queries over one source, shared against not shared, in one session, by turns.

    python -m benchmarks.sharing [--short] [--json]

CPU seconds of this process and its children (Spark's among them) over a whole run, and records that fragments read,
shared over not shared: of ten queries that have all but their words in common (`equal`), and of ten of which eight have
a filter in common and a window of their own (`prefix`). Both ways must give the same results.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks._bench import Found, Setting, go, line, ratios, spark, spread, turns
from benchmarks.late import COLUMNS, cpu_s, make_data
from weft.bodies.live.run import Options, Run
from weft.model import Control, Deployment, Operator, Query, Share, Sink, Site, Source, Watermark

FILTERS = (
    "SELECT * FROM records WHERE kwh >= 1 AND meter <> 'm7'",
    "select ts, meter, kwh from records r where not r.kwh < 1 and 'm7' <> r.meter",
    "SELECT meter, kwh, ts FROM records WHERE meter <> 'm7' AND 1 <= kwh",
)
SUMS = (
    "SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM kept GROUP BY 1, 2",
    "SELECT meter, sum(kwh) AS kwh, window(ts, '60 minutes') AS w FROM kept GROUP BY w, meter",
)


def windowed(sql: str) -> Operator:
    """An operator that counts by windows."""
    return Operator("sums", ("kept",), sql=sql, watermarks=(Watermark("10 minutes", "ts"),))


def equal(count: int) -> list[Query]:
    """Queries that mean the same, in other words."""
    return [_query(f"q{at}", FILTERS[at % len(FILTERS)], SUMS[at % len(SUMS)]) for at in range(count)]


def prefix(count: int) -> list[Query]:
    """Queries with one filter, each with a window of its own; of five one shares nothing."""
    filters = [f"SELECT * FROM records WHERE kwh = {at}" if at % 5 == 4 else FILTERS[at % 2] for at in range(count)]
    windows = [SUMS[0].replace("1 hour", f"{20 + 5 * at} minutes") for at in range(count)]
    return [_query(f"q{at}", *both) for at, both in enumerate(zip(filters, windows, strict=True))]


def _query(name: str, kept: str, sums: str) -> Query:
    operators = Operator("kept", ("records",), sql=kept), windowed(sums)
    return Query(name, operators, (Sink("sums", "parquet", f"out/{name}"),))


SETS = {"equal": equal, "prefix": prefix}


def turn(data: Path, folder: Path, queries: list[Query], share: bool) -> tuple[float, int, list[list[str]]]:
    """CPU seconds of a run, records that its fragments read, and each query's results."""
    folder.mkdir(parents=True)
    (folder / "in").symlink_to(data)
    source = Source("records", "a", "csv", COLUMNS, "in", {"maxFilesPerTrigger": "1"}, event_time="ts")
    whole = Deployment((Site("a"),), (source,), tuple(queries), control=Control(share=Share(share)), folder=str(folder))
    before_s = cpu_s()
    run = Run(whole, folder / ".weft", Options(until_done=True))
    told = run.go()
    spent_s = cpu_s() - before_s
    read = sum(one.get("records_in") or 0 for one in told["fragments"].values())
    return spent_s, read, [_results(folder / "out" / query.name) for query in queries]


def _results(folder: Path) -> list[str]:
    rows: list[str] = []
    for file in sorted(folder.glob("part-*.parquet")):
        found = pq.read_table(file)
        rows += [repr(row) for row in found.select(sorted(found.column_names)).to_pylist()]
    return sorted(rows)


def measure(setting: Setting) -> Found:
    """Both sets, turn by turn."""
    work = Path(tempfile.mkdtemp(prefix="weft-sharing-"))
    found: Found = {}
    try:
        make_data(work / "data", setting["records"], setting["files"], late=False)
        with spark(work / "logs"):
            for name in setting["sets"]:
                found[name] = _measured(setting, work, name, SETS[name](setting["queries"]))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return found


def _measured(setting: Setting, work: Path, name: str, queries: list[Query]) -> Found:
    spent: dict[str, list[float]] = {"shared": [], "alone": []}
    read: dict[str, int] = {}
    results: dict[str, list[list[str]]] = {}
    for number, how, counts in turns(["alone", "shared"], setting["rounds"], setting["warm_rounds"]):
        folder = work / f"{name}-{number}-{how}"
        cost_s, read[how], results[how] = turn(work / "data", folder, queries, how == "shared")
        shutil.rmtree(folder, ignore_errors=True)
        if counts:
            spent[how].append(cost_s)
    assert all(results["alone"]), "every query gives results"
    assert results["shared"] == results["alone"], "sharing changes no result"
    cpu = {f"{how}_cpu_s": spread(held, 2) for how, held in spent.items()}
    records = {"shared": read["shared"], "alone": read["alone"], "ratio": read["shared"] / read["alone"]}
    return {"cpu_ratio": ratios(spent["shared"], spent["alone"]), "records_read": records, **cpu}


def show(setting: Setting, found: Found) -> None:
    """The figures for people, with all rounds."""
    for name, held in found.items():
        print(line(f"{name}, CPU shared over alone", held["cpu_ratio"]), setting.aim(f"{name}.cpu_ratio.median"))
        for how in ("shared", "alone"):
            print(line(f"{name}, CPU {how}", held[f"{how}_cpu_s"], "s"))
        read = held["records_read"]
        print(f"{name}, records read: {read['shared']:,} shared, {read['alone']:,} alone, ratio {read['ratio']:.3f}")


if __name__ == "__main__":
    go("sharing", __doc__, measure, show)
