"""How is a fragment on users' files made to run a batch without records? By a small file in a folder that it reads."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from weft.spark.channels.manifest import END_TIME_US
from weft.spark.channels.reader import TIME
from weft.spark.storage.disk import Disk

TICKS_SUFFIX = "_ticks"
END = "end"  # the tick that closes every window


def tick(folder: Path, name: str, disk: Disk) -> None:
    """Make a fragment on sources run a batch: to send what was due, or with the name END to close every window."""
    disk.make(folder)
    disk.replace(folder / f"{name}.json", content_of(name))


def content_of(name: str) -> bytes:
    """What a tick says follows from its name."""
    moment = datetime.fromtimestamp(END_TIME_US / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return (json.dumps({TIME: moment} if name == END else {}) + "\n").encode()
