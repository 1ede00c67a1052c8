"""What the runs of a state measured is known until it is measured anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weft.bodies.live.last_run import FILE, last_measured


def told(folder: Path, *lines: Any) -> None:
    (folder / FILE).write_text(
        "\n".join(one if isinstance(one, str) else json.dumps({"operators": one}) for one in lines)
    )


def measured(cost_ms: float | None, selectivity: float | None) -> dict[str, float | None]:
    return {"cost_ms": cost_ms, "selectivity": selectivity}


def test_a_short_run_without_records_erases_nothing_that_was_known(tmp_path: Path) -> None:
    told(
        tmp_path,
        {"q.o": measured(0.1, 0.2), "q.gone": measured(3, 1)},
        {"q.o": measured(0.5, None), "q.p": measured(None, 0.7)},
        '{"operators": {"q.o": {"co',
        {"q.o": measured(None, None), "q.p": measured(None, None)},
    )
    assert last_measured(tmp_path) == {("q", "o"): (0.5, 0.2), ("q", "p"): (None, 0.7)}


def test_the_last_word_counts_where_there_is_one(tmp_path: Path) -> None:
    told(tmp_path, {"q.o": measured(0.1, 0.2)}, {"q.o": measured(0.3, 0.4)})
    assert last_measured(tmp_path) == {("q", "o"): (0.3, 0.4)}
    assert last_measured(tmp_path / "none") == {}
