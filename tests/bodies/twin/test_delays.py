"""How long words and moves take in the twin: over least-delay paths, and never over a link that is cut."""

from __future__ import annotations

from pathlib import Path

import weft.spec
from weft.bodies.twin.control.changes import DESK
from weft.bodies.twin.control.delays import Delays

MS = 1_000_000
FILE = """
weft: 1
sites: [{name: a}, {name: b}, {name: c}]
links: [{from: a, to: b, delay_ms: 10}, {from: b, to: c, delay_ms: 5, bandwidth_kbps: 8000}]
sources:
  - {name: s, site: a, format: rate, schema: "k STRING", arrivals: {kind: constant, rate_per_s: 10}}
queries:
  - name: q
    operators:
      - {name: light, from: [s], sql: "SELECT * FROM s WHERE k > ''", cost_ms: 1}
      - {name: heavy, from: [light], sql: "SELECT k FROM light", cost_ms: 1, state_kb: 100}
    sink: {from: heavy, format: console}
"""


def delays(folder: Path, now_ns: int = 0) -> Delays:
    (folder / "weft.yaml").write_text(FILE)
    return Delays(weft.spec.load(folder / "weft.yaml"), 20.0, lambda machine: machine, lambda: now_ns)


def test_a_word_takes_as_long_as_its_path_and_the_desk_is_at_the_first_site(tmp_path: Path) -> None:
    found = delays(tmp_path)
    assert (found.message_ns("a", "c"), found.message_ns(DESK, "b")) == (15 * MS, 10 * MS)
    assert found.start_ns() == -(1_000_000_000 + 4 * 15 * MS)


def test_no_word_gets_over_a_cut_link_until_its_moment_and_others_go_on(tmp_path: Path) -> None:
    for now_ns, reached in ((6, None), (7, 15 * MS)):
        found = delays(tmp_path, now_ns)
        found.cut("b", "c", 7)
        assert (found.message_ns("a", "c"), found.message_ns("a", "b")) == (reached, 10 * MS)


def test_a_move_takes_what_its_state_does_or_what_waits_where_it_has_none(tmp_path: Path) -> None:
    found = delays(tmp_path)
    assert found.move_ns("q.light", "a", "c", waiting=3) == 60 * MS
    assert found.move_ns("q.heavy", "b", "c", waiting=3) == found.state_ns("q.heavy", "b", "c")
    assert found.state_ns("q.heavy", "b", "c") == round((5 + 100 * 8192 / 8000) * MS)
    assert found.state_ns("q.light", "b", "c") == 0
