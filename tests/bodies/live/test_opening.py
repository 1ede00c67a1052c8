"""A state that is put elsewhere than the file says keeps clear of what the run reads and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft.spec
from weft.bodies.live.opening import Opening, Options
from weft.bodies.live.state import CannotRun, State

FILE = """
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: csv, path: in, schema: "v BIGINT, ts TIMESTAMP", event_time: ts}]
queries:
  - name: q
    operators:
      - {name: o, from: [s], sql: "SELECT window(ts, '1 hour') w, sum(v) v FROM s GROUP BY 1", watermark: 1 minute,
         late: {to: late}}
    sink: {from: o, format: json, path: out}
"""


def opening(folder: Path, state: str, fresh: bool = False) -> Opening:
    """What stands before a run whose state is to lie there."""
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text("1,2024-01-01T00:00:00Z\n")
    (folder / "link").symlink_to("out")
    (folder / "d.yaml").write_text(FILE)
    return Opening(weft.spec.load(folder / "d.yaml"), State(folder / state), Options(fresh=fresh))


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("out", r"queries\[0\]\.sink\.path: lies in the state folder .*, which starting over empties"),
        ("link", r"queries\[0\]\.sink\.path: lies in the state folder"),
        ("out/kept", r"queries\[0\]\.sink\.path: holds the state folder"),
        ("in/../out/kept", r"queries\[0\]\.sink\.path: holds the state folder"),
        (".out.weft/kept", r"queries\[0\]\.sink\.path: what is on its way to it lies in .*, and so would"),
        ("late", r"queries\[0\]\.operators\[0\]\.late\.to: lies in the state folder"),
        ("kept {1}", r"Spark takes `\{` in the state folder .*kept \{1\} for a pattern; rename it"),
        ("in/kept", r"sources\[0\]\.path: reads the state folder"),
    ],
)
def test_a_state_given_elsewhere_keeps_clear_of_sources_and_sinks(
    tmp_path: Path, state: str, says: str, fresh: bool
) -> None:
    made = opening(tmp_path, state, fresh)
    with pytest.raises(CannotRun, match=says):
        made.refuse()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("state", ["kept", "in/.kept", "outer", "../elsewhere"])
def test_a_state_beside_them_is_fine(tmp_path: Path, state: str) -> None:
    (tmp_path / "here").mkdir()
    opening(tmp_path / "here", state).refuse()
