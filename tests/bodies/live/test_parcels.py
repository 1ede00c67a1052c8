"""Parcels: what bodies tell one another through machines comes out as it went in, and fits into messages."""

from __future__ import annotations

import pytest
from msgspec import MsgspecError

from weft.bodies.live.parcels import pack, unpack
from weft.plan.changing.fragments import Fragment
from weft.plan.changing.task import GoesOn, Task, homes_of
from weft.protocol.change_messages import CarryOver, EndedAt
from weft.protocol.messages import MESSAGE_BYTES_MAX, decode, encode
from weft.protocol.words import Parcel
from weft.spark.channels.folders import Folders
from weft.spark.fragments.positions import Ended, Standing
from weft.spark.fragments.wiring import Entry

FRAGMENT = Fragment("q.a", "x", ("q",), ("a", "b"), ("c",), "b", ("s",), ("r.d",), ("q.c",), ("q",), (("a", "s@q.a"),))
ENTRIES = (Entry("s", "a", "source_s_a", False, "ts", 500), Entry("r.d", None, "channel_r_d", True, None, 0))
STANDING = Standing(FRAGMENT, 2, ENTRIES, {"source_s_a": 12, "channel_r_d": {"0": 3, "1": 4}}, 7)


@pytest.mark.parametrize(
    "value",
    [Task(FRAGMENT, 3, {"channel_r_d": {"0": 3}}, {"r.d": "y"}, 5), Task(FRAGMENT), GoesOn(FRAGMENT, 1), STANDING],
)
def test_what_is_told_comes_out_as_it_went_in(value: object) -> None:
    assert unpack(pack(value), type(value)) == value


def test_what_is_no_such_value_is_refused() -> None:
    for parcel in (Parcel(), Parcel("{}"), pack(FRAGMENT)):
        with pytest.raises(MsgspecError):
            unpack(parcel, Task)


def test_a_standing_finds_its_checkpoint_in_the_folders_of_whoever_goes_on(tmp_path: object) -> None:
    folders = Folders(tmp_path)  # type: ignore[arg-type]
    ended = STANDING.ended(folders)
    assert ended == Ended(FRAGMENT, folders.checkpoint("q.a", 2), ENTRIES, STANDING.first, 7)


def test_several_hundred_fragments_that_end_at_once_fit_into_one_message() -> None:
    ended = tuple(EndedAt(f"q.a{at}", 1 << 40, pack(STANDING)) for at in range(500))
    message = CarryOver(1, "q.a", pack(Task(FRAGMENT)), ended)
    assert len(encode(message)) < MESSAGE_BYTES_MAX
    assert decode(encode(message)) == message


def test_a_task_tells_where_the_channels_are_written_that_the_fragment_reads() -> None:
    upstream = Fragment("r.d", "z", ("r",), ("d",), (), None, ("t",), (), ("r.d",), ())
    assert homes_of(FRAGMENT, (upstream, FRAGMENT)) == {"r.d": "z"}
