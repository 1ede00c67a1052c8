"""What becomes of a sink whose record, results on their way, or delivered results were changed while nobody ran."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest

import weft.spec
from tests.bodies.live.test_resuming import FILE, begin, everything, refused, results, resuming
from weft.bodies.live import journal
from weft.bodies.live.resuming import Resuming
from weft.bodies.live.state import State
from weft.model import Placement
from weft.plan.changing.fragments import cut
from weft.plan.changing.running_plan import RunningPlan
from weft.spark.channels.manifest import Manifest
from weft.spark.fragments.outputs import claims_of
from weft.spark.sinks import ownership
from weft.spark.sinks.delivery import SinkLog, SinkWriter
from weft.spark.storage.disk import Damaged

UPDATE = FILE.replace("path: out}", "path: out, mode: update, key: [v]}")


def with_plan(made: Resuming) -> Resuming:
    """The same with a plan in force, so that all is looked at when it goes on."""
    placement = Placement({"q.o": "a"})
    fragments = cut(made.deployment, placement, lambda *_: False, lambda *_: True)
    made.state.write("flows.json", {"starts": []})
    journal.write(made.state, RunningPlan(0, made.deployment, placement, fragments), {}, {})
    return made


def sink_of(made: Resuming) -> SinkLog:
    [claim] = claims_of(made.deployment, made.state.folders)
    assert isinstance(claim.log, SinkLog)
    return claim.log


def left_waiting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was killed between a commit and its delivery; the file on its way."""
    made = with_plan(begin(folder))
    with monkeypatch.context() as patched:
        patched.setattr(SinkWriter, "_deliver", lambda *_: None)
        writer = SinkWriter(sink_of(made), 1, "q.o/9")
        writer.folder().mkdir(parents=True)
        (writer.folder() / "x.csv").write_text("waiting\n")
        writer.commit(Manifest(2, 1, "q.o/9", 2, rows=1, rows_total=3, files=("x.csv",)))
    return writer.log.data / "0000000002-1" / "x.csv"


