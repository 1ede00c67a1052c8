"""What is in a state folder besides files? A room for each kind of thing."""

from __future__ import annotations

import re
from pathlib import Path

STREAMS, RECORDINGS, FRAGMENTS, HEADS, LATE, LEFT_OUT, CONSOLE, TOPICS, LOGS, SITES = (
    "streams", "recordings", "fragments", "heads", "late", "left-out", "console", "topics", "logs", "sites",
)  # fmt: skip
ROOMS = (STREAMS, RECORDINGS, FRAGMENTS, HEADS, LATE, LEFT_OUT, CONSOLE, TOPICS, LOGS, SITES)
_OF_FOLDERS = (STREAMS, RECORDINGS, FRAGMENTS, LATE, LEFT_OUT, CONSOLE, TOPICS)
_LOG = re.compile(r"(console|spark|errors|agent)\.log(\.\d+)?|log4j2\.properties")


def others_in(room: Path) -> list[Path]:
    """Files that lie in a room and that no run puts there."""
    if room.name not in (*_OF_FOLDERS, LOGS):
        return []
    files = [entry for entry in room.iterdir() if entry.is_symlink() or not entry.is_dir()]
    return [file for file in files if room.name != LOGS or not _LOG.fullmatch(file.name)]
