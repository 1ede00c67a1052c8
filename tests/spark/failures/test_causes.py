"""Every failure is told in one sentence that names the file or the line, and what to do; no Spark is needed to tell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.spark.failures import error_texts as said
from weft.model import Column, Source
from weft.spark.failures import causes
from weft.spark.failures.causes import JAVA_GONE, LOG, Cause, cause_in, cause_of, keep

SCHEMA = (Column("id", "INT"), Column("v", "DOUBLE"))
HINT = "`bad_records: skip` on source r leaves such records out and counts them"


def told(folder: Path, text: str, format_: str = "csv", **options: str) -> Cause:
    source = Source("r", "a", format_, SCHEMA, "in", options)  # type: ignore[arg-type]
    return cause_in(text, str(folder), (source,))


def given(folder: Path, name: str, text: str) -> Path:
    file = folder / "in" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def test_a_bad_value_in_csv_is_told_with_file_line_column_and_the_way_out(tmp_path: Path) -> None:
    file = given(tmp_path, "x.csv", "1,1.5\n7,oops\n3,oops\n")
    found = told(tmp_path, said.in_a_batch(said.BAD_CSV.format(file=file, row="3,null", value="oops")))
    assert found == Cause(f"in/x.csv, line 3: column v: `oops` is no DOUBLE: 3,oops; {HINT}", True)


def test_a_header_that_was_not_declared_is_line_1_and_a_declared_one_is_no_record(tmp_path: Path) -> None:
    file = given(tmp_path, "x.csv", "id,v\n1,v\n")
    text = said.in_a_batch(said.BAD_CSV.format(file=file, row="null,null", value="v"))
    assert told(tmp_path, text).text.startswith(
        "in/x.csv, line 1: these are the names of the columns, no record (`options: {header: true}` says so): id,v;"
    )
    assert told(tmp_path, text, header="true").text.startswith("in/x.csv, line 2: column v: `v` is no DOUBLE: 1,v;")


def test_a_record_with_too_few_fields_is_told_with_how_many(tmp_path: Path) -> None:
    file = given(tmp_path, "x.csv", "1,1.5\n2\n")
    found = told(tmp_path, said.in_a_batch(said.SHORT_CSV.format(file=file)))
    assert found.text == f"in/x.csv, line 2: columns here 1, the schema has 2: 2; {HINT}"


def test_a_bad_value_in_json_and_a_line_that_is_no_json_are_told_with_their_lines(tmp_path: Path) -> None:
    file = given(tmp_path, "x.json", '{"id":1,"v":1.5}\n{"id":2,"v":\n{"id":3,"v":"oops"}\n')
    value = told(tmp_path, said.in_a_batch(said.BAD_JSON.format(file=file)), "json")
    assert value.text == f'in/x.json, line 3: column v: `oops` is no DOUBLE: {{"id":3,"v":"oops"}}; {HINT}'
    broken = told(tmp_path, said.in_a_batch(said.NO_JSON.format(file=file)), "json")
    assert broken.text == f'in/x.json, line 2: this is no JSON object on one line: {{"id":2,"v":; {HINT}'


def test_a_bad_value_in_json_that_spark_names_alone_is_found_in_its_line(tmp_path: Path) -> None:
    file = given(tmp_path, "x.json", '{"id":1,"v":1.5}\n{"id":2,"v":"oops"}\n')
    text = said.in_a_batch(said.BAD_CSV.format(file=file, row="2,null", value="oops"))
    assert told(tmp_path, text, "json").text.startswith("in/x.json, line 2: column v: `oops` is no DOUBLE: {")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"id":"q","v":2}', 'column id: `"q"` is no INT: {"id":"q","v":2}'),
        (b'{"id":1.5}', "column id: `1.5` is no INT:"),
        (b'{"id":2147483648}', "column id: `2147483648` is no INT:"),
        (b'{"v":true}', "column v: `true` is no DOUBLE:"),
        (b'{"v":"1.5"}', 'column v: `"1.5"` is no DOUBLE:'),
        (b'[{"id":1},{"id":[2]}]', "column id: `[2]` is no INT:"),
        (b"17", "this is no JSON object on one line: 17"),
        (b'{"id":2,"who":"caf\xe9"}', "this is not UTF-8:"),
    ],
)
def test_a_bad_value_in_json_of_which_spark_tells_nothing_is_found_in_its_line(
    tmp_path: Path, line: bytes, says: str
) -> None:
    file = given(tmp_path, "x.json", "")
    file.write_bytes(b'{"id":1,"v":1,"who":"q"}\n\n[{"id":2},{"v":"NaN"}]\n{"id":null}\n' + line + b'\n{"id":"z"}\n')
    found = told(tmp_path, said.in_a_batch(said.UNTOLD_JSON.format(file=file)), "json")
    assert found.text.startswith(f"in/x.json, line 5: {says}")
    assert found.text.endswith(HINT)


def test_a_long_record_is_cut_and_one_that_is_not_found_has_no_line(tmp_path: Path) -> None:
    file = given(tmp_path, "x.csv", f"3,{'o' * 200}\n")
    text = said.in_a_batch(said.BAD_CSV.format(file=file, row="3,null", value="o" * 200))
    assert max(len(part) for part in told(tmp_path, text).text.split(": ")) <= 130
    file.unlink()
    assert told(tmp_path, text).text.startswith("in/x.csv: `ooo")


def test_a_users_function_is_told_with_type_and_line_of_the_users_own_file(tmp_path: Path) -> None:
    worker = said.WORKER.format(folder=tmp_path, raised="KeyError: 'nope'")
    assert told(tmp_path, said.in_python(worker)) == Cause("KeyError: 'nope' (rules.py:7, in look)", True)
    cut = said.WORKER.format(folder=tmp_path, raised="requests.exceptions.ConnectionError: no route: to host")
    assert told(tmp_path, said.in_python(cut)) == Cause(
        "ConnectionError: no route: to host (rules.py:7, in look)", False
    )


def test_a_message_of_several_lines_gives_its_first(tmp_path: Path) -> None:
    worker = said.WORKER.format(folder=tmp_path, raised="ValueError: no third: way\nsecond line")
    assert told(tmp_path, said.in_python(worker)).text == "ValueError: no third: way (rules.py:7, in look)"


def test_sql_that_fails_at_run_time_is_told_without_sparks_names_and_with_the_place(tmp_path: Path) -> None:
    assert told(tmp_path, said.in_python(said.DIVISION)) == Cause(
        "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead (in `v / (id - id)`)",
        True,
    )


def test_our_own_word_of_damage_goes_through_a_worker_unchanged(tmp_path: Path) -> None:
    assert told(tmp_path, said.in_python(said.DAMAGED)) == Cause(
        "/state/streams/q.all/3: its checksum is another; `--fresh` starts over", True
    )


def test_a_full_disk_is_told_by_the_place_that_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = {str(tmp_path): 10**9, str(tmp_path / "full"): 0}
    (tmp_path / "full").mkdir()
    monkeypatch.setattr(causes, "_free_bytes", lambda path: room.get(path, 10**9))
    monkeypatch.setattr(os.path, "ismount", lambda path: path in (str(tmp_path / "full"), "/"))
    text = said.in_a_batch(said.FULL.format(folder=tmp_path / "out"))
    assert told(tmp_path, text) == Cause(
        f"No space left on device for {tmp_path}/out; free some space, and the same command goes on", True
    )
    found = cause_in(text, str(tmp_path), (), [str(tmp_path / "full" / "state")])
    assert found.text == (
        f"No space left on device: the disk at {tmp_path}/full is full, and {tmp_path}/full/state is on it; "
        "free some space, and the same command goes on"
    )


def test_python_without_room_or_permission_is_told_with_the_path(tmp_path: Path) -> None:
    full = cause_of(OSError(28, "No space left on device", str(tmp_path / "status.json")))
    assert str(tmp_path / "status.json") in full.text
    closed = cause_of(PermissionError(13, "Permission denied", str(tmp_path / "x")))
    assert closed.text.startswith(f"{tmp_path}/x cannot be written: permission denied")
    read_only = cause_of(OSError(30, "Read-only file system", str(tmp_path / "x")))
    assert "its disk is read-only" in read_only.text
    assert all(one.permanent for one in (full, closed, read_only))


def test_a_folder_that_cannot_be_made_is_told_with_what_stands_in_its_way(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    found = told(tmp_path, said.in_a_batch(said.NOT_MADE.format(folder=tmp_path / "out" / "deep")))
    assert found.text.startswith(f"{tmp_path}/out/deep cannot be made: {tmp_path}/out is a file")


def test_a_state_file_that_is_gone_or_cut_is_named(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint-0"
    delta = checkpoint / "state" / "0" / "1" / "2.delta"
    gone = told(tmp_path, said.in_a_batch(said.STATE_GONE.format(file=delta), str(checkpoint)))
    assert gone == Cause(f"{delta} is gone; put it back from a copy, or `--fresh` starts over", True)
    delta.parent.mkdir(parents=True)
    delta.write_bytes(b"LZ4Block")
    cut = told(tmp_path, said.in_a_batch(said.STATE_CUT, str(checkpoint)))
    assert cut.text == f"{delta} is damaged; put it back from a copy, or `--fresh` starts over"
    delta.unlink()
    assert told(tmp_path, said.in_a_batch(said.STATE_CUT, str(checkpoint))).text.startswith(
        f"{checkpoint} holds a damaged file"
    )


def test_a_broken_note_of_sparks_is_named(tmp_path: Path) -> None:
    note = tmp_path / "checkpoint-0" / "commits" / "0"
    note.parent.mkdir(parents=True)
    note.write_text("rubbish")
    assert told(tmp_path, said.COMMITS.format(file=note)).text.startswith(f"{note} is damaged;")


def test_a_worker_that_crashed_is_no_damaged_state(tmp_path: Path) -> None:
    found = told(tmp_path, said.in_a_batch(said.CRASHED))
    assert found == Cause("Python worker exited unexpectedly (crashed)", False)


def test_source_files_that_are_no_parquet_or_vanished_are_named(tmp_path: Path) -> None:
    file = given(tmp_path, "x.parquet", "no")
    text = said.in_a_batch(said.NO_PARQUET.format(file=file))
    assert told(tmp_path, text, "parquet").text.startswith("in/x.parquet of source r is no parquet file")
    gone = told(tmp_path, said.in_a_batch(said.VANISHED.format(file=tmp_path / "in" / "y.csv")))
    assert gone.text.startswith("in/y.csv of source r was there when it was listed, and is gone")


def test_a_packed_file_that_ends_in_the_midst_is_named(tmp_path: Path) -> None:
    file = given(tmp_path, "x.csv.gz", "")
    text = "in/x.csv.gz of source r is cut off: it ends in the midst; mend it, and the same command goes on"
    assert told(tmp_path, said.in_a_batch(said.CUT_OFF.format(file=file))) == Cause(text, True)
    other = said.CUT_OFF.format(file=file).replace(
        "EOFException: Unexpected end of input stream", "IOException: not now"
    )
    assert told(tmp_path, said.in_a_batch(other)).text == "in/x.csv.gz of source r: IOException: not now"


def test_a_message_as_long_as_a_page_is_cut(tmp_path: Path) -> None:
    worker = said.WORKER.format(folder=tmp_path, raised="ValueError: " + "so " * 1000)
    assert len(told(tmp_path, said.in_python(worker)).text) < 500


def test_memory_and_java_are_told_with_what_helps(tmp_path: Path) -> None:
    assert "WEFT_DRIVER_MEMORY" in told(tmp_path, said.in_a_batch(said.MEMORY)).text
    assert cause_in("py4j.protocol.Py4JNetworkError: Answer from Java side is empty").text == JAVA_GONE
    assert "Java 17" in cause_in("RuntimeError: [JAVA_GATEWAY_EXITED] Java gateway process exited").text


@pytest.mark.parametrize(
    "text",
    [
        said.EMPTY, said.in_a_batch(said.STATE_CUT), said.in_a_batch(said.CRASHED), "Py4JError",
        said.in_python("KeyError"), "Exception thrown in awaitResult: ",
    ],
)  # fmt: skip
def test_no_sentence_is_empty_or_only_says_that_something_was_called(tmp_path: Path, text: str) -> None:
    found = told(tmp_path, text).text
    assert found.strip(": ")
    assert "An error occurred while calling" not in found
    assert "awaitResult" not in found
    assert "\n" not in found


def test_the_innermost_cause_speaks_where_nothing_else_is_known(tmp_path: Path) -> None:
    assert told(tmp_path, said.EMPTY).text == "IllegalStateException: batch 3 was never planned"


def test_the_log_holds_the_whole_text_and_a_disk_that_takes_nothing_is_no_second_failure(tmp_path: Path) -> None:
    try:
        {}["nope"]  # type: ignore[index]
    except KeyError as error:
        keep(tmp_path / "logs", "q.py", Cause("why", True), error)
        (tmp_path / "taken").write_text("")
        keep(tmp_path / "taken" / "logs", "q.py", Cause("why", True), error)
    lines = (tmp_path / "logs" / LOG).read_text().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert os.path.basename(__file__) in lines[1]
    assert lines[-1].endswith("q.py: why")
