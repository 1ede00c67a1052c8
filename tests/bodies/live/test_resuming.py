"""Whose state and whose results: what a run may go on with, what it refuses, and what starting over removes."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

import weft.spec
from weft.bodies.live.identity import identity
from weft.bodies.live.resuming import Resuming, done_again, note_closing
from weft.bodies.live.state import CannotRun, State, state_folder
from weft.spark.channels.manifest import Manifest
from weft.spark.fragments.outputs import claims_of
from weft.spark.sinks import ownership
from weft.spark.sinks.delivery import SinkLog, SinkWriter
from weft.spark.storage.disk import Damaged

FILE = """
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: rate, schema: "v BIGINT", arrivals: {kind: constant, rate_per_s: 1}}]
queries:
  - {name: q, operators: [{name: o, from: [s], sql: "SELECT v FROM s"}], sink: {from: o, format: csv, path: out}}
"""


def resuming(folder: Path, state: str = "state", text: str = FILE) -> Resuming:
    """A run's way into a state, in a folder with its file."""
    (folder / "d.yaml").write_text(text)
    return Resuming(State(folder / state), weft.spec.load(folder / "d.yaml"), {"it": "is"})


def begin(folder: Path, state: str = "state", batches: int = 2) -> Resuming:
    """A run that has begun, or goes on, and given its sink so many batches more."""
    made = resuming(folder, state)
    made.look(False)
    made.open()
    [claim] = claims_of(made.deployment, made.state.folders)
    assert isinstance(claim.log, SinkLog)
    writer = SinkWriter(claim.log, 1, "q.o/0")
    for _ in range(batches):
        writer.folder().mkdir(parents=True)
        (writer.folder() / "x.csv").write_text(f"{writer.segment}\n")
        at = writer.segment
        writer.commit(Manifest(at, 1, "q.o/0", at, rows=1, rows_total=at + 1, files=("x.csv",)))
    return made


