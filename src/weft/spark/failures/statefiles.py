"""Which file of a checkpoint is broken? Spark says that it cannot read the state, and not always where."""

from __future__ import annotations

import os
from pathlib import Path

MAGIC = b"LZ4Block"
HEADER_BYTES = 21
FILES_MAX = 10_000


def broken_file(checkpoint: str) -> str | None:
    """A state file that is not whole, the newest where there are several; None where all look right."""
    files = [path for kind in ("delta", "snapshot") for path in Path(checkpoint, "state").rglob(f"*.{kind}")]
    newest_first = sorted(files[:FILES_MAX], key=lambda path: -_changed(path))
    return next((str(path) for path in newest_first if not is_whole(path)), None)


def is_whole(path: Path) -> bool:
    """Whether a file is a chain of compressed blocks that unpack, with the empty one at its end."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    at = 0
    while data[at : at + len(MAGIC)] == MAGIC and len(data) >= at + HEADER_BYTES:
        packed = int.from_bytes(data[at + 9 : at + 13], "little")
        size = int.from_bytes(data[at + 13 : at + 17], "little")
        if size == 0:
            return True
        block = data[at + HEADER_BYTES : at + HEADER_BYTES + packed]
        if len(block) < packed or not _unpacks(block, size, data[at + 8] & 0xF0):
            return False
        at += HEADER_BYTES + packed
    return False


def _unpacks(block: bytes, size: int, method: int) -> bool:
    import pyarrow as pa

    if method != 0x20:  # stored as it is
        return len(block) == size
    try:
        pa.Codec("lz4_raw").decompress(block, size)
    except (OSError, ValueError):
        return False
    return True


def _changed(path: Path) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0.0
