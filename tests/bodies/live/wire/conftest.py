from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bodies.live.wire.ports import Ports
from weft.bodies.live.wire.authority import make_keys


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys of a deployment with three sites."""
    folder = tmp_path_factory.mktemp("keys") / "keys"
    make_keys(folder, ["a", "b", "c"])
    return folder


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys of the same names that another authority has made."""
    folder = tmp_path_factory.mktemp("foreign") / "keys"
    make_keys(folder, ["a", "b", "c"])
    return folder


@pytest.fixture
def ports(keys: Path) -> Iterator[Ports]:
    """Processes that end with the test."""
    made = Ports(keys)
    yield made
    made.close()
