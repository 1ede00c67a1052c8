"""Messages: typed, versioned, bounded."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.protocol import BadMessage, Message, decode, encode
from weft.protocol.change_messages import (
    Carried,
    CarryOver,
    ChannelIsDrained,
    DiscardFragment,
    DrainChannel,
    EndedAt,
    FragmentDiscarded,
    FragmentNotPrepared,
    FragmentPrepared,
    NotCarried,
    OpenGate,
    PrepareFragment,
)
from weft.protocol.messages import (
    MESSAGE_BYTES_MAX,
    VERSION,
    FragmentDone,
    FragmentFailed,
    FragmentFinishing,
    FragmentPending,
    FragmentRefused,
    FragmentRunning,
    FragmentStopped,
    StartFragment,
    StopFragment,
)
from weft.protocol.words import Parcel

name, epoch = st.text(min_size=1, max_size=100), st.integers(1, 1 << 53)
number, parcel = st.integers(1, 1 << 32), st.builds(Parcel, st.text(max_size=100))
after = st.lists(st.tuples(name, epoch), max_size=3).map(tuple)
ended = st.lists(st.builds(EndedAt, name, epoch, parcel), max_size=3).map(tuple)
carrying = (StartFragment, FragmentRunning, FragmentFinishing, FragmentDone)
messages = st.one_of(
    st.builds(FragmentPending, name, epoch),
    *(st.builds(kind, name, epoch, parcel) for kind in carrying),
    st.builds(StopFragment, name, epoch, st.booleans(), st.booleans(), parcel),
    st.builds(FragmentStopped, name, epoch, st.booleans(), parcel),
    st.builds(PrepareFragment, number, name, parcel, st.lists(parcel, max_size=3).map(tuple)),
    st.builds(FragmentPrepared, number, name, st.lists(name, max_size=3).map(tuple)),
    st.builds(FragmentNotPrepared, number, name, st.text(max_size=1000), st.booleans()),
    *(st.builds(kind, number, name) for kind in (DiscardFragment, FragmentDiscarded)),
    st.builds(OpenGate, number, name, st.builds(EndedAt, name, epoch, parcel)),
    *(st.builds(kind, number, name, name, after) for kind in (DrainChannel, ChannelIsDrained)),
    st.builds(CarryOver, number, name, parcel, ended),
    st.builds(Carried, number, name, after, parcel),
    st.builds(NotCarried, number, name, after, st.text(max_size=1000)),
    st.builds(FragmentFailed, name, epoch, st.text(max_size=1000), st.booleans()),
    st.builds(FragmentRefused, name, epoch, epoch),
)


@given(messages)
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    assert decode(encode(message)) == message


def test_a_message_is_json_that_a_person_can_read() -> None:
    assert json.loads(encode(StartFragment("f1", 3, Parcel("what f1 is")))) == {
        "weft": VERSION,
        "message": {"type": "StartFragment", "fragment": "f1", "epoch": 3, "task": ["what f1 is"]},
    }


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"weft": VERSION + 1, "message": {"type": "Later"}, "more": True}, f"version {VERSION + 1}, this site"),
        ({"weft": 0, "message": {}}, f"version 0, this site speaks {VERSION}: upgrade the sender"),
        ({"weft": VERSION, "message": {"type": "Explode", "fragment": "f1"}}, "malformed"),
        ({"weft": VERSION, "message": {"type": "StartFragment", "fragment": "f1"}}, "malformed.*epoch"),
        ({"weft": VERSION, "message": {"type": "StartFragment", "fragment": "f1", "epoch": 0}}, "malformed"),
        ({"weft": VERSION, "message": {"type": "StartFragment", "fragment": "", "epoch": 1}}, "malformed"),
        ({"weft": VERSION, "message": {"type": "StartFragment", "fragment": "f", "epoch": 1, "x": 1}}, "unknown field"),
        ({"weft": VERSION}, "malformed"),
        ({"message": {"type": "StartFragment", "fragment": "f1", "epoch": 1}}, "malformed"),
        ([], "malformed"),
    ],
)
def test_what_is_no_message_of_this_version_is_refused(message: object, why: str) -> None:
    with pytest.raises(BadMessage, match=why):
        decode(json.dumps(message).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    with pytest.raises(BadMessage):
        decode(data)


@pytest.mark.parametrize("data", [b'{"weft":2,"message":' + b"[" * 100_000, b'{"weft":2,"message":{"type":"\xff"}}'])
def test_deep_or_broken_text_is_refused(data: bytes) -> None:
    with pytest.raises(BadMessage):
        decode(data)


def test_a_message_too_large_is_refused_at_both_ends() -> None:
    with pytest.raises(BadMessage, match="allowed"):
        decode(b" " * (MESSAGE_BYTES_MAX + 1))
    with pytest.raises(BadMessage, match="allowed"):
        encode(FragmentFailed("f1", 1, "x" * MESSAGE_BYTES_MAX))
