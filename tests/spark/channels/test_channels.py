"""What every channel must do, whatever it is made of: exactly once, fence, replay, retention, readers, partitions."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.channels.channel_kinds import Kind, Row, committed, kind_of, read
from tests.spark.channels.memory_channel import MemoryChannel, MemoryWriter
from weft.spark.channels.channel import Channel, Fenced, Removed
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.partitions import Partitioning
from weft.spark.channels.position import BEGINNING, Position, as_position, later, reaches
from weft.spark.storage.disk import Damaged

KINDS = ["memory", "folder", "kafka", pytest.param("folder on Spark", marks=pytest.mark.spark)]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """Each kind of channel in turn."""
    return kind_of(request.param, tmp_path, monkeypatch, lambda: request.getfixturevalue("spark"))


def some(batch: int, count: int = 3) -> list[Row]:
    """The records of a batch: keys come again, values do not."""
    return [(f"k{(batch + at) % 4}", 100 * batch + at) for at in range(count)]


def fill(kind: Kind, batches: int) -> tuple[Channel, list[Position]]:
    """A stream with some batches, and the positions before the first and after each."""
    channel = kind.open().create()
    writer = channel.open_writer(1, "f")
    at: list[Position] = [BEGINNING]
    for batch in range(batches):
        kind.commit(writer, batch, some(batch))
        at.append(channel.end())
    return channel, at


def test_a_batch_that_was_committed_is_known_after_a_restart_and_lies_there_once(kind: Kind) -> None:
    for epoch in (1, 2, 3):
        writer = kind.open().open_writer(epoch, "f")
        for batch in range(2 + epoch):
            if not writer.written(batch):
                kind.commit(writer, batch, some(batch))
    assert read(kind.open()) == sorted(row for batch in range(5) for row in some(batch))
    last = kind.open().last()
    assert last is not None
    assert (last.segment, last.batch, last.rows_total) == (4, 4, 15)
    assert not kind.open().open_writer(4, "another").written(4), "another writer's batches are counted for themselves"


def test_what_was_written_and_not_committed_is_never_seen(kind: Kind) -> None:
    channel, at = fill(kind, 1)
    cut_off = channel.open_writer(2, "f")
    cut_off.write(kind.records([{"k": "lost", "v": 1}]), [])
    assert channel.end() == at[1]
    again = kind.open().open_writer(3, "f")
    kind.commit(again, 1, some(1))
    dropped = again.write(kind.records([{"k": "dropped", "v": 1}]), [])
    again.discard(dropped)
    assert read(channel) == sorted(some(0) + some(1))


def test_a_lower_epoch_can_neither_claim_nor_commit(kind: Kind) -> None:
    old = kind.open().create().open_writer(1, "f")
    kind.open().open_writer(2, "f")
    with pytest.raises(Fenced, match="fenced by 2"):
        kind.commit(old, 0, some(0))
    with pytest.raises(Fenced):
        kind.open().open_writer(1, "f")
    assert kind.open().last() is None


def test_a_fence_stops_the_writer_it_passes_and_only_rises(kind: Kind) -> None:
    writer = kind.open().create().open_writer(3, "f")
    kind.commit(writer, 0, some(0))
    kind.open().fence(5)
    kind.open().fence(4)
    assert kind.open().epoch() == 5
    with pytest.raises(Fenced) as caught:
        kind.commit(writer, 1, some(1))
    assert caught.value.fence == 5
    kind.commit(kind.open().open_writer(5, "f"), 1, some(1))
    assert read(kind.open()) == sorted(some(0) + some(1))


def test_of_two_writers_of_one_epoch_one_commits_a_number(kind: Kind) -> None:
    channel = kind.open().create()
    first, second = channel.open_writer(1, "f"), channel.open_writer(1, "f")
    kind.commit(first, 0, some(0))
    with pytest.raises(Fenced):
        kind.commit(second, 0, some(7))
    assert read(channel) == sorted(some(0))


def test_replay_from_any_position_gives_the_same_records(kind: Kind) -> None:
    channel, at = fill(kind, 5)
    for _ in range(2):
        for first in range(6):
            for last in range(first, 6):
                expected = sorted(row for batch in range(first, last) for row in some(batch))
                assert read(kind.open(), at[first], at[last]) == expected, (first, last)
    assert [manifest.batch for _, manifest in channel.commits(at[1], at[3])] == [1, 2]
    assert [after for after, _ in channel.commits(at[1], at[3])] == [at[2], at[3]]


def test_positions_grow_survive_json_and_are_found_again_by_the_commit_before_them(kind: Kind) -> None:
    channel, at = fill(kind, 4)
    for number, position in enumerate(at):
        again = as_position(json.loads(json.dumps(position)))
        before = channel.upto(again)
        assert (None if before is None else before.batch) == (number - 1 if number else None)
        assert channel.rows_before(again) == 3 * number
        assert channel.beyond(again) == (4 - number, 3 * (4 - number))
        for other in at[: number + 1]:
            assert reaches(again, other)
            assert later(again, other) == position
        assert not any(reaches(again, other) for other in at[number + 1 :])


def test_a_batch_takes_no_more_commits_than_it_may(kind: Kind) -> None:
    channel, at = fill(kind, 5)
    assert channel.reach(at[1], 2) == at[3]
    assert channel.reach(at[3], 9) == at[5]
    assert channel.reach(at[5], 9) == at[5]
    assert channel.reach(BEGINNING, 1) == at[1]


def test_a_commit_without_records_moves_the_position_and_tells_times_and_the_end(kind: Kind) -> None:
    channel, at = fill(kind, 1)
    writer = channel.open_writer(2, "f")
    committed(writer, 1, Written(), times_us={"ts": 5})
    committed(writer, 2, Written(), times_us={"ts": 9}, end=True, inputs={"n": channel.end()})
    assert channel.end() != at[1]
    last = kind.open().upto(channel.end())
    assert last is not None
    assert (last.times_us, last.end, last.rows_total) == ({"ts": 9}, True, 3)
    assert read(channel, at[1]) == []
    assert channel.beyond(at[1]) == (2, 0)


def test_over_a_slow_link_commits_arrive_one_after_another(kind: Kind) -> None:
    channel = kind.open().create()
    writer = channel.open_writer(1, "f")
    at: list[Position] = [BEGINNING]
    for batch in range(3):
        kind.commit(writer, batch, some(batch), committed_ms=1000.0 + batch)
        at.append(channel.end())
    assert channel.arrived(BEGINNING, at[3], 1050.0, delay_ms=50.0, kbps=0.0) == at[1]
    assert channel.arrived(BEGINNING, at[3], 1052.0, delay_ms=50.0, kbps=0.0) == at[3]
    assert channel.arrived(at[1], at[3], 0.0, delay_ms=50.0, kbps=0.0) == at[1]
    bytes_ = next(channel.commits(BEGINNING, at[1]))[1].bytes
    assert channel.arrived(BEGINNING, at[3], 1000.0 + 8 * bytes_ + 1, delay_ms=0.0, kbps=1.0) == at[1]


def test_what_all_readers_have_passed_is_removed_and_nothing_earlier(kind: Kind) -> None:
    channel = kind.open().create()
    channel.register("one~in")
    channel.register("two~in")
    _, at = fill(kind, 6)
    channel.passed("one~in", at[5])
    channel.passed("two~in", at[3])
    channel.retain()
    assert read(kind.open(), at[3]) == sorted(row for batch in range(3, 6) for row in some(batch))
    with pytest.raises(Removed):
        list(channel.commits(at[1], at[3]))
    assert channel.beyond(at[3]) == (3, 9), "what lies before the first that is needed still tells"
    assert channel.beyond(at[1]) == (0, 0)
    assert channel.rows_before(at[1]) is None
    channel.inspect(at[3])
    with pytest.raises(Damaged, match="is gone"):
        channel.inspect(at[1])
    channel.forget("two~in")
    channel.retain()
    assert read(channel, at[5]) == sorted(some(5))
    with pytest.raises(Removed):
        list(channel.commits(at[3], at[5]))


def test_nothing_is_removed_while_nobody_reads_or_one_has_passed_nothing(kind: Kind) -> None:
    channel, at = fill(kind, 20)
    channel.retain()
    assert len(read(channel)) == 60
    channel.register("slow~in")
    channel.register("quick~in")
    channel.passed("quick~in", at[20])
    kind.commit(channel.open_writer(2, "f"), 20, some(20))
    channel.retain()
    assert len(read(kind.open())) == 63


def test_a_reader_keeps_its_place_and_is_known_to_all_who_open_the_stream(kind: Kind) -> None:
    channel, at = fill(kind, 3)
    channel.register("q.a~in")
    assert channel.place("q.a~in") == BEGINNING
    assert not channel.has_read("q.a~in")
    channel.passed("q.a~in", at[1], has_read=False)
    assert not kind.open().has_read("q.a~in")
    channel.passed("q.a~in", at[2])
    kind.open().register("q.a~in")
    assert kind.open().place("q.a~in") == at[2]
    assert kind.open().has_read("q.a~in")
    assert channel.place("nobody~in") == BEGINNING
    for reader in ("q.a~other", "q.ab~in", "q.b~in"):
        channel.register(reader)
    channel.forget_but(["q.a", "q.b"])
    channel.forget_others("q.a", {"q.a~in"})
    assert sorted(kind.open().known()) == ["q.a~in", "q.b~in"]


def test_several_readers_each_get_every_record(kind: Kind) -> None:
    channel = kind.open().create()
    readers = {f"r{number}~in": number + 1 for number in range(3)}
    for reader in readers:
        channel.register(reader)
    writer = channel.open_writer(1, "f")
    got: dict[str, list[Row]] = {reader: [] for reader in readers}
    for batch in range(12):
        kind.commit(writer, batch, some(batch))
        for reader, every in readers.items():
            if batch % every == 0 or batch == 11:
                start, end = channel.place(reader), channel.end()
                got[reader] += read(kind.open(), start, end)
                channel.passed(reader, end)
        channel.retain()
    expected = sorted(row for batch in range(12) for row in some(batch))
    assert all(sorted(rows) == expected for rows in got.values())


def test_a_batch_written_aside_is_taken_or_forgotten(kind: Kind) -> None:
    channel = kind.open().create()
    assert channel.can_write_aside
    aside = channel.write_aside(kind.records([{"k": "k0", "v": 7}]), 4, [])
    assert channel.last() is None
    assert read(channel) == []
    writer = channel.open_writer(1, "f")
    committed(writer, 0, writer.take(aside))
    assert read(kind.open()) == [("k0", 7)]
    channel.write_aside(kind.records([{"k": "k0", "v": 8}]), 5, [])
    channel.forget_aside(5)
    channel.write_aside(kind.records([{"k": "k0", "v": 9}]), 6, [])
    channel.forget_aside()
    assert read(kind.open()) == [("k0", 7)]


def test_a_stream_lacks_what_somebody_has_read_and_it_does_not_hold(kind: Kind) -> None:
    channel, at = fill(kind, 2)
    other = kind.open("other")
    assert channel.lacks(at[2]) is None
    assert other.lacks(BEGINNING) is None
    assert other.lacks(at[1]) is not None
    assert not other.is_there()
    other.create()
    assert other.is_there()
    assert [one.name for one in kind.folders.streams()] == ["other", "s"]


def test_a_reader_in_another_process_opens_the_same_stream(kind: Kind) -> None:
    from weft.spark.channels.kinds import open_channel

    channel, _ = fill(kind, 2)
    there = open_channel(kind.folders.reader_options(channel))
    assert read(there) == read(channel)
    there.passed("r~in", there.end())
    assert channel.place("r~in") == channel.end()


# ---- partitions


def split(kind: Kind, count: int = 3, batches: int = 4) -> Channel:
    """A stream in partitions, with batches written by two writers one after another."""
    channel = kind.open().create(Partitioning(count, ("k",)))
    for batch in range(batches):
        writer = kind.open().open_writer(1 + batch // 2, "f")
        kind.commit(writer, batch, [(f"k{at % 11}", 1000 * batch + at) for at in range(40)])
    return channel


def test_each_record_lies_in_exactly_one_partition_and_a_key_always_in_the_same(kind: Kind) -> None:
    channel = split(kind)
    by_part = [read(channel, partitions=[part]) for part in range(3)]
    assert sorted(row for rows in by_part for row in rows) == read(channel)
    assert len({v for rows in by_part for _, v in rows}) == 160
    homes: dict[str, set[int]] = {}
    for part, rows in enumerate(by_part):
        for key, _ in rows:
            homes.setdefault(key, set()).add(part)
    assert len(homes) == 11
    assert all(len(parts) == 1 for parts in homes.values()), "a key lies in two partitions"
    assert len(set().union(*homes.values())) > 1, "all keys in one partition is no split"


def test_readers_of_disjoint_partitions_get_disjoint_records_that_add_up(kind: Kind) -> None:
    channel = split(kind)
    first = channel.reach(BEGINNING, 1)
    for start, end in ((BEGINNING, channel.end()), (first, channel.end()), (BEGINNING, first)):
        one, rest = read(channel, start, end, {0}), read(channel, start, end, {1, 2})
        assert not set(one) & set(rest)
        assert sorted(one + rest) == read(channel, start, end)
        manifests = [manifest for _, manifest in channel.commits(start, end)]
        assert sum(manifest.rows_in({0}) for manifest in manifests) == len(one)
        assert sum(manifest.rows_in({1, 2}) for manifest in manifests) == len(rest)
        assert sum(manifest.rows_in(None) for manifest in manifests) == len(one) + len(rest)


def test_a_stream_keeps_its_partitions_and_takes_no_others(kind: Kind) -> None:
    split(kind, batches=1)
    assert len(read(kind.open().create(), partitions=[0, 1, 2])) == 40
    kind.open().create(Partitioning(3, ("k",)))
    with pytest.raises(ValueError, match="cannot have"):
        kind.open().create(Partitioning(4, ("k",)))
    fill(kind, 0)
    kind.commit(kind.open("whole").open_writer(1, "f"), 0, some(0))
    with pytest.raises(ValueError, match="cannot have"):
        kind.open("whole").create(Partitioning(2, ("k",)))
    with pytest.raises(ValueError, match="must be 1, or more with a key"):
        Partitioning(2)


def test_a_stream_that_is_not_split_is_one_partition(kind: Kind) -> None:
    channel, _ = fill(kind, 3)
    assert read(channel, partitions=[0]) == read(channel)
    assert read(channel, partitions=[1]) == []
    last = channel.last()
    assert last is not None
    assert (last.rows_in([0]), last.rows_in([1]), last.parts) == (3, 0, ())


def test_readers_of_some_partitions_hold_what_they_have_not_passed(kind: Kind) -> None:
    channel = kind.open().create(Partitioning(2, ("k",)))
    channel.register("a~0")
    channel.register("b~1")
    writer = channel.open_writer(1, "f")
    for batch in range(10):
        kind.commit(writer, batch, some(batch, 8))
    half = channel.reach(BEGINNING, 5)
    channel.passed("a~0", channel.end())
    channel.passed("b~1", half)
    channel.retain()
    left = read(channel, half, partitions=[1])
    assert left == [row for row in sorted(row for batch in range(5, 10) for row in some(batch, 8)) if row in left]
    assert sum(manifest.rows_in([1]) for _, manifest in channel.commits(half, channel.end())) == len(left) > 0


# ---- by chance, and with planted faults


@pytest.mark.parametrize(
    ("name", "seed"), [*((name, seed) for name in ("memory", "folder") for seed in range(12)), ("kafka", 0)]
)
def test_whatever_crashes_every_record_is_there_once_and_read_once(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storm(kind_of(name, tmp_path, monkeypatch, lambda: None), random.Random(seed))


def storm(kind: Kind, chance: random.Random) -> None:
    """A writer and readers that crash at any point, and are begun again by others that know nothing of them."""
    kind.open().create(Partitioning(2, ("k",)))
    parts: dict[str, list[int] | None] = {"all~in": None, "even~in": [0], "odd~in": [1]}
    for reader in parts:
        kind.open().register(reader)
    got: dict[str, list[Row]] = {reader: [] for reader in parts}
    places: dict[str, Position] = dict.fromkeys(parts, BEGINNING)
    epoch, writer, batch = 1, kind.open().open_writer(1, "f"), 0
    while batch < 30:
        what = chance.random()
        if what < 0.15:  # the writer crashes, perhaps half way; another begins with the batch before
            if chance.random() < 0.5 and not writer.written(batch):
                writer.write(kind.records([{"k": "half", "v": -1}]), [])
            old, epoch = writer, epoch + 1
            writer, batch = kind.open().open_writer(epoch, "f"), max(0, batch - 1)
            with pytest.raises(Fenced):
                kind.commit(old, batch, some(batch))
        elif what < 0.6:
            if not writer.written(batch):
                kind.commit(writer, batch, some(batch, chance.randrange(1, 6)))
            batch += 1
        elif what < 0.7:
            kind.open().retain()
        else:
            reader = chance.choice(list(parts))
            start = kind.open().place(reader)
            assert start == places[reader]
            end = kind.open().reach(start, chance.randrange(1, 5))
            rows = read(kind.open(), start, end, parts[reader])
            if chance.random() < 0.8:  # else it crashes before it has said so, and reads again
                got[reader] += rows
                places[reader] = end
                kind.open().passed(reader, end)
    for reader, taken in parts.items():
        got[reader] += read(kind.open(), places[reader], partitions=taken)
    assert len(got["all~in"]) == len(set(got["all~in"]))
    assert sorted(got["all~in"]) == sorted(got["even~in"] + got["odd~in"])
    assert len(got["all~in"]) == _last(kind).rows_total
    assert all(k != "half" for k, _ in got["all~in"])


def _last(kind: Kind) -> Manifest:
    last = kind.open().last()
    assert last is not None
    return last


def _no_fence(self: MemoryWriter, manifest: Manifest) -> Manifest:
    self.epoch = self.channel.held.epoch
    return _commit(self, manifest)


def _early(self: MemoryChannel) -> None:
    self.held.kept_from = max((self._after(at) for at, _ in self.held.readers.values()), default=0)
    self.held.rows = {key: rows for key, rows in self.held.rows.items() if key[0] >= self.held.kept_from}


def _one_more(self: MemoryChannel, start: Position, commits_max: int) -> Position:
    return _reach(self, start, commits_max + 1)


_commit, _reach, _pieces = MemoryWriter.commit, MemoryChannel.reach, MemoryChannel.pieces
FAULTS: dict[str, tuple[Any, str, Callable[..., Any], list[Callable[[Kind], None]]]] = {
    "no fence at the commit": (
        MemoryWriter, "commit", _no_fence,
        [test_a_lower_epoch_can_neither_claim_nor_commit, test_a_fence_stops_the_writer_it_passes_and_only_rises],
    ),
    "a restart forgets what was committed": (
        MemoryWriter, "written", lambda self, batch: False,
        [test_a_batch_that_was_committed_is_known_after_a_restart_and_lies_there_once],
    ),
    "the quickest reader decides what is removed": (
        MemoryChannel, "retain", _early, [test_what_all_readers_have_passed_is_removed_and_nothing_earlier],
    ),
    "nothing is ever removed": (
        MemoryChannel, "retain", lambda self: None,
        [test_what_all_readers_have_passed_is_removed_and_nothing_earlier],
    ),
    "a batch is too long": (MemoryChannel, "reach", _one_more, [test_a_batch_takes_no_more_commits_than_it_may]),
    "who registers again starts over": (
        MemoryChannel, "register", lambda self, reader: self.passed(reader, BEGINNING, False),
        [test_a_reader_keeps_its_place_and_is_known_to_all_who_open_the_stream],
    ),
    "partitions are not told apart": (
        MemoryChannel, "pieces",
        lambda self, manifests, partitions=None: _pieces(self, manifests),
        [test_each_record_lies_in_exactly_one_partition_and_a_key_always_in_the_same],
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_the_suite_notices_a_planted_fault(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, faulty, noticed_by = FAULTS[fault]
    for number, test in enumerate(noticed_by):
        with monkeypatch.context() as patch:
            kind = kind_of("memory", tmp_path / str(number), patch, lambda: None)
            patch.setattr(owner, name, faulty)
            with pytest.raises((AssertionError, pytest.fail.Exception, Removed, Fenced, IndexError)):
                test(kind)
