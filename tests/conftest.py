"""What all tests share: one Spark session per test process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import sharing_out

# Files that take long, the longest first, with Spark and then without: the short ones fill up what is left at the end.
LONGEST = (
    "bodies/live/test_placements.py",
    "bench/test_benchmarks.py",
    "bodies/live/test_losing.py",
    "bodies/live/test_adding.py",
    "spark/session/test_session.py",
    "bodies/live/test_crashes.py",
    "bodies/live/test_safety.py",
    "spark/channels/test_channels.py",
    "bodies/live/test_between.py",
    "bodies/live/test_file_changed.py",
    "bodies/live/test_balancing_on_spark.py",
    "examples/test_taxi.py",
    "bodies/live/test_moves.py",
    "spark/ordering/test_dataframe.py",
    "examples/test_nexmark.py",
    "bodies/live/test_kafka.py",
    "spark/fragments/test_wiring.py",
    "bodies/live/test_measurements.py",
    "bodies/live/test_live.py",
    "docs/test_examples.py",
    "spark/storage/test_power_cut.py",
    "spark/storage/test_damage.py",
    "cli/test_errors.py",
    "bodies/live/processes/test_processes.py",
    "bodies/live/test_balancing.py",
    "bodies/explorer/test_balancing_worlds.py",
    "bodies/explorer/test_move_worlds.py",
    "bodies/test_same_changes.py",
    "bodies/live/processes/test_apart.py",
    "plan/search/test_promises.py",
    "plan/policies/test_refine.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest files where several processes share the tests out."""
    if not hasattr(config, "workerinput"):
        return
    here = Path(__file__).parent
    rank = {str(here / name): at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(str(item.path), len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means."""
    return sharing_out.processes()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What `--dist loadfile` means."""
    return sharing_out.SharingOut(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The session that live runs take, since it is there already.

    It maps an archive of classes, but makes none: at the end of all tests that takes long, and is too late for them.
    """
    from weft.spark.session.class_archive import FOLDER, classes_folder
    from weft.spark.session.starting import start_session

    with pytest.MonkeyPatch.context() as patched:
        if not any(classes_folder().glob("*.jsa")):
            patched.setenv(FOLDER, os.devnull)
        session = start_session(tmp_path_factory.mktemp("logs"), slow=True)
    yield session
    session.stop()


@pytest.fixture(autouse=True, scope="session")
def _no_calibration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test depends on what `weft calibrate` measured on this machine: batches cost what is shipped."""
    from weft.spark.storage.cache import user_cache

    with pytest.MonkeyPatch.context() as patched:
        # What was fetched or made once is not fetched or made again.
        patched.setenv("WEFT_JARS", os.environ.get("WEFT_JARS") or str(user_cache() / "jars"))
        patched.setenv("WEFT_CLASSES", os.environ.get("WEFT_CLASSES") or str(user_cache()))
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for a deployment and what it reads and writes."""
    return tmp_path
