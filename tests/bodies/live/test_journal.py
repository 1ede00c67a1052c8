"""The plan in force, as it lies on disk: what is sealed and is no plan is refused by the file's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.bodies.live import journal
from weft.bodies.live.state import State
from weft.spark.storage.disk import Damaged


@pytest.mark.parametrize(
    "held",
    [
        [],
        3,
        {"placement": []},
        {"placement": {"q": 3}, "fragments": []},
        {"number": 1, "placement": {}, "fragments": [{"id": 3}], "generations": {}, "gates": {}},
        {"number": 1, "placement": {}, "fragments": [], "generations": {}},
    ],
    ids=str,
)
def test_a_journal_of_another_shape_is_refused_by_its_name(held: Any, tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    state.disk.make(state.path)
    state.write(journal.FILE, held)
    with pytest.raises(Damaged, match=r"plan\.json: holds no plan in force"):
        journal.read(state)
