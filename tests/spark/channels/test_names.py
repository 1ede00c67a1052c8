"""What is called after streams and operators, however long their names are, is a file that can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.spark.channels.channel import fragment_of, reader_name
from weft.spark.channels.folders import Folders, spark_name

NAME_BYTES_MAX = 255


@pytest.mark.parametrize("letters", [3, 40, 60, 100])
def test_readers_and_sources_have_names_of_their_own_that_fit(tmp_path: Path, letters: int) -> None:
    query, operators = "q" * letters, ["o" * (letters - 1) + last for last in "ab"]
    entries = [f"channel_{spark_name(f'{query}.{one}_{two}')}" for one in operators for two in operators]
    sources = [f"source_{spark_name(f'{query}.{one}_{two}')}_ticks" for one in operators for two in operators]
    fragment = f"{query}.{operators[0]}"
    readers = [reader_name(fragment, entry) for entry in entries]
    for names in (entries, sources, readers):
        assert len(set(names)) == 4
        assert max(map(len, names)) <= NAME_BYTES_MAX
    assert {fragment_of(reader) for reader in readers} == {fragment}
    stream = Folders(tmp_path).stream(fragment).create()
    for reader in readers:
        stream.register(reader)
    assert sorted(stream.known()) == sorted(readers)


def test_names_that_always_fitted_stay_what_they_were() -> None:
    assert reader_name("q.o", "channel_q_p_o") == "q.o~channel_q_p_o"
    assert spark_name("x" * 247) == "x" * 247
