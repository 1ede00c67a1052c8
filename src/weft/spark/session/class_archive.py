"""How does Java start sooner? It maps the classes that a first run has loaded from an archive in the user's cache.

    CACHE/weft/classes-4f0c9b12.jsa    one for each Java and each Spark, made once, when a first run's Java ends;
                                       WEFT_CLASSES names another folder than CACHE/weft

An archive of another Java or Spark has another name; one that Java finds unfit all the same is passed over by it. Only
one process at a time makes one. It appears whole and synced, so that nobody ever maps half of it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pyspark

from weft.spark.storage.cache import user_cache

FOLDER = "WEFT_CLASSES"
MAKES_S_MAX = 60.0
MADE = "classes.jsa"
QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


class ClassArchive:
    """The archive of this machine's Java and this Spark: mapped where it is there, else made by one process."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self._made: Path | None = None
        self._lock: int | None = None

    def options(self, folder: Path) -> str:
        """What Java is told; where there is no archive yet, and nobody makes one, it is to make one in a folder."""
        java = java_command()
        if java is None:
            return ""
        with suppress(OSError, RuntimeError):  # without a cache, or a home, Java starts as ever
            self.path = classes_folder() / f"classes-{_key(java)}.jsa"
            if self.path.is_file():
                return f'"-XX:SharedArchiveFile={self.path}" {QUIET}'
            if self._lock is None and not self._claim(self.path):
                return ""
            self._made = folder / MADE
            return f'"-XX:ArchiveClassesAtExit={self._made}" {QUIET}'
        return ""

    def is_made(self) -> bool:
        """True if Java, when it ends, leaves an archive."""
        return self._made is not None

    def keep(self) -> None:
        """Java has ended: what it has left goes to its place, whole."""
        made, self._made = self._made, None
        if made is None or self.path is None:
            return
        with suppress(OSError):
            if made.is_file():
                beside = self.path.with_suffix(f".{os.getpid()}")
                shutil.copyfile(made, beside)
                with open(beside, "rb+") as file:
                    os.fsync(file.fileno())
                os.replace(beside, self.path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _claim(self, path: Path) -> bool:
        """Be the one who makes it; False where another process does."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        self._lock = lock
        return True


def classes_folder() -> Path:
    """Where archives are kept."""
    told = os.environ.get(FOLDER, "")
    return Path(told) if os.path.isabs(told) else user_cache()


def java_command() -> Path | None:
    """The Java that Spark will start."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    return Path(found).resolve() if found and os.path.exists(found) else None


def _key(java: Path) -> str:
    about = java.stat()
    told = (java, about.st_mtime_ns, about.st_size, pyspark.__version__, pyspark.__file__, sys.platform)
    return sha256(repr(told).encode()).hexdigest()[:12]
