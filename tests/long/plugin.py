"""Inside pytest: runs the units that are asked for in their order, and tells of each when it begins and ends."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

ORDER, TOLD = "WEFT_LONG_ORDER", "WEFT_LONG_TOLD"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what is asked for, in the order asked for."""
    asked = {unit: at for at, unit in enumerate(Path(os.environ[ORDER]).read_text(encoding="utf-8").splitlines())}
    gone = [item for item in items if item.nodeid not in asked]
    items[:] = sorted((item for item in items if item.nodeid in asked), key=lambda item: asked[item.nodeid])
    config.hook.pytest_deselected(items=gone)


def tell(**what: Any) -> None:
    with open(os.environ[TOLD], "a", encoding="utf-8") as file:
        file.write(json.dumps({"at_s": time.time(), "pid": os.getpid(), **what}) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Told by the process that runs it, so that what was under way is known after any end."""
    tell(unit=item.nodeid, state="begun")
    done = yield
    tell(unit=item.nodeid, state="ended")
    return done


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """How each part of a test ended; with several processes the one that leads tells it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.when == "call" or report.outcome != "passed":
        text = str(report.longrepr)[-4000:] if report.failed else ""
        tell(unit=report.nodeid, state=report.outcome, seconds=report.duration, text=text)
