"""Before a source is said to be at its end, all that lies there is read: what came since Spark looked last, too."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import weft.spec
from weft.spark.fragments.draining import DrainingRun
from weft.spark.fragments.lifecycle import FragmentRun
from weft.spark.fragments.wiring import Entry
from weft.spark.sources.taken import PassedOver

FILE = """
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: csv, path: in, schema: "v BIGINT"}]
queries:
  - {name: q, operators: [{name: o, from: [s], sql: "SELECT v FROM s"}], sink: {from: o, format: parquet, path: out}}
"""


class Spark:
    """A streaming query that lists a folder whenever somebody waits for all of it, unless it is to see nothing."""

    isActive = True

    def __init__(self, folder: Path, lists: Path) -> None:
        self.folder, self.lists = folder, lists
        self.read: list[str] = []
        self.sees = True

    def processAllAvailable(self) -> None:
        new = [path for path in sorted(self.folder.iterdir()) if path.name not in self.read] if self.sees else []
        if new:
            number = len(list(self.lists.iterdir()))
            told = [json.dumps({"path": path.as_uri(), "timestamp": 1, "batchId": number}) for path in new]
            (self.lists / str(number)).write_text("\n".join(["v1", *told]))
            self.read += [path.name for path in new]

    def upto(self, entry: Entry) -> int:
        return len(list(self.lists.iterdir())) - 1


def run_over(folder: Path, kind: type[FragmentRun] = FragmentRun) -> tuple[FragmentRun, Spark, list[str]]:
    """A fragment that reads a folder with one file, and what it had read when its sources were finished."""
    for name in ("in", "checkpoint/sources/source_s"):
        (folder / name).mkdir(parents=True)
    (folder / "in" / "one.csv").write_text("1\n")
    (folder / "d.yaml").write_text(FILE)
    run = object.__new__(kind)
    query = Spark(folder / "in", folder / "checkpoint" / "sources" / "source_s")
    finished: list[str] = []
    run.context = SimpleNamespace(deployment=weft.spec.load(folder / "d.yaml"))  # type: ignore[assignment]
    run.checkpoint, run.query = folder / "checkpoint", query  # type: ignore[assignment]
    run.entries = [Entry("s", "o", "source_s", False, None, 0)]
    run.writer = SimpleNamespace(files_upto=query.upto)  # type: ignore[assignment]
    run.finish_sources = lambda: finished.extend(query.read)  # type: ignore[method-assign]
    return run, query, finished


@pytest.mark.parametrize("names", [[], ["late.csv", "later.csv"]])
def test_files_that_come_until_it_is_written_down_which_there_are_are_read(folder: Path, names: list[str]) -> None:
    run, _, finished = run_over(folder)

    def note() -> None:
        for name in names:
            (folder / "in" / name).write_text("2\n")

    run.read_all({}, before_end=note)
    assert finished == ["one.csv", *names]


def test_a_file_that_spark_does_not_see_is_told_of_and_the_fragment_starts_anew(folder: Path) -> None:
    run, query, finished = run_over(folder, DrainingRun)
    query.sees = False
    assert isinstance(run, DrainingRun)
    run.settings = SimpleNamespace(totals={}, before_end=lambda fragment, alive: None)  # type: ignore[assignment]
    run.fragment = SimpleNamespace(id="q.o")  # type: ignore[assignment]
    run.trouble = None
    run._drain()
    assert finished == []
    why, permanent = run.failure() or ("", True)
    assert why.startswith(f"{folder / 'in' / 'one.csv'}: Spark has not read it")
    assert not permanent


def test_what_a_pattern_or_an_option_leaves_out_is_not_asked_for(folder: Path) -> None:
    run, query, finished = run_over(folder)
    query.sees = False
    for changed in ('path: "in/*.csv"', "path: in, options: {pathGlobFilter: 'x*'}"):
        (folder / "d.yaml").write_text(FILE.replace("path: in", changed, 1))
        run.context.deployment = weft.spec.load(folder / "d.yaml")  # type: ignore[misc]
        run.read_all({}, before_end=lambda: None)
    (folder / "in" / "one.csv").rename(folder / "in" / "_one.csv")
    (folder / "d.yaml").write_text(FILE)
    run.context.deployment = weft.spec.load(folder / "d.yaml")  # type: ignore[misc]
    run.read_all({}, before_end=lambda: None)
    with pytest.raises(PassedOver):
        run.read_all({}, before_end=lambda: (folder / "in" / "_one.csv").rename(folder / "in" / "one.csv") and None)
    assert finished == []
