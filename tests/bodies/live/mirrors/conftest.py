from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bodies.live.mirrors.mirrored import Places, mirrored_kind
from tests.bodies.live.wire.ports import Ports
from tests.spark.channels.channel_kinds import Kind
from weft.bodies.live.wire.authority import make_keys


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys of a deployment with four sites."""
    folder = tmp_path_factory.mktemp("keys") / "keys"
    make_keys(folder, ["a", "b", "c", "d"])
    return folder


@pytest.fixture
def ports(keys: Path) -> Iterator[Ports]:
    """Processes that end with the test."""
    made = Ports(keys)
    yield made
    made.close()


@pytest.fixture
def places(ports: Ports, tmp_path: Path) -> Iterator[Places]:
    """Two sites that share no folder."""
    made = Places(ports, tmp_path)
    yield made
    made.close()


@pytest.fixture
def kind(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """A stream from one to the other, as the suite sees it."""
    return mirrored_kind(places, tmp_path, monkeypatch)
