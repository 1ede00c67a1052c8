"""Epochs: the desk's in one file, each site's in another, and those of an earlier version are not forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.bodies.live.epochs import DeskEpochs, SiteEpochs
from weft.bodies.live.state import State
from weft.spark.storage.disk import Damaged

OLD = {"conductor": {"f": 5}, "north": {"f": 5}, "a/b": {"g": 2}}


@pytest.fixture
def state(tmp_path: Path) -> State:
    state = State(tmp_path / "state")
    state.disk.make(state.path)
    return state


def test_each_keeps_its_own_and_nobody_else_s(state: State) -> None:
    DeskEpochs(state, "conductor").remember("f", 3)
    SiteEpochs(state, "north").remember("f", 2)
    SiteEpochs(state, "conductor").remember("f", 1)
    assert DeskEpochs(state, "conductor").remembered() == {"f": 3}
    assert SiteEpochs(state, "north").remembered() == {"f": 2}
    assert SiteEpochs(state, "conductor").remembered() == {"f": 1}, "a site may be called so"
    assert SiteEpochs(state, "south").remembered() == {}


def test_a_state_of_an_earlier_version_has_them_all_in_one_file(state: State) -> None:
    state.write("epochs.json", OLD)
    assert DeskEpochs(state, "conductor").remembered() == {"f": 5}
    north = SiteEpochs(state, "north")
    assert north.remembered() == {"f": 5}
    north.remember("g", 7)
    DeskEpochs(state, "conductor").remember("f", 6)
    assert SiteEpochs(state, "north").remembered() == {"f": 5, "g": 7}
    assert SiteEpochs(state, "a/b").remembered() == {"g": 2}, "one that has no file yet"
    assert state.read("epochs.json")["conductor"] == {"f": 6}


def test_a_garbled_file_is_refused_by_name(state: State) -> None:
    SiteEpochs(state, "north").remember("f", 2)
    (state.path / "epochs" / "north.json").write_text("{")
    with pytest.raises(Damaged, match=r"north\.json"):
        SiteEpochs(state, "north")
