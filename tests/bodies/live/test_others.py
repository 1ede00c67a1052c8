"""What others have: their files under our names, their deployments, their rooms. None of it is taken or deleted."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

import weft.spec
from tests.bodies.live.test_resuming import FILE, begin, everything, refused, results, resuming
from weft.bodies.live.identity import identity
from weft.bodies.live.opening import Opening, Options
from weft.bodies.live.resuming import Resuming
from weft.bodies.live.state import FOLDERS, OURS, CannotRun, State
from weft.spark.storage.disk import Damaged, Disk


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("names", [
    ("logs/app.log",), ("logs/spark.log", "lock", "keys/mine.pem"), ("temporary",), ("streams/q/film.mp4",),
    ("story.log", "status.json"), ("late/homework.txt", "agents/a.lock"),
])  # fmt: skip
def test_a_folder_of_others_is_refused_though_all_names_in_it_are_like_ours(
    tmp_path: Path, names: tuple[str, ...], fresh: bool
) -> None:
    for name in names:
        (tmp_path / "state" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "state" / name).write_text("three years")
    refused(tmp_path, r"run\.json is gone, was never there, .*Nothing was touched", fresh)


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("content", ['{"run": "experiment 7"}', "", '{"crc32":"00000000","content":{"run":"x"}}'])
def test_a_record_that_is_not_ours_is_no_leave_to_delete(tmp_path: Path, content: str, fresh: bool) -> None:
    for name, text in {"run.json": content, "logs/app.log": "three years", "plan.json": "mine"}.items():
        (tmp_path / "state" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "state" / name).write_text(text)
    refused(tmp_path, r"run\.json: is .*; bring it back from a copy, or move .*state away", fresh)


def test_starting_over_leaves_files_that_others_put_into_the_rooms_of_a_state(tmp_path: Path) -> None:
    begin(tmp_path)
    state = tmp_path / "state"
    others = ("logs/notes.txt", "streams/thesis.tex", "fragments/.hidden", "late/a.parquet", "keep.csv")
    for name in others:
        (state / name).parent.mkdir(exist_ok=True)
        (state / name).write_text("precious")
    (state / "logs" / "spark.log").write_text("ours")
    (state / "streams" / "q.o").mkdir()
    made = resuming(tmp_path)
    made.look(True)
    made.start_over()
    assert set(everything(state)) == {str(state / name) for name in others}
    assert not (state / "streams" / "q.o").exists()


def of_file(folder: Path, name: str, state: Path, text: str = FILE) -> Resuming:
    """A file's way into a state."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text)
    deployment = weft.spec.load(file)
    return Resuming(State(state), deployment, identity(deployment), file)


def run(made: Resuming, fresh: bool = False) -> None:
    made.look(fresh)
    if fresh:
        made.start_over()
    made.open()


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("other", ["two/a.yaml", "one/b.yaml", "two/b.yaml"])
def test_two_files_do_not_share_a_state(tmp_path: Path, other: str, fresh: bool) -> None:
    state = tmp_path / "state"
    run(of_file(tmp_path / "one", "a.yaml", state))
    folder, name = other.split("/")
    for text in (FILE, FILE.replace("name: q", "name: p").replace("path: out", "path: out2")):
        made = of_file(tmp_path / folder, name, state, text)
        before = everything(tmp_path)
        with pytest.raises(CannotRun, match=rf"state is the state of .*one/a\.yaml, and this is .*{other}: nothing"):
            run(made, fresh)
        assert everything(tmp_path) == before
    run(of_file(tmp_path / "one", "a.yaml", state))


def test_a_file_that_was_renamed_or_is_spelled_otherwise_keeps_its_state(tmp_path: Path) -> None:
    state = tmp_path / "state"
    run(of_file(tmp_path / "one", "a.yaml", state))
    (tmp_path / "link.yaml").symlink_to(tmp_path / "one" / "a.yaml")
    os.link(tmp_path / "one" / "a.yaml", tmp_path / "one" / "same.yaml")
    for file in (tmp_path / "link.yaml", tmp_path / "one" / ".." / "one" / "a.yaml", tmp_path / "one" / "same.yaml"):
        deployment = weft.spec.load(tmp_path / "one" / "a.yaml")
        run(Resuming(State(state), deployment, identity(deployment), file))
    (tmp_path / "one" / "same.yaml").unlink()
    (tmp_path / "one" / "a.yaml").unlink()
    run(of_file(tmp_path / "one", "b.yaml", state))
    made = of_file(tmp_path / "one", "a.yaml", state)
    with pytest.raises(CannotRun, match=r"is the state of .*one/b\.yaml"):
        run(made)


def test_a_state_that_was_copied_with_its_file_or_without_goes_on(tmp_path: Path) -> None:
    run(of_file(tmp_path / "one", "a.yaml", tmp_path / "one" / "state"))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    run(of_file(tmp_path / "two", "a.yaml", tmp_path / "two" / "state"))
    shutil.copytree(tmp_path / "one" / "state", tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "one" / "state")
    run(of_file(tmp_path / "one", "a.yaml", tmp_path / "elsewhere"))
    other = FILE.replace("name: q", "name: p").replace("path: out", "path: out2")
    with pytest.raises(CannotRun, match=r"elsewhere is the state of .*one/a\.yaml, and this is .*two/b\.yaml"):
        run(of_file(tmp_path / "two", "b.yaml", tmp_path / "elsewhere", other), fresh=True)


