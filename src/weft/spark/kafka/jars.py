"""Where do jars come from that Spark does not bring along? Through the Ivy that it does, once, to the user's cache.

    CACHE/weft/jars/NAME/*.jar    whole or not there; WEFT_JARS names another folder than CACHE/weft/jars

Ivy gets a home of its own: it takes a module description that lies in the user's repository for the whole thing, and
fails where the jar beside it is missing.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from weft.spark.session.class_archive import java_command
from weft.spark.storage.cache import user_cache

FETCH_S_MAX = 240.0
FOLDER = "WEFT_JARS"
_CONNECT_MS = 15_000


class NoJars(RuntimeError):
    """Jars cannot be had here; the text says which, and why."""


def jars_folder() -> Path:
    """Where fetched jars are kept."""
    told = os.environ.get(FOLDER, "")
    return Path(told) if os.path.isabs(told) else user_cache() / "jars"


def cached(name: str) -> list[Path]:
    """The jars that were fetched under a name; none where they were not."""
    return sorted((jars_folder() / name).glob("*.jar"))


def fetched(name: str, modules: Sequence[Sequence[str]]) -> list[Path]:
    """The jars of modules with all that they need, fetched where they are not cached; NoJars where they cannot be had.

    A module is its organisation, name and revision, which may be a range; with a fourth word, `alone`, it comes without
    what it needs.
    """
    if cached(name):
        return cached(name)
    with _one_at_a_time(name), tempfile.TemporaryDirectory(dir=_made(), prefix=f".{name}-") as beside:
        if not cached(name):
            for organisation, module, revision, *alone in modules:
                _retrieve(Path(beside), organisation, module, revision, bool(alone))
            whole = Path(beside) / "jars"
            os.replace(whole, jars_folder() / name)
    return cached(name)


def _made() -> Path:
    folder = jars_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NoJars(f"{folder} cannot be made ({error.strerror}); name another folder with {FOLDER}") from error
    return folder


@contextmanager
def _one_at_a_time(name: str) -> Iterator[None]:
    """Let one process fetch, and the others wait for what it brings."""
    lock = os.open(_made() / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + FETCH_S_MAX
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise NoJars(f"another process has been fetching {name} for {FETCH_S_MAX:.0f} s") from None
                time.sleep(0.2)
        yield
    finally:
        os.close(lock)


def _retrieve(beside: Path, organisation: str, module: str, revision: str, alone: bool) -> None:
    """Fetch one module; of a range the newest release."""
    for _ in range(5):
        before = set((beside / "jars").glob("*.jar"))
        _ask_ivy(beside, organisation, module, revision, alone)
        new = [path for path in (beside / "jars").glob(f"{module}-*.jar") if path not in before]
        early = next((path for path in new if re.search(r"-(preview|rc|alpha|beta|M)\d*", path.stem)), None)
        if early is None or "," not in revision:
            return
        # A range also takes what is not released yet: ask again for less than that.
        early.unlink()
        revision = f"{revision.partition(',')[0]},{early.stem.removeprefix(f'{module}-')})"


def _ask_ivy(beside: Path, organisation: str, module: str, revision: str, alone: bool) -> None:
    java = java_command()
    if java is None:
        raise NoJars("Java was not found: not in JAVA_HOME, not on PATH")
    # Jars that Ivy has once seen stay beside the ones it was asked for, so that a second module finds them.
    ivy = jars_folder() / ".ivy"
    command = [
        str(java), "-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Duser.home={ivy}", f"-Divy.default.ivy.user.dir={ivy}",
        f"-Dsun.net.client.defaultConnectTimeout={_CONNECT_MS}", f"-Dsun.net.client.defaultReadTimeout={_CONNECT_MS}",
        "-cp", str(_ivy()), "org.apache.ivy.Main", "-warn", "-dependency", organisation, module, revision,
        "-confs", "master" if alone else "default", *(["-notransitive"] if alone else []), "-types", "jar", "bundle",
        "-retrieve", f"{beside / 'jars'}/[artifact]-[revision](-[classifier]).[ext]",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        raise NoJars(f"{organisation}:{module}:{revision} did not come within {FETCH_S_MAX:.0f} s") from None
    if done.returncode != 0 or not (beside / "jars").is_dir():
        raise NoJars(f"{organisation}:{module}:{revision} cannot be had: {_why(done.stdout + done.stderr)}")


def _why(said: str) -> str:
    """The line of Ivy's that tells most."""
    lines = [line.strip(" :\t") for line in said.splitlines() if line.strip(" :\t")]
    telling = ("not found", "UnknownHost", "Connect", "timed out", "Unresolved", "SSL")
    found = [line for line in lines if any(word in line for word in telling)]
    network = [line for line in found if "not found" not in line]
    return (network or found or lines or ["Ivy said nothing"])[0][:200]


def _ivy() -> Path:
    import pyspark

    found = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise NoJars("this Spark brings no Ivy along, by which jars are fetched")
    return found[-1]


def forget(name: str) -> None:
    """Remove what was fetched under a name."""
    shutil.rmtree(jars_folder() / name, ignore_errors=True)
