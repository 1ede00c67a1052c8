"""Sinks keep clear of one another and of the state by any spelling, and options that lose records are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.spec_texts import GOOD, changed, line_of, written
from weft import spec

SINK = "sink: {from: high, site: district, format: parquet, path: out/suspicious}"
SOURCE = "    arrivals: {kind: poisson, rate_per_s: 200}\n"


def two_sinks(one: str, other: str) -> str:
    """The good text with two sinks in these folders."""
    sinks = [f'\n      - {{from: high, format: parquet, path: "{path}"}}' for path in (one, other)]
    return changed(SINK, "sink:" + "".join(sinks))


@pytest.mark.parametrize(
    ("one", "other", "piece"),
    [
        ("out/a", "out/a", "is also the folder of queries[0].sink[0]"),
        ("out/a", "out/a/", "is also the folder of"),
        ("out/a", "./out//b/../a", "is also the folder of"),
        ("out/a", "HERE/out/a", "is also the folder of"),
        ("out/a", "link/a", "is also the folder of"),
        ("~/out/a", "out/a", "is also the folder of"),
        ("out/a", "out/a/b", "lies in the folder of queries[0].sink[0]"),
        ("out/a/b", "out/a", "holds the folder of queries[0].sink[0]"),
        ("out/a/b", "link/a", "holds the folder of"),
        ("out/a", "out/.a.weft", "lies where queries[0].sink[0] keeps what is on its way"),
        ("out/a", "out/.a.weft/pending", "lies where queries[0].sink[0] keeps"),
        ("out/.a.weft", "out/a", "lies where this sink keeps what is on its way"),
        ("~/out/a", "link/.a.weft", "lies where queries[0].sink[0] keeps"),
    ],
)
def test_two_sinks_in_one_place_are_told_however_it_is_spelled(
    folder: Path, monkeypatch: pytest.MonkeyPatch, one: str, other: str, piece: str
) -> None:
    (folder / "out").mkdir()
    (folder / "link").symlink_to("out")
    monkeypatch.setenv("HOME", str(folder))
    text = two_sinks(one, other.replace("HERE", str(folder)))
    (problem,) = spec.check(written(folder, text)).errors
    assert (problem.field, problem.line) == ("queries[0].sink[1].path", line_of(text, "sink:") + 2)
    assert piece in problem.message


def test_sinks_beside_each_other_are_fine(folder: Path) -> None:
    assert spec.check(written(folder, two_sinks("out/a", "out/ab"))).ok


@pytest.mark.parametrize(
    ("path", "store", "piece"),
    [
        (".weft", "", "lies in the state folder"),
        (".weft/out", "", "lies in the state folder"),
        ("./x/../.weft/out", "", "lies in the state folder"),
        ("~/.weft/out", "", "lies in the state folder"),
        ("state/out", "store: state\n", "lies in the state folder"),
        ("out", "store: out/state\n", "holds the state folder"),
        ("link", "store: {path: out/state}\n", "holds the state folder"),
        ("s3a://bucket/out", "", "`s3a://bucket/out` is not a folder of this machine; give one, as out/suspicious"),
        ("hdfs://host/out", "", "is not a folder of this machine"),
        ("gs://bucket/out", "", "is not a folder of this machine"),
        ("dbfs:/out", "", "is not a folder of this machine"),
        ("s3:out", "", "is not a folder of this machine"),
        ("file:///tmp/out", "", "is not a folder of this machine (leave `file:` out)"),
        ("file:out", "", "is not a folder of this machine"),
        ("~/data", "", "holds what the source `readings` reads"),
        ("link2", "", "holds what the source `readings` reads"),
        ("~", "", "holds the deployment file itself"),
        ("x" * 250, "", "has too long a name: what is on its way lies beside it"),
        ("round", "", "is no folder; a sink needs a folder"),
    ],
)
def test_a_sink_that_a_run_cannot_keep_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, store: str, piece: str
) -> None:
    (folder / "out").mkdir()
    (folder / "link").symlink_to("out")
    (folder / "link2").symlink_to("data")
    (folder / "round").symlink_to("round")
    monkeypatch.setenv("HOME", str(folder))
    text = changed("path: out/suspicious", f'path: "{path}"') + store
    (problem,) = spec.check(written(folder, text)).errors
    assert (problem.field, problem.line) == ("queries[0].sink.path", line_of(text, "sink:"))
    assert piece in problem.message


@pytest.mark.parametrize(
    ("path", "store", "piece"),
    [
        ("s3a://bucket/in/*.csv", "", "is not a file or folder of this machine"),
        ("file:///etc/hosts", "", "(leave `file:` out)"),
        (".weft/streams", "", "reads the state folder"),
        (".weft/*/x.csv", "", "reads the state folder"),
        ("*", "", "reads the state folder"),
        (".", "store: kept\n", "reads the state folder"),
        ("data", "store: data/kept\n", "reads the state folder"),
        ("~/.weft", "", "reads the state folder"),
    ],
)
def test_a_source_elsewhere_or_in_the_state_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, store: str, piece: str
) -> None:
    (folder / ".weft" / "streams").mkdir(parents=True)
    (folder / ".weft" / "streams" / "x.csv").write_text("")
    monkeypatch.setenv("HOME", str(folder))
    text = changed("path: data/readings-*.csv", f'path: "{path}"').replace("out/suspicious", "/nowhere/out") + store
    problems = [one for one in spec.check(written(folder, text)).errors if one.field.startswith("sources")]
    assert [(one.field, one.line) for one in problems] == [("sources[0].path", line_of(text, "path:"))]
    assert piece in problems[0].message


def test_data_beside_a_hidden_state_and_in_ones_home_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    for path in ("data", "~/data", "~/data/readings-*.csv"):
        assert spec.check(written(folder, changed("data/readings-*.csv", path))).ok
    (folder / "data" / ".kept").mkdir()
    assert spec.check(written(folder, changed("data/readings-*.csv", "data") + "store: data/.kept\n")).ok


@pytest.mark.parametrize(
    ("format_", "path", "named"),
    [
        ("csv", "data [1]", "data [1]"),
        ("csv", "data [1]/readings-1.csv", "data [1]"),
        ("replay", "data/b [1].csv", "b [1].csv"),
    ],
)
def test_a_place_that_spark_takes_for_a_pattern_is_refused(folder: Path, format_: str, path: str, named: str) -> None:
    (folder / "data [1]").mkdir()
    for file in (folder / "data [1]" / "readings-1.csv", folder / "data" / "b [1].csv"):
        file.write_text("2024-01-01T00:00:00Z,m1,1\n")
    text = changed("data/readings-*.csv", f'"{path}"').replace("format: csv", f"format: {format_}", 1)
    (problem,) = spec.check(written(folder, text)).errors
    assert problem.field == "sources[0].path"
    assert problem.message.startswith("Spark takes `[` in `")
    assert problem.message.endswith("for a pattern, and finds nothing; rename it")


@pytest.mark.parametrize("format_", ["csv", "replay"])
@pytest.mark.parametrize("name", ["_a.csv", ".a.csv"])
def test_a_file_that_spark_passes_over_is_refused(folder: Path, format_: str, name: str) -> None:
    (folder / "data" / name).write_text("2024-01-01T00:00:00Z,m1,1\n")
    text = changed("data/readings-*.csv", f"data/{name}").replace("format: csv", f"format: {format_}", 1)
    (problem,) = spec.check(written(folder, text)).errors
    assert problem.message == f"Spark passes over files whose names begin with `{name[0]}`; rename it"


def test_a_sink_that_is_read_again_at_the_end_has_a_plain_path(folder: Path) -> None:
    sink = SINK.replace("out/suspicious", '"out {1}"')
    assert spec.check(written(folder, changed(SINK, sink))).ok
    (problem,) = spec.check(written(folder, changed(SINK, sink.replace('}"}', '}", mode: update}')))).errors
    assert problem.message.startswith("Spark takes `{` in `")


READ = [
    "cleanSource: archive",
    "CLEANSOURCE: delete",
    "sourceArchiveDir: old",
    "latestFirst: true",
    "LatestFirst: True",
    "maxFileAge: 1d",
    "fileNameOnly: true",
    "ignoreCorruptFiles: true",
    "ignoreMissingFiles: true",
    "ignoreInvalidPartitionPaths: true",
    "ignoredPathSegmentRegex: x",
    "archivePathFilter: x",
    "modifiedBefore: x",
    "modifiedAfter: x",
    "mode: DROPMALFORMED",
    "columnNameOfCorruptRecord: bad",
    "badRecordsPath: x",
    "columnPruning: true",
    "path: x",
    "PATH: x",
    "fs.defaultFS: x",
    "mapreduce.input.x: 1",
]


@pytest.mark.parametrize("option", READ)
def test_an_option_that_loses_records_is_refused(folder: Path, option: str) -> None:
    text = changed(SOURCE, f"{SOURCE}    options:\n      header: true\n      {option}\n")
    (problem,) = spec.check(written(folder, text)).errors
    assert (problem.field, problem.line) == (f"sources[0].options.{option.partition(':')[0]}", line_of(text, option))
    assert problem.message.startswith("cannot be given: ")


def test_harmless_values_and_other_options_are_taken(folder: Path) -> None:
    given = "cleanSource: 'OFF', latestFirst: false, header: true, maxFilesPerTrigger: 1, timeZone: CET, sep: ';'"
    assert spec.check(written(folder, changed(SOURCE, f"{SOURCE}    options: {{{given}}}\n"))).ok


@pytest.mark.parametrize(
    "option",
    [
        "path: x",
        "Mode: overwrite",
        "partitionOverwriteMode: dynamic",
        "checkpointLocation: x",
        "extension: txt",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs: true",
    ],
)
def test_an_option_that_harms_a_sink_is_refused(folder: Path, option: str) -> None:
    text = changed("path: out/suspicious", f"path: out/suspicious, options: {{{option}}}")
    (problem,) = spec.check(written(folder, text)).errors
    field = f"queries[0].sink.options.{option.partition(':')[0]}"
    assert (problem.field, problem.line) == (field, line_of(text, "sink:"))
    assert problem.message.startswith("cannot be given: ")


def test_the_check_of_the_good_text_is_as_before(folder: Path) -> None:
    assert spec.check(written(folder, GOOD)).errors == ()
