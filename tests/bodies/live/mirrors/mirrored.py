"""A stream between two sites that share no folder, seen as one channel: written at a, read at b, over TLS between."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from tests.bodies.live.wire.ports import Ports, until
from tests.spark.channels.channel_kinds import Kind
from weft.bodies.live.mirrors.mirroring import Mirroring
from weft.bodies.live.wire.parties import site
from weft.spark.channels.channel import Channel, Writer
from weft.spark.channels.folders import Folders
from weft.spark.channels.kinds import MIRROR
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.mirror import Mirror
from weft.spark.channels.partitions import WHOLE, Partitioning
from weft.spark.channels.position import Position, as_position
from weft.spark.storage.disk import Disk


class Places:
    """Sites with a folder and a port of their own."""

    def __init__(self, ports: Ports, root: Path, names: str = "ab", fsync: bool = False) -> None:
        self.ports = ports
        self.folders = {name: Folders(root / name, "run", Disk(fsync), MIRROR) for name in names}
        self.port = {name: ports.port(site(name)) for name in names}
        self.mirroring = {
            name: Mirroring(self.port[name], self.folders[name], ports.told.append) for name in names
        }  # fmt: skip
        for one in self.port.values():
            for name, other in self.port.items():
                assert other.address is not None
                one.know(site(name), other.address)

    def log(self, name: str, stream: str = "s") -> Mirror:
        """The log of a stream at a site."""
        found = self.folders[name].stream(stream)
        assert isinstance(found, Mirror)
        return found

    def same(self, one: str = "a", other: str = "b", stream: str = "s") -> None:
        """Wait until a copy has all that its home has."""
        home, copy = self.log(one, stream), self.log(other, stream)
        until(lambda: copy.next_segment() >= home.next_segment() and copy.epoch() >= home.epoch())

    def close(self) -> None:
        """Follow nothing any more."""
        for one in self.mirroring.values():
            one.close()


class Mirrored(Channel):
    """Writes at a, reads at b; whoever reads waits until the copy has what was written."""

    places: Places

    def __init__(self, name: str) -> None:
        self.name = name
        self.home, self.copy = self.places.log("a", name), self.places.log("b", name)
        self.places.mirroring["b"].follow(name, "a")

    def there(self) -> Mirror:
        """The copy, when it has come as far as the home."""
        if self.home.manifests.is_dir():
            self.places.same(stream=self.name)
        return self.copy

    @classmethod
    def of_stream(cls, state: Path, name: str, run: str, disk: Disk) -> Self:
        return cls(name)

    @classmethod
    def of_options(cls, options: dict[str, str]) -> Self:
        return cls(options["name"])

    @classmethod
    def names(cls, state: Path) -> list[str]:
        return Mirror.names(cls.places.folders["a"].state)

    def options(self) -> dict[str, str]:
        return {"name": self.name}

    # ---- the writer's side
    @property
    def place_of_records(self) -> str:
        return self.home.place_of_records

    def is_there(self) -> bool:
        return self.home.is_there()

    def create(self, partitioning: Partitioning = WHOLE) -> Self:
        self.home.create(partitioning)
        return self

    def last(self) -> Manifest | None:
        return self.there().last() if self.home.is_there() else None

    def epoch(self) -> int:
        return self.home.epoch()

    def fence(self, epoch: int) -> None:
        self.home.fence(epoch)

    def open_writer(self, epoch: int, writer: str) -> Writer:
        return self.home.open_writer(epoch, writer)

    def write_aside(self, records: Any, run: int, measured: list[str], few: bool = False) -> Written:
        return self.home.write_aside(records, run, measured, few)

    def forget_aside(self, run: int | None = None) -> None:
        self.home.forget_aside(run)

    # ---- the readers' side
    def inspect(self, needed: Position | None) -> None:
        self.home.inspect(needed)
        self.there().inspect(needed)

    def end(self) -> Position:
        return self.there().end()

    def reach(self, start: Position, commits_max: int) -> Position:
        return self.there().reach(start, commits_max)

    def upto(self, position: Position) -> Manifest | None:
        return self.there().upto(position)

    def commits(self, start: Position, end: Position) -> Iterator[tuple[Position, Manifest]]:
        return self.there().commits(start, end)

    def pieces(self, manifests: Iterable[Manifest], partitions: Collection[int] | None = None) -> list[Any]:
        return self.copy.pieces(manifests, partitions)

    def read(self, piece: Any, columns: list[str]) -> Any:
        return self.copy.read(piece, columns)

    def known(self) -> list[str]:
        return self.copy.known()

    def register(self, reader: str) -> None:
        self.there().register(reader)

    def forget(self, reader: str) -> None:
        self.copy.forget(reader)

    def passed(self, reader: str, position: Position, has_read: bool = True) -> None:
        self.copy.passed(reader, position, has_read)

    def place(self, reader: str) -> Position:
        return as_position(self.copy.place(reader))

    def has_read(self, reader: str) -> bool:
        return self.copy.has_read(reader)

    def retain(self) -> None:
        """What readers have passed has come to the home, which removes it; so does the copy."""
        self.there()
        until(lambda: self.home.places() == self.copy.places(), "the home did not hear what readers passed")
        self.home.retain()
        self.copy.retain()

    def lacks(self, position: Position) -> Path | None:
        return self.home.lacks(position)


def mirrored_kind(places: Places, tmp_path: Path, monkeypatch: Any) -> Kind:
    """The suite's kind for two sites."""
    from tests.spark.channels.channel_kinds import _arrow_parquet
    from weft.spark.channels import footers
    from weft.spark.channels.kinds import CHANNELS

    monkeypatch.setattr(footers, "write_parquet", _arrow_parquet)
    monkeypatch.setitem(CHANNELS, "mirrored", Mirrored)
    monkeypatch.setattr(Mirrored, "places", places, raising=False)
    return Kind(tmp_path, "mirrored", list)
