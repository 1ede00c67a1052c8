"""What Spark reads wrong without a word is told of before anything starts: other text than UTF-8, odd names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.spec.spec_texts import changed, line_of, written
from weft import spec

ROW = b"2024-01-01T00:00:00Z,caf\xc3\xa9,1\n"
LATIN = b"2024-01-01T00:00:00Z,caf\xe9,1\n"


def warned(folder: Path, content: bytes, path: str = "data", more: str = "", name: str = "b.csv") -> list[str]:
    """What is said of the encoding of a second file."""
    (folder / "data" / "a.csv").write_bytes(ROW * 3)
    (folder / "data" / name).write_bytes(content)
    text = changed("data/readings-*.csv", path).replace(
        "format: csv", f"format: csv\n    {more}" if more else "format: csv"
    )
    found = [one for one in spec.check(written(folder, text)).warnings if "UTF-8" in one.message]
    assert all((one.field, one.line) == ("sources[0].path", line_of(text, "path:")) for one in found)
    return [one.message for one in found]


@pytest.mark.parametrize("path", ["data", "data/*.csv", "data/{a,b}.csv", "data/b.csv"])
def test_a_file_that_is_not_utf8_is_told_with_its_line(folder: Path, path: str) -> None:
    (message,) = warned(folder, ROW * 2 + LATIN, path)
    assert message.startswith("data/b.csv, line 3: byte 0xe9 is not UTF-8, and such characters are lost; say ")
    assert "encoding: ISO-8859-1" in message


@pytest.mark.parametrize("content", [ROW.decode().encode("utf-16"), b"\xff" + ROW])
def test_other_encodings_are_told_too(folder: Path, content: bytes) -> None:
    assert warned(folder, content)[0].startswith("data/b.csv, line 1: byte 0xff ")


@pytest.mark.parametrize(
    ("content", "more", "name"),
    [
        (LATIN, "options: {encoding: ISO-8859-1}", "b.csv"),
        (LATIN, "options: {Charset: ISO-8859-1}", "b.csv"),
        (LATIN, "", "_b.csv"),
        (LATIN, "", "b.csv.gz"),
        (b"\xef\xbb\xbf" + ROW, "", "b.csv"),
        (b"", "", "b.csv"),
        (b"x" * ((1 << 16) - 1) + "é".encode(), "", "b.csv"),
    ],
)
def test_what_is_utf8_or_said_to_be_something_else_is_fine(folder: Path, content: bytes, more: str, name: str) -> None:
    assert warned(folder, content, more=more, name=name) == []


def test_a_name_that_is_not_utf8_is_told(folder: Path) -> None:
    (folder / "data" / os.fsdecode(b"gr\xf6\xdfe.csv")).write_bytes(ROW)
    text = changed("data/readings-*.csv", "data")
    (found,) = [one.message for one in spec.check(written(folder, text)).warnings if "UTF-8" in one.message]
    assert found == r"data/gr\udcf6\udcdfe.csv: its name is not UTF-8, and Java does not find such a file; rename it"


@pytest.mark.parametrize("name", ["b [1].csv", "b?.csv", "b{1}.csv", "b\\1.csv"])
def test_a_name_like_a_pattern_beside_others_is_told(folder: Path, name: str) -> None:
    (folder / "data" / "a.csv").write_bytes(ROW)
    (folder / "data" / name).write_bytes(ROW)
    text = changed("data/readings-*.csv", "data")
    (found,) = [one.message for one in spec.check(written(folder, text)).warnings if "twice" in one.message]
    assert found.startswith(f"data/{name}: `")
    assert found.endswith("in a name makes Spark read files beside it twice; rename it")


def test_one_file_alone_may_have_any_name(folder: Path) -> None:
    for file in (folder / "data").iterdir():
        file.unlink()
    (folder / "data" / "b [1].csv").write_bytes(ROW)
    for path in ("data", "data/b [1].csv"):
        report = spec.check(written(folder, changed("data/readings-*.csv", path)))
        assert report.ok
        assert not [one for one in report.warnings if "twice" in one.message]


def test_files_that_spark_passes_over_in_a_folder_are_told(folder: Path) -> None:
    for path in ("data/monday/a.csv", "data/day=2/b.csv", "data/.kept/c.csv", "data/empty/d.txt", "data/_e.csv"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(ROW)
    found = [one.message for one in spec.check(written(folder, changed("data/readings-*.csv", "data"))).warnings]
    assert [message for message in found if "not read" in message] == [
        "files in `monday` within it are not read; `options: {recursiveFileLookup: true}` reads them",
        "`_e.csv` is not read: Spark passes over names that begin with `_`",
    ]
    deep = changed("data/readings-*.csv", "data").replace(
        "format: csv", "format: csv\n    options: {recursiveFileLookup: true}"
    )
    assert not [one for one in spec.check(written(folder, deep)).warnings if "within it" in one.message]


@pytest.mark.parametrize(
    ("header", "sep", "says"),
    [
        ("ts,kwh,meter", ",", "data/b.csv: `kwh` is column 2 of the file and 3 of the schema; Spark goes by places"),
        ('"TS";"extra";"Meter"', ";", "data/b.csv: `meter` is column 3 of the file and 2 of the schema"),
        ("ts,meter,kwh", ",", ""),
        ("\ufeffTs, meter ,KWH", ",", ""),
        ("time,who,how_much", ",", ""),  # other names for the same
        ("", ",", ""),
    ],
)
def test_a_header_in_another_order_than_the_schema_is_told(folder: Path, header: str, sep: str, says: str) -> None:
    (folder / "data" / "b.csv").write_text(header + "\n")
    options = f"format: csv\n    options: {{header: true, sep: '{sep}'}}"
    text = changed("data/readings-*.csv", "data/b.csv").replace("format: csv", options)
    found = [one.message for one in spec.check(written(folder, text)).warnings if "by places" in one.message]
    assert bool(found) == bool(says)
    assert not found or found[0].startswith(says)
