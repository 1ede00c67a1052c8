"""What reaches the disk, in which order, and how is damage noticed?

The order of writes, on which every promise about a power cut rests (each step is on disk before the next begins):

1. While a batch is worked out: its plan in Spark's checkpoint (`offsets/N`), the state it starts from, and what users'
   files it takes. Then the fragment's ledger names these files with their checksums.
2. Before a segment or a sink's batch is committed, and after that: its files, their folder, and the state that the
   batch has left.
3. The commit: the manifest is written, synced, linked under its number, and its folder synced. What is called
   committed from here on survives a power cut.
4. At a sink the files are then linked to where readers look, that folder is synced, and only then the first name goes.
5. The journal of the plan in force is written after the checkpoints that it names, before anything starts from them.
6. What a reader has passed is deleted one batch later than it could be, so that its last batch can be run again.

Notes that only help to notice damage (ledgers, heads, readers' places) are not synced: where one is missing or garbled,
what it speaks of is taken as it lies there. With `fsync` off nothing is synced, and the system decides when.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

FRESH = "`--fresh` starts over"
SYNCS_AT_ONCE = 8
_HEAD = b'{"crc32":"%08x","content":'
_HEAD_BYTES = len(_HEAD % 0)

_spent = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


class Damaged(RuntimeError):
    """A file of a state that is gone, garbled or disagrees with another; the text names it and says what helps."""

    def __init__(self, path: str | Path, what: str, remedy: str = f"bring it back from a copy; {FRESH}") -> None:
        self.path, self.what = Path(path), what
        super().__init__(f"{path}: {what}; {remedy}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (str(self.path), str(self))


def _again(path: str, text: str) -> Damaged:
    found = Damaged(path, "")
    found.args = (text,)
    return found


def seal(content: bytes) -> bytes:
    """A JSON document around another, with a checksum of it in front."""
    return _HEAD % zlib.crc32(content) + content + b"}"


def unseal(data: bytes, path: str | Path) -> bytes:
    """What was sealed; Damaged where that is not what lies there."""
    content = data[_HEAD_BYTES:-1]
    if not data:
        raise Damaged(path, "is empty")
    if data != seal(content):
        raise Damaged(path, "is cut off or garbled (its checksum differs)")
    return content


def read_sealed(path: str | Path) -> Any:
    """The value of a sealed file; FileNotFoundError where there is none, Damaged where it is garbled."""
    return msgspec.json.decode(unseal(content_of(path), path))


def content_of(path: str | Path) -> bytes:
    """What lies in a file; FileNotFoundError where there is none, Damaged where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        remedy = f"let it be read, or bring it back from a copy; {FRESH}"
        raise Damaged(path, f"cannot be read: {error.strerror}", remedy) from error


def read_note(path: str | Path) -> Any:
    """The value of a sealed note, None where there is none or it is garbled: it only helps to notice damage."""
    try:
        return read_sealed(path)
    except (FileNotFoundError, NotADirectoryError, Damaged):
        return None


def size_and_sum(path: str | Path) -> tuple[int, int]:
    """The size and the checksum of a file's content."""
    size = found = 0
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            size += len(piece)
            found = zlib.crc32(piece, found)
    return size, found


def verify(path: str | Path, size: int, crc: int, still: str) -> None:
    """Damaged where a file is gone or other than what was written, though it is `still` of use."""
    try:
        found = size_and_sum(path)
    except (FileNotFoundError, NotADirectoryError):
        raise Damaged(path, f"is gone, though {still}") from None
    except OSError as error:
        raise Damaged(path, f"cannot be read ({error.strerror}), though {still}") from error
    if found != (size, crc):
        raise Damaged(path, f"is damaged, though {still}: its {found[0]} bytes are not the {size} that were written")


def checked(path: str | Path, size: int, crc: int) -> bytes:
    """The content of a file; Damaged where it is gone or other than what was written."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        raise Damaged(path, "is gone, though records in it are still needed") from None
    except OSError as error:
        raise Damaged(path, f"cannot be read ({error.strerror}), though records in it are still needed") from error
    if len(content) != size or zlib.crc32(content) != crc:
        raise Damaged(path, f"is damaged: {len(content)} bytes of other content than the {size} that were written")
    return content


def spent_s() -> float:
    """Seconds that this thread has waited for syncs so far."""
    return getattr(_spent, "seconds", 0.0)


class Disk:
    """Writes, links and removes files, and syncs them where asked; one with `fsync` off never waits for the disk."""

    def __init__(self, fsync: bool = True) -> None:
        self.fsync = fsync

    def make(self, folder: Path) -> None:
        """Make a folder, and those above it, each known to the one it lies in; harmless where they exist."""
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for one in reversed(missing):
            try:
                one.mkdir(exist_ok=True)
            except (FileExistsError, NotADirectoryError) as error:
                taken = one if os.path.lexists(one) else one.parent
                raise Damaged(taken, "is a file in the place of a folder", f"take it away; {FRESH}") from error
        self.sync((), [one.parent for one in missing])

    def write(self, path: Path, content: bytes) -> None:
        """Write a file; whether it is on disk is not known until it is synced."""
        path.write_bytes(content)

    def replace(self, path: Path, content: bytes, sync: bool = True, after: Sequence[Path] = ()) -> None:
        """Replace a file so that a reader, or a power cut, finds the old or the new content, never a part.

        What must be on disk before it is synced along: `after`, files and folders.
        """
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
        try:
            self.write(temporary, content)
            if sync:
                self.sync([temporary, *after])
            self.rename(temporary, path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            if isinstance(error, IsADirectoryError):
                raise Damaged(path, "is a folder in the place of a file", f"take it away; {FRESH}") from error
            raise
        if sync:
            self.sync((), [path.parent])

    def seal(self, path: Path, value: Any, sync: bool = True, after: Sequence[Path] = ()) -> None:
        """Replace a file by a sealed value, on disk after all that it tells of."""
        self.replace(path, seal(msgspec.json.encode(value)), sync, after)

    def link(self, path: Path, name: Path) -> None:
        """Give a file a further name; FileExistsError where that is taken."""
        os.link(path, name)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file or folder another name, in one step."""
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        """Remove a file; harmless where there is none."""
        path.unlink(missing_ok=True)

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder with all that is in it; harmless where there is none."""
        shutil.rmtree(folder, ignore_errors=True)

    def sync(self, files: Iterable[Path], folders: Iterable[Path] = ()) -> None:
        """Wait until the content of files, and the names in folders, are on disk, in whatever order."""
        paths = list(dict.fromkeys([*files, *folders]))
        if not self.fsync or not paths:
            return
        begun = time.monotonic()
        # All at once: one write of the file system's journal serves several.
        others = [_syncs().submit(sync_one, path) for path in paths[1:]]
        sync_one(paths[0])
        for other in others:
            other.result()
        _spent.seconds = spent_s() + time.monotonic() - begun


def sync_one(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _syncs() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(SYNCS_AT_ONCE, thread_name_prefix="sync")
        return _pool