@pytest.mark.parametrize("harm", ["emptied", "garbled", "cut", "removed", "a folder"])
def test_a_batch_on_its_way_that_was_harmed_meanwhile_is_refused_by_its_name(
    tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left_waiting(tmp_path, monkeypatch)
    if harm in ("removed", "a folder"):
        path.unlink()
        if harm == "a folder":
            path.mkdir()
    else:
        path.write_text({"emptied": "", "garbled": "waitinh\n", "cut": "wait"}[harm])
    refused(tmp_path, rf"{path}: .*it was committed and not delivered yet")
    before = everything(tmp_path / "out")
    with pytest.raises(Damaged, match=str(path)):  # one that was harmed later than that is not delivered either
        SinkWriter(sink_of(resuming(tmp_path)), 2, "q.o/0")
    assert everything(tmp_path / "out") == before


@pytest.mark.parametrize("gone", ["data", "data/0000000002-1"])
def test_a_batch_on_its_way_that_is_gone_is_refused_by_its_name(
    tmp_path: Path, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = left_waiting(tmp_path, monkeypatch).parent
    shutil.rmtree(tmp_path / ".out.weft" / gone)
    refused(tmp_path, rf"{folder}: is gone, though what it held was committed and not delivered yet")


def test_a_note_of_what_was_delivered_that_a_power_cut_took_is_no_hindrance(tmp_path: Path) -> None:
    log = sink_of(begin(tmp_path, batches=1))
    note = log.folder / "delivered"
    before = note.read_bytes()
    writer = SinkWriter(log, 1, "q.o/9")
    writer.folder().mkdir(parents=True)
    (writer.folder() / "x.csv").write_text("1\n")
    writer.commit(Manifest(1, 1, "q.o/9", 1, rows=1, rows_total=2, files=("x.csv",)))
    for content in (before, b"", None):
        if content is None:
            note.unlink()
        else:
            note.write_bytes(content)
        log.inspect(None)
        SinkWriter(log, 2, "q.o/9")


def test_a_batch_on_its_way_is_delivered_when_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_waiting(tmp_path, monkeypatch)
    begin(tmp_path, batches=0)
    assert results(tmp_path) == ["0\n", "1\n", "waiting\n"]


def test_a_batch_that_who_was_overtaken_delivers_between_a_look_and_its_delivery_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left_waiting(tmp_path, monkeypatch)
    look = SinkLog.check_waiting

    def overtaken(log: SinkLog, manifest: Manifest) -> None:
        look(log, manifest)
        os.link(path, tmp_path / "out" / "part-0000000002-0.csv")
        shutil.rmtree(path.parent)

    monkeypatch.setattr(SinkLog, "check_waiting", overtaken)
    SinkWriter(sink_of(resuming(tmp_path)), 2, "q.o/0")
    assert results(tmp_path) == ["0\n", "1\n", "waiting\n"]


def test_an_older_record_of_a_sink_is_refused_and_its_list_of_results_stays(tmp_path: Path) -> None:
    begin(tmp_path)
    owner = tmp_path / ".out.weft" / "owner.json"
    earlier = owner.read_bytes()
    made = resuming(tmp_path)
    made.look(True)
    made.start_over()
    with_plan(begin(tmp_path))
    owner.write_bytes(earlier)  # somebody brought it back from a copy
    for fresh in (False, True):
        refused(tmp_path, r"owner\.json: is of another time than what lies beside it", fresh)


@pytest.mark.parametrize("listed", [True, False])
def test_a_folder_of_a_sink_from_a_copy_of_an_earlier_run_is_refused(tmp_path: Path, listed: bool) -> None:
    begin(tmp_path)
    if not listed:
        shutil.rmtree(tmp_path / ".out.weft" / "manifests")
    shutil.copytree(tmp_path / ".out.weft", tmp_path / "earlier")
    if not listed:
        shutil.rmtree(tmp_path / ".out.weft")
        shutil.rmtree(tmp_path / "out")
    made = resuming(tmp_path)
    made.look(True)
    made.start_over()
    with_plan(begin(tmp_path))
    shutil.rmtree(tmp_path / ".out.weft")
    (tmp_path / "earlier").rename(tmp_path / ".out.weft")
    refused(tmp_path, r"owner\.json: is of another run \(\w+\), though this one gave 2 batches there")


def test_a_file_of_the_users_with_the_name_size_and_age_of_a_result_is_not_removed(tmp_path: Path) -> None:
    begin(tmp_path)
    mine = tmp_path / "out" / "part-0000000001-0.csv"
    for link in (False, True):
        mine.unlink()
        if link:
            (tmp_path / "mine").write_text("1\n")
            mine.symlink_to(tmp_path / "mine")
        else:
            mine.write_text("7\n")
            os.utime(mine, (1, 1))
        refused(tmp_path, r"part-0000000001-0\.csv is not as this run wrote it; move it away", fresh=True)


def settled(folder: Path, harm: str | None) -> SinkWriter:
    """A sink in update mode with two batches and the last values, which take their place."""
    made = begin(folder)
    log = sink_of(made)
    result = folder / "out" / "part-0000000000-0.csv"
    if harm == "changed":
        result.write_text("9\n")
        os.utime(result, (1, 1))
    if harm == "longer":
        result.write_text("a file of the user's\n")
    if harm == "a folder":
        result.unlink()
        result.mkdir()
    writer = SinkWriter(log, 2, "settle")
    writer.folder().mkdir(parents=True)
    (writer.folder() / "x.csv").write_text("last\n")
    writer.commit(Manifest(2, 2, "settle", 2, rows=1, rows_total=3, files=("x.csv",), end=True, replaces=True))
    return writer


def test_last_values_take_the_place_of_results_that_are_as_they_were_written(tmp_path: Path) -> None:
    settled(tmp_path, None)
    assert results(tmp_path) == ["last\n"]


@pytest.mark.parametrize("harm", ["changed", "longer", "a folder"])
def test_last_values_do_not_take_the_place_of_a_file_of_the_users(tmp_path: Path, harm: str) -> None:
    with pytest.raises(Damaged, match=r"part-0000000000-0\.csv: is not as this run wrote it, .*; move it away"):
        settled(tmp_path, harm)
    mine = tmp_path / "out" / "part-0000000000-0.csv"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [mine.name, "part-0000000001-0.csv"]
    mine.rename(tmp_path / "mine")
    SinkWriter(sink_of(resuming(tmp_path)), 3, "settle")
    assert results(tmp_path) == ["last\n"]
    assert (tmp_path / "mine").exists()


@pytest.mark.parametrize("harm", ["removed", "garbled"])
def test_changes_kept_for_the_last_values_are_looked_at_when_a_run_goes_on(tmp_path: Path, harm: str) -> None:
    (tmp_path / "d.yaml").write_text(UPDATE)
    made = Resuming(State(tmp_path / "state"), weft.spec.load(tmp_path / "d.yaml"), {"it": "is"})
    made.open()
    with_plan(made)
    log = sink_of(made)
    kept = log.folder / "changes" / "0000000000" / "part-0.parquet"
    kept.parent.mkdir(parents=True)
    kept.write_text("changed rows")
    writer = SinkWriter(log, 1, "q.o/9")
    writer.folder().mkdir(parents=True)
    (writer.folder() / "x.csv").write_text("1\n")
    manifest = writer.commit(Manifest(0, 1, "q.o/9", 0, rows=1, rows_total=1, files=("x.csv",)))
    assert list(manifest.aside) == ["part-0.parquet"]
    if harm == "removed":
        kept.unlink()
    else:
        kept.write_text("changed rowz")
    again = Resuming(State(tmp_path / "state"), made.deployment, {"it": "is"})
    with pytest.raises(Damaged, match=rf"{kept}: .*the last values are still to be taken from it"):
        again.open()


def test_an_owner_who_wrote_nothing_yet_is_told_from_one_whose_record_is_older(tmp_path: Path) -> None:
    made = begin(tmp_path, batches=0)
    owner = msgspec.json.decode((tmp_path / ".out.weft" / "owner.json").read_bytes())["content"]
    assert owner["run"] == made.state.folders.run
    shutil.rmtree(tmp_path / "state")
    assert begin(tmp_path, batches=1).notes != []
    assert ownership.holds(tmp_path / "state", resuming(tmp_path).state.record().run)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["a link to nothing", "a link to a file", "a folder", "a file"])
def test_what_others_put_under_the_name_of_a_result_that_comes_is_refused_by_its_name(
    tmp_path: Path, kind: str
) -> None:
    begin(tmp_path, batches=1)
    taken = tmp_path / "out" / "part-0000000001-0.csv"
    (tmp_path / "mine").write_text("1\n")
    if kind == "a folder":
        taken.mkdir()
    elif kind == "a file":
        taken.write_text("precious")
    else:
        taken.symlink_to(tmp_path / ("nowhere" if kind == "a link to nothing" else "mine"))
    with pytest.raises(Damaged, match=rf"{taken}: is there already, and this run did not write it; move it away"):
        begin(tmp_path, batches=1)
    taken.rename(tmp_path / "moved")
    assert results(tmp_path) == ["0\n"]
    SinkWriter(sink_of(resuming(tmp_path)), 2, "q.o/0")
    assert results(tmp_path) == ["0\n", "1\n"]


@pytest.mark.parametrize("harm", ["garbled", "emptied", "cut"])
def test_a_harmed_record_of_a_sink_is_refused_with_a_remedy_that_helps(tmp_path: Path, harm: str) -> None:
    begin(tmp_path)
    owner = tmp_path / ".out.weft" / "owner.json"
    content = owner.read_bytes()
    owner.write_bytes({"garbled": content.replace(b"csv", b"csw"), "emptied": b"", "cut": content[:40]}[harm])
    for fresh in (False, True):
        refused(tmp_path, rf"{owner}: is .*; bring it back from a copy, or move .*out and .*\.out\.weft away", fresh)
    for path in (tmp_path / "out", tmp_path / ".out.weft"):
        path.rename(tmp_path / f"moved{path.name}")
    made = resuming(tmp_path)
    made.look(True)
    made.start_over()
    made.open()


def test_results_whose_list_was_harmed_are_told_of_before_anything_is_removed(tmp_path: Path) -> None:
    begin(tmp_path)
    manifest = tmp_path / ".out.weft" / "manifests" / "0000000000"
    manifest.write_bytes(manifest.read_bytes()[:20])
    refused(tmp_path, r"part-0000000000-0\.csv has the name of a result, and .* does not list it", fresh=True)


def test_a_hidden_folder_that_is_a_link_is_started_over_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / ".out.weft").symlink_to("disk")
    begin(tmp_path)
    made = resuming(tmp_path)
    made.look(True)
    made.start_over()
    assert (results(tmp_path), list((tmp_path / "disk").iterdir())) == ([], [])
    begin(tmp_path)
    assert results(tmp_path) == ["0\n", "1\n"]
