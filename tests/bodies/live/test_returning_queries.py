"""A query that was removed and comes again: it begins anew, and nothing is given twice into one sink."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import weft.spec
from tests.bodies.live.test_resuming import FILE, everything
from weft.bodies.live import journal
from weft.bodies.live.identity import identity
from weft.bodies.live.resuming import Resuming
from weft.bodies.live.returning_queries import coming_again
from weft.bodies.live.state import CannotRun, State
from weft.model import Placement
from weft.plan.changing.running_plan import RunningPlan
from weft.spark.channels.manifest import Manifest
from weft.spark.fragments.outputs import claims_of
from weft.spark.sinks.delivery import SinkLog, SinkWriter


def with_queries(folder: Path, *queries: str) -> Resuming:
    """A run's way into its state with some queries in its file, each with a sink, named `query` or `query=path`."""
    text = FILE[: FILE.index("queries:")] + "queries:\n"
    for query in queries:
        name, _, path = query.partition("=")
        text += f'  - {{name: {name}, operators: [{{name: o, from: [s], sql: "SELECT v FROM s"}}], '
        text += f"sink: {{from: o, format: csv, path: {path or name}}}}}\n"
    (folder / "d.yaml").write_text(text)
    deployment = weft.spec.load(folder / "d.yaml")
    return Resuming(State(folder / "state"), deployment, identity(deployment))


def opened(made: Resuming) -> Resuming:
    """It goes on, and its plan is in force."""
    made.look(False)
    made.open()
    homes = {f"{query.name}.o": "a" for query in made.deployment.queries}
    held = journal.read(made.state)
    kept = {} if held is None else held.generations
    journal.write(made.state, RunningPlan(1, made.deployment, Placement(homes), ()), kept, {})
    return made


def gives(made: Resuming, sink: str) -> None:
    """A query gives its sink a batch, and leaves a stream, a checkpoint and what a relay of it has read."""
    claim = next(one for one in claims_of(made.deployment, made.state.folders) if one.sink == sink)
    assert isinstance(claim.log, SinkLog)
    writer = SinkWriter(claim.log, 1, f"{sink}.o/0")
    writer.folder().mkdir(parents=True)
    (writer.folder() / "x.csv").write_text("1\n")
    writer.commit(Manifest(0, 1, f"{sink}.o/0", 0, rows=1, rows_total=1, files=("x.csv",)))
    for name in (f"fragments/{sink}.o/checkpoint-0/offsets", f"streams/{sink}.o/manifests", f"streams/s@{sink}.o"):
        (made.state.path / name).mkdir(parents=True)
    for source in ("s", sink):  # a source may be called as a query is
        (made.state.path / "recordings" / source).mkdir(parents=True)
        (made.state.path / "streams" / source).mkdir(parents=True, exist_ok=True)
    for name in ("flows.json", "epochs.json"):
        made.state.write(name, {})
    held = journal.read(made.state)
    assert held is not None
    journal.write(made.state, held.plan(made.deployment), {"r.o": 3, "q.o": 2}, {})


@pytest.fixture
def removed(tmp_path: Path) -> Path:
    """A state whose query r has given results and is gone from the file."""
    gives(opened(with_queries(tmp_path, "q", "r")), "r")
    opened(with_queries(tmp_path, "q"))
    return tmp_path


def test_a_query_that_comes_again_begins_anew_with_a_sink_of_its_own(removed: Path) -> None:
    made = with_queries(removed, "q", "r=other")
    made.look(False)
    made.open()
    assert "query r was in the file before, and begins anew" in made.notes
    rooms = (removed / "state" / name for name in ("streams", "fragments", "recordings"))
    left = sorted(path.name for room in rooms for path in room.iterdir())
    assert left == ["r", "r", "s", "s"], "sources keep what they have"
    held = journal.read(made.state)
    assert held is not None
    assert held.generations == {"q.o": 2}
    claims = claims_of(made.deployment, made.state.folders)
    assert all(claim.log.committed() in (None, -1) for claim in claims), "no sink is behind what it was given before"
    assert [path.read_text() for path in (removed / "r").glob("*.csv")] == ["1\n"], "earlier results stay"
    opened(with_queries(removed, "q", "r=other"))


def test_results_that_would_come_twice_are_refused_and_both_remedies_work(removed: Path) -> None:
    made = with_queries(removed, "q", "r")
    before = everything(removed)
    says = r"holds what it gave.*give its sink another path, or move .*/r and .*/\.r\.weft away"
    with pytest.raises(CannotRun, match=says):
        made.open()
    assert everything(removed) == before
    for name in ("r", ".r.weft"):
        shutil.move(removed / name, removed / f"old{name}")
    opened(with_queries(removed, "q", "r"))


def test_what_a_query_left_in_the_rooms_of_sites_whose_streams_are_mirrored_is_seen(tmp_path: Path) -> None:
    made = opened(with_queries(tmp_path, "q"))
    left = made.state.path / "sites" / "core" / "fragments" / "r.o" / "checkpoint-0"
    left.mkdir(parents=True)
    assert coming_again(made.state, {"r", "p"}, ()) == ("r",)