def results(folder: Path) -> list[str]:
    return sorted(path.read_text() for path in (folder / "out").glob("*.csv"))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(folder: Path, says: str, fresh: bool = False, state: str = "state") -> None:
    """Refused with these words, before anything was written or removed."""
    made = resuming(folder, state)
    before = everything(folder)

    def attempt() -> None:
        made.look(fresh)
        made.open()

    with pytest.raises((CannotRun, Damaged), match=says):
        attempt()
    assert everything(folder) == before


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("state", [".", "mine", "out"])
def test_a_folder_that_is_no_state_folder_is_refused_and_nothing_in_it_is_touched(
    tmp_path: Path, state: str, fresh: bool
) -> None:
    for name in ("thesis.tex", "mine/thesis.tex", "mine/sub/data.csv", "out/old.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("three years")
    refused(tmp_path, "is no state folder of Weft: it holds .*Nothing was touched", fresh, state)


def test_starting_over_removes_what_was_written_by_its_own_list_and_nothing_else(tmp_path: Path) -> None:
    begin(tmp_path)
    others: tuple[str, ...] = ("part-00000-aaaa-c000.csv", "NOTES.txt", "old.csv", ".hidden")
    for name in others:
        (tmp_path / "out" / name).write_text("precious")
    (tmp_path / "state" / "notes.txt").write_text("precious")
    mine = tmp_path / "out" / "part-0000000001-0.csv"
    mine.write_text("a longer file of mine under that name")
    refused(tmp_path, "part-0000000001-0.csv is not as this run wrote it; move it away", fresh=True)
    mine.write_text("7\n")  # as long as what was written
    refused(tmp_path, "part-0000000001-0.csv is not as this run wrote it; move it away", fresh=True)
    os.utime(tmp_path / "out" / "part-0000000000-0.csv")  # touched, as a copy is, and the same
    mine.rename(tmp_path / "out" / "mine.txt")
    others = (*others, "mine.txt")
    mine = tmp_path / "out" / "part-0000000077-0.csv"
    mine.write_text("precious")
    refused(tmp_path, "part-0000000077-0.csv has the name of a result, and .* does not list it", fresh=True)
    mine.unlink()
    made = resuming(tmp_path)
    assert [line.partition(": ")[2] for line in made.removal().lines()] == ["1 result files", "the state of the run"]
    made.look(True)
    made.start_over()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(others)
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["notes.txt"]
    assert not (tmp_path / ".out.weft").exists()


def test_a_sink_that_another_run_goes_on_with_is_refused_with_and_without_fresh(tmp_path: Path) -> None:
    begin(tmp_path)
    for fresh in (False, True):
        refused(tmp_path, "out holds results of another run, whose state is .*/state;", fresh, "other")
    begin(tmp_path, batches=1)
    assert results(tmp_path) == ["0\n", "1\n", "2\n"]


def test_a_sink_is_the_same_by_whatever_name_its_folder_is_reached(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    begin(tmp_path, "one", batches=0)  # nothing that could be seen was given yet
    for spelled in ("real", "./real/", "in/../real", "other"):
        (tmp_path / "other").unlink(missing_ok=True)
        (tmp_path / "other").symlink_to(tmp_path / "out")
        made = resuming(tmp_path, "two", FILE.replace("path: out", f"path: {spelled}"))
        with pytest.raises(CannotRun, match=r"real holds results of another run, whose state is .*one"):
            made.look(False)


def test_a_link_that_leads_elsewhere_now_is_another_sink_and_refused(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("first")  # which is yet to be made
    begin(tmp_path)
    assert len(list((tmp_path / "first").glob("*.csv"))) == 2
    (tmp_path / "out").unlink()
    (tmp_path / "second").mkdir()
    (tmp_path / "out").symlink_to("second")
    refused(tmp_path, r"\.second\.weft/owner\.json: is gone, though .*second was given 2 batches by this run")


def test_a_record_that_an_earlier_version_left_beside_a_link_is_gone_on_with(tmp_path: Path) -> None:
    begin(tmp_path)
    (tmp_path / "out").rename(tmp_path / "real")
    (tmp_path / "out").symlink_to("real")
    begin(tmp_path, batches=1)
    assert len(results(tmp_path)) == 3
    assert not (tmp_path / ".real.weft").exists()


def test_results_of_a_run_whose_state_is_gone_are_refused_until_fresh(tmp_path: Path) -> None:
    begin(tmp_path)
    shutil.rmtree(tmp_path / "state")
    refused(tmp_path, r"out holds results of another run \(2 files.*--fresh removes them, or choose another folder")
    made = resuming(tmp_path)
    made.look(True)
    made.start_over()
    assert results(tmp_path) == []
    begin(tmp_path)
    assert results(tmp_path) == ["0\n", "1\n"]


def test_where_state_and_results_are_gone_a_hidden_record_is_no_hindrance(tmp_path: Path) -> None:
    begin(tmp_path)
    shutil.rmtree(tmp_path / "state")
    shutil.rmtree(tmp_path / "out")
    assert any("whose results are gone" in note for note in begin(tmp_path).notes)
    assert results(tmp_path) == ["0\n", "1\n"]


def test_results_that_were_taken_away_are_told_of_and_a_finished_run_says_so(tmp_path: Path) -> None:
    made = begin(tmp_path)
    shutil.rmtree(tmp_path / "out")
    assert any("all results that were delivered before are gone" in note for note in begin(tmp_path, batches=1).notes)
    assert results(tmp_path) == ["2\n"]
    made.state.write("finished.json", {"files": {}, "summary": {}})
    shutil.rmtree(tmp_path / "out")
    refused(tmp_path, "the results of the finished run are gone; use --fresh to run it again")


def test_results_that_no_record_tells_of_are_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-0000000000-0.csv").write_text("precious")
    for fresh in (False, True):
        refused(tmp_path, "out/part-0000000000-0.csv is a result of a run that left no record", fresh)


def test_a_record_beside_a_sink_that_has_gone_is_refused_and_names_the_way_out(tmp_path: Path) -> None:
    begin(tmp_path)
    os.rename(tmp_path / ".out.weft", tmp_path / "kept")
    refused(tmp_path, r"\.out\.weft/owner.json: is gone, though .*/out was given 2 batches by this run; .*--fresh")
    refused(tmp_path, "move it away, or choose another folder", fresh=True)
    os.rename(tmp_path / "out", tmp_path / "moved")
    made = resuming(tmp_path)
    made.look(True)
    made.start_over()
    begin(tmp_path)
    assert results(tmp_path) == ["0\n", "1\n"]


def test_other_files_in_a_new_sinks_folder_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000-aaaa-c000.csv").write_text("precious")
    assert any("part-00000-aaaa-c000.csv); they stay as they are" in note for note in begin(tmp_path).notes)
    assert (tmp_path / "out" / "part-00000-aaaa-c000.csv").read_text() == "precious"


def test_a_copy_of_a_state_is_refused_while_the_first_is_there_and_goes_on_when_it_is_gone(tmp_path: Path) -> None:
    begin(tmp_path)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    refused(tmp_path, "holds the same run, and this state is a copy of it", state="copy")
    shutil.rmtree(tmp_path / "state")
    begin(tmp_path, "copy", batches=1)
    assert results(tmp_path) == ["0\n", "1\n", "2\n"]


def test_a_run_that_is_copied_whole_goes_on_in_both_places(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    begin(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for folder in (tmp_path / "two", tmp_path / "one", tmp_path / "two"):
        begin(folder, batches=1)
    assert (results(tmp_path / "one"), len(results(tmp_path / "two"))) == (["0\n", "1\n", "2\n"], 4)


def test_starting_over_in_a_copy_leaves_the_results_of_the_first_place_alone(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    begin(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for gone in (None, tmp_path / "one" / "state"):
        if gone is not None:
            shutil.rmtree(gone)
        made = resuming(tmp_path / "two")
        made.look(True)
        made.start_over()
        assert results(tmp_path / "one") == ["0\n", "1\n"]
        assert results(tmp_path / "two") == []
        begin(tmp_path / "two")


def test_a_state_of_an_earlier_time_is_refused(tmp_path: Path) -> None:
    begin(tmp_path)
    shutil.copytree(tmp_path / ".out.weft", tmp_path / "earlier")
    begin(tmp_path, batches=1)
    shutil.rmtree(tmp_path / ".out.weft")
    os.rename(tmp_path / "earlier", tmp_path / ".out.weft")
    with pytest.raises(Damaged, match=r"manifests/0000000002: is gone, though it was committed"):
        begin(tmp_path, batches=1)


def test_files_that_lie_elsewhere_now_are_refused(tmp_path: Path) -> None:
    made = resuming(tmp_path)
    made.open()
    record = made.state.record()
    assert record is not None
    moved = resuming(tmp_path)
    moved._sources = lambda: {"s": "/new/in"}  # type: ignore[method-assign]
    with pytest.raises(CannotRun, match=r"its files were in /old/in, are in /new/in"):
        moved._compare(type(record)(**{**{f: getattr(record, f) for f in record.__struct_fields__},
                                       "sources": {"s": "/old/in"}}))  # fmt: skip


def test_starting_over_that_was_cut_off_is_to_be_said_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(tmp_path)
    made = resuming(tmp_path)

    def cut(claim: object, owner: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ownership, "clear", cut)
    with pytest.raises(KeyboardInterrupt):
        made.start_over()
    monkeypatch.undo()
    refused(tmp_path, "an earlier --fresh was cut off half way; use --fresh again")
    again = resuming(tmp_path)
    again.look(True)
    again.start_over()
    assert (results(tmp_path), everything(tmp_path / "state")) == ([], {})


def test_what_was_not_over_when_a_run_ended_is_told_in_one_line_that_alarms_nobody(tmp_path: Path) -> None:
    left = [tmp_path / "fragments" / "q.o" / "checkpoint-0" / "commits" / str(at) for at in range(5)]
    line = done_again(tmp_path, left)
    assert line.startswith("what was not over when the run ended is done again, and counts once (fragments/q.o/ch")
    assert line.endswith("commits/2 and 2 more)")


def test_of_two_that_claim_a_sink_at_once_one_is_refused(tmp_path: Path) -> None:
    first, second = resuming(tmp_path, "one"), resuming(tmp_path, "two")
    for made in (first, second):
        made.look(False)
    standings = second.standings(None)
    first.open()
    record = second.state.begin({}, {}, {})
    second.state.is_of(record)
    with pytest.raises(Damaged, match="was made by another run at the same moment"):
        second.claim(record, standings)
    assert begin(tmp_path, "one").state.path == tmp_path / "one"


def test_each_file_has_a_state_of_its_own_named_after_it(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(FILE)
    assert state_folder(tmp_path / "a.yaml", None) == tmp_path / ".weft" / "a.yaml"
    assert state_folder(tmp_path / "b.yaml", None) == tmp_path / ".weft" / "b.yaml"
    (tmp_path / "b.yaml").write_text(FILE + "store: {path: elsewhere, fsync: false}\n")
    assert state_folder(tmp_path / "b.yaml", None) == tmp_path / "elsewhere" / "b.yaml"
    assert state_folder(tmp_path / "b.yaml", tmp_path / "here") == tmp_path / "here"
    assert state_folder(tmp_path / "gone.yaml", None) == tmp_path / ".weft" / "gone.yaml"


def with_file(folder: Path, text: str) -> Resuming:
    """A run's way into a state, with another file."""
    (folder / "d.yaml").write_text(text)
    deployment = weft.spec.load(folder / "d.yaml")
    return Resuming(State(folder / "state"), deployment, identity(deployment))


def opened(folder: Path, text: str) -> list[str]:
    made = with_file(folder, text)
    made.look(False)
    made.open()
    return made.notes


SECOND = """
  - {name: p, operators: [{name: o, from: [s], sql: "SELECT v FROM s"}], sink: {from: o, format: csv, path: out2}}
"""


def test_a_state_goes_on_with_a_file_whose_queries_come_and_go(tmp_path: Path) -> None:
    assert opened(tmp_path, FILE) == []
    told = opened(tmp_path, FILE + SECOND.lstrip("\n"))
    assert [line for line in told if "the file has changed" in line] == [
        "the file has changed: operator p.o is new", "the file has changed: sink of p is new",
    ]  # fmt: skip
    assert opened(tmp_path, FILE.replace("{name: a}", "{name: a, capacity: 3}") + SECOND.lstrip("\n")) == []
    assert opened(tmp_path, FILE)[0] == "the file has changed: operator p.o is gone"
    record = State(tmp_path / "state").record()
    assert record is not None
    assert set(record.sinks) == {"q", "p"}, "what it wrote there is still its own, to be removed when it starts over"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("SELECT v FROM s", "SELECT v + 1 AS v FROM s", "operator q.o: sql was 'SELECT v FROM s', is"),
        ("v BIGINT", "v INT", "source s: schema was"),
        ("path: out", "path: elsewhere", "sink of q"),
    ],
)
def test_what_cannot_be_gone_on_with_is_refused_with_the_difference(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    opened(tmp_path, FILE)
    with pytest.raises(CannotRun, match=says):
        opened(tmp_path, FILE.replace(old, new, 1))


RATE = 'format: rate, schema: "v BIGINT", arrivals: {kind: constant, rate_per_s: 1}'
CSV = FILE.replace(RATE, 'format: csv, path: in, schema: "v BIGINT"')


@pytest.mark.parametrize("policy", ["skip", "keep"])
def test_a_run_that_failed_at_a_bad_record_goes_on_with_the_policy_that_it_was_told_of(
    tmp_path: Path, policy: str
) -> None:
    (tmp_path / "in").mkdir()
    opened(tmp_path, CSV)
    lenient = CSV.replace("path: in,", f"path: in, bad_records: {policy},")
    assert opened(tmp_path, lenient) == [f"the file has changed: source s: bad_records was None, is '{policy}'"]
    assert opened(tmp_path, lenient) == []
    with pytest.raises(CannotRun, match="source s: bad_records was"):
        opened(tmp_path, CSV)  # what was taken may hold bad records


def test_files_that_come_when_windows_are_being_closed_are_refused_not_dropped(tmp_path: Path) -> None:
    rate = 'format: rate, schema: "v BIGINT", arrivals: {kind: constant, rate_per_s: 1}'
    files = FILE.replace(rate, 'format: csv, path: in, schema: "v BIGINT"')
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("1\n")
    opened(tmp_path, files)
    made = with_file(tmp_path, files)
    note_closing(made.state, made.deployment)
    assert opened(tmp_path, files) == []
    (tmp_path / "in" / "2.csv").write_text("2\n")
    with pytest.raises(CannotRun, match="closed every window, and the sources hold other files now"):
        opened(tmp_path, files)
    note_closing(made.state, made.deployment)  # what is known of the first time stays
    with pytest.raises(CannotRun, match="the sources hold other files now"):
        opened(tmp_path, files)


@pytest.mark.parametrize(
    ("path", "more"),
    [("in", "in/2026/11/2.csv"), ("in", "in/k=1/2.csv"), ("in/{1,2}.csv", "in/2.csv"), ("in/*", "in/a/b/2.csv")],
)
def test_files_that_come_deep_within_a_source_are_noticed(tmp_path: Path, path: str, more: str) -> None:
    rate = 'format: rate, schema: "v BIGINT", arrivals: {kind: constant, rate_per_s: 1}'
    files = FILE.replace(rate, f'format: csv, path: "{path}", schema: "v BIGINT"')
    (tmp_path / more).parent.mkdir(parents=True)
    (tmp_path / "in" / "1.csv").write_text("1\n")
    if path != "in/*":  # there check names it
        (tmp_path / "in" / "nowhere.csv").symlink_to(tmp_path / "gone")
    (tmp_path / "in" / os.fsdecode(b"\xff.csv")).write_text("1\n")
    opened(tmp_path, files)
    made = with_file(tmp_path, files)
    note_closing(made.state, made.deployment)
    (tmp_path / "in" / ".aside").write_text("1\n")
    assert opened(tmp_path, files) == []
    (tmp_path / more).write_text("2\n")
    with pytest.raises(CannotRun, match="the sources hold other files now"):
        opened(tmp_path, files)


def test_a_recording_is_whole_whatever_becomes_of_its_file_while_windows_are_being_closed(tmp_path: Path) -> None:
    rate = 'format: rate, schema: "v BIGINT", arrivals: {kind: constant, rate_per_s: 1}'
    files = FILE.replace(rate, 'format: replay, path: in.csv, schema: "v BIGINT"')
    (tmp_path / "in.csv").write_text("1\n")
    opened(tmp_path, files)
    made = with_file(tmp_path, files)
    note_closing(made.state, made.deployment)
    os.utime(tmp_path / "in.csv", (1, 1))
    assert opened(tmp_path, files) == []
    made.state.write("finished.json", {"summary": {}, "files": {}})
    with pytest.raises(CannotRun, match="the sources hold other files now"):
        opened(tmp_path, files)


def test_what_others_keep_under_the_name_of_the_lock_stays_as_it_is(tmp_path: Path) -> None:
    theirs = tmp_path / "notes"
    theirs.write_text("mine\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "lock").symlink_to(theirs)
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "lock").write_bytes(b"\xff mine")
    for name in ("linked", "held"):
        with pytest.raises(CannotRun, match=rf"{name}/lock .*away"):
            State(tmp_path / name).lock()
    assert theirs.read_text() == "mine\n"
    assert (tmp_path / "held" / "lock").read_bytes() == b"\xff mine"


def test_a_lock_tells_the_process_that_has_it_and_not_those_before(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("12345678901")
    state = State(tmp_path)
    for _ in range(2):
        state.lock()
        assert (tmp_path / "lock").read_text() == str(os.getpid())
        with pytest.raises(CannotRun, match=f"process {os.getpid()}"):
            State(tmp_path).lock()
        state.unlock()


def test_a_lock_that_cannot_be_written_names_the_state_and_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(number: int) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("weft.bodies.live.state.str", full, raising=False)
        with pytest.raises(CannotRun, match=f"no state can be kept in {tmp_path}: No space left on device; give"):
            State(tmp_path).lock()
    State(tmp_path).lock()
