"""What all tests share: one Spark session per test process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The session that live runs take, since it is there already."""
    from weft.spark.session.starting import start_session

    session = start_session(tmp_path_factory.mktemp("logs"))
    yield session
    session.stop()


@pytest.fixture(autouse=True, scope="session")
def _no_calibration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test depends on what `weft calibrate` measured on this machine: batches cost what is shipped."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for a deployment and what it reads and writes."""
    return tmp_path
