"""What a topic of manifests means: the same for all who read it, from its beginning or after its front was cut off."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.spark.channels.kafka_follower import Held, LogEntry
from weft.spark.channels.kafka_names import NAME_CHARS_MAX, safe
from weft.spark.channels.manifest import Manifest

FENCES = st.integers(1, 4).map(lambda epoch: LogEntry(fence=epoch))
SEGMENTS = st.tuples(st.integers(0, 6), st.integers(1, 4)).map(lambda one: LogEntry(manifest=Manifest(*one, "f", 0)))
ENTRIES = st.lists(FENCES | SEGMENTS, max_size=30)


def counted(entries: list[LogEntry], first: int = 0) -> Held:
    held = Held()
    for offset, entry in enumerate(entries):
        if offset >= first:
            held.take(offset, entry)
    return held


@given(ENTRIES)
def test_each_number_counts_once_in_order_and_under_rising_epochs(entries: list[LogEntry]) -> None:
    held = counted(entries)
    numbers = sorted(held.manifests)
    assert numbers == list(range(held.counted.following))
    offsets = [held.manifests[number][0] for number in numbers]
    epochs = [held.manifests[number][1].epoch for number in numbers]
    assert offsets == sorted(offsets)
    assert epochs == sorted(epochs)
    assert held.counted.epoch == max((entry.fence for entry in entries if entry.fence is not None), default=0)


@given(ENTRIES)
def test_who_comes_after_the_front_was_cut_off_counts_the_same(entries: list[LogEntry]) -> None:
    whole = counted(entries)
    for number, (offset, _) in whole.manifests.items():
        late = counted(entries, offset)
        assert late.counted == whole.counted
        assert late.manifests == {one: held for one, held in whole.manifests.items() if one >= number}


@given(st.text(max_size=300), st.text(max_size=300))
def test_names_become_parts_of_topics_only_after_being_made_safe(one: str, other: str) -> None:
    made = safe(one)
    assert all(sign.isascii() and (sign.isalnum() or sign in "._-") for sign in made)
    assert len(made) <= NAME_CHARS_MAX + 13
    assert one == other or safe(one) != safe(other)