def test_a_record_of_an_earlier_version_which_names_no_file_is_gone_on_with(tmp_path: Path) -> None:
    state = tmp_path / "state"
    made = of_file(tmp_path, "a.yaml", state)
    made.state.begin(made.parts, {}, {})
    run(of_file(tmp_path, "a.yaml", state))
    with pytest.raises(CannotRun, match=r"is the state of .*a\.yaml"):
        run(of_file(tmp_path, "b.yaml", state))


@pytest.mark.parametrize("name", OURS)
def test_a_file_in_the_place_of_a_folder_of_ours_or_the_other_way_is_refused_by_its_name(
    tmp_path: Path, name: str
) -> None:
    begin(tmp_path)
    entry = tmp_path / "state" / name
    if entry.is_dir():
        shutil.rmtree(entry)
    entry.unlink(missing_ok=True)
    if name in FOLDERS:
        entry.write_text("")
    else:
        entry.mkdir()
    for fresh in (False, True):
        refused(tmp_path, rf"state/{name}: .*in the place of a", fresh)


def test_a_file_in_the_place_of_the_state_or_of_a_folder_above_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("precious")
    refused(tmp_path, r"/state is a file, and state needs a folder")
    with pytest.raises(Damaged, match=r"/state: is a file in the place of a folder; take it away"):
        Disk().make(tmp_path / "state" / "streams" / "q.o")
    assert results(tmp_path) == []


def opening(folder: Path, state: Path, text: str = FILE) -> Opening:
    """What stands before a run of a file with a state."""
    folder.mkdir(exist_ok=True)
    (folder / "d.yaml").write_text(text)
    return Opening(weft.spec.load(folder / "d.yaml"), State(state), Options())


@pytest.fixture
def neighbour(tmp_path: Path) -> Path:
    """The folder of another run that has begun, with a sink, a state, and a source of users' files."""
    folder = tmp_path / "neighbour"
    (folder / "in").mkdir(parents=True)
    (folder / "real").mkdir()
    (folder / "linked").symlink_to("real")
    files = 'format: csv, path: in, schema: "v BIGINT"'
    text = FILE.replace('format: rate, schema: "v BIGINT", arrivals: {kind: constant, rate_per_s: 1}', files)
    run(of_file(folder, "a.yaml", folder / ".weft" / "a.yaml", text.replace("path: out", "path: linked")))
    return folder


@pytest.mark.parametrize(("inside", "says"), [
    ("real", "another run .* puts results"), ("real/sub/state", "another run .* puts results"),
    ("linked/sub", "another run .* puts results"), (".real.weft", "another run .* puts results"),
    (".real.weft/data/x", "another run .* puts results"), (".weft/a.yaml/mine", "the state folder of a run"),
    (".weft/a.yaml/streams/mine", "the state folder of a run"), ("./.weft//a.yaml/x/../y/", "the state folder"),
])  # fmt: skip
def test_a_state_in_a_room_of_another_run_is_refused_by_check_and_by_a_run(
    tmp_path: Path, neighbour: Path, inside: str, says: str
) -> None:
    before = everything(neighbour)
    with pytest.raises(CannotRun, match=f"lies in .*{says}"):
        opening(tmp_path / "me", neighbour / inside).refuse()
    (tmp_path / "me" / "d.yaml").write_text(f"{FILE}store: {{path: '../neighbour/{inside}'}}\n")
    report = weft.spec.check(tmp_path / "me" / "d.yaml")
    assert [problem.field for problem in report.errors] == ["store.path"]
    assert "lies in" in report.errors[0].message
    assert everything(neighbour) == before


def test_a_state_in_what_a_run_of_a_neighbouring_state_reads_is_refused(tmp_path: Path, neighbour: Path) -> None:
    text = FILE + f"store: {neighbour}/.weft\n"
    with pytest.raises(CannotRun, match=r"neighbour/in, which another run reads \(its state is .*a\.yaml\)"):
        opening(tmp_path / "me", neighbour / "in" / "sub", text).refuse()
    opening(tmp_path / "me", neighbour / "in" / ".kept", text).refuse()  # which Spark passes over


@pytest.mark.parametrize(
    "inside",
    ["real/mine", "linked/a/b", ".real.weft/data", ".weft/a.yaml/out", ".weft/a.yaml/streams/q", ".weft", "."],
)
def test_a_sink_in_a_room_of_another_run_is_refused_by_check(tmp_path: Path, neighbour: Path, inside: str) -> None:
    (tmp_path / "me").mkdir()
    (tmp_path / "me" / "d.yaml").write_text(FILE.replace("path: out", f"path: ../neighbour/{inside}"))
    report = weft.spec.check(tmp_path / "me" / "d.yaml")
    assert [problem.field for problem in report.errors] == ["queries[0].sink.path"]
    assert re.search("another run|the state folder of a run", report.errors[0].message)


def test_states_side_by_side_and_one_that_is_there_already_are_no_hindrance(tmp_path: Path, neighbour: Path) -> None:
    opening(tmp_path / "me", neighbour / ".weft" / "d.yaml").refuse()
    opening(tmp_path / "me", neighbour / "elsewhere").refuse()
    nested = neighbour / ".weft" / "a.yaml" / "nested"
    State(nested).begin({}, {}, {})  # by an earlier version, which let it be
    opening(tmp_path / "me", nested).refuse()
    shutil.rmtree(neighbour / ".weft")
    opening(tmp_path / "me", neighbour / "real" / "state").refuse()  # nobody goes on there
