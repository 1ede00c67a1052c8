"""How do Spark's readers start quickly? As children of a process that has imported what they need.

Spark starts a Python process for every channel and timed source that a query reads, and each takes 0.4 s of CPU to
import pyspark before it answers: most of what a move, a restart or the start of a wide deployment waits for. Spark
starts them with the interpreter it is told to use, so it is told of a small script. For a reader the script asks the
forker, a process beside this one, to fork: the child takes on the environment that Spark gave the script and connects
back to Spark as the reader would have. Anything else, and everything where the forker does not live, the script hands
to the interpreter itself.

    FOLDER/python   the script
    FOLDER/ask      a pipe: process ids of scripts that want a reader
    FOLDER/ID.env   the environment of one of them
    FOLDER/ready    the forker's own process id, there once it takes requests

The script stays, asleep, as the process that Spark believes to be the reader; it is ended when the reader ends. The
forker ends with the process that started it, and takes all of them with it, and that one's temporary folder.
"""

from __future__ import annotations

import os
import runpy
import select
import signal
import stat
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

from weft.spark.storage import temporary

READER = "pyspark.sql.streaming.python_streaming_source_runner"
PRELOADED = (READER, "pyarrow", "weft.spark.channels.reader", "weft.spark.sources.rate")
LOOK_S = 0.2
SCRIPT = """#!/bin/sh
here={folder}
if [ "$1 $2" = "-m {reader}" ] && [ -f "$here/ready" ] && kill -0 "$(cat "$here/ready")" 2>/dev/null; then
    env -0 > "$here/$$.env" && echo $$ > "$here/ask" && exec sleep 2147483647
fi
exec {python} "$@"
"""

_folder: Path | None = None


def interpreter() -> str:
    """What Spark is told to start its Python processes with; one forker serves all sessions of this process."""
    global _folder  # noqa: PLW0603
    if os.name != "posix":
        return sys.executable
    if _folder is None or not _folder.is_dir():
        _folder = temporary.claim() / "readers"
        _folder.mkdir(mode=0o700)
        os.mkfifo(_folder / "ask")
        script = _folder / "python"
        script.write_text(SCRIPT.format(folder=_folder, reader=READER, python=sys.executable))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        # Threads do not survive a fork: none may be started by what is imported.
        quiet = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "weft.spark.session.reader_processes", str(_folder), str(os.getpid())]
        # What readers print is for the log, as with those that Spark starts itself.
        # A session of its own: it sees to what is left where everything that was started from one place is killed.
        subprocess.Popen(command, env=quiet, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
    return str(_folder / "python")


class ReaderForker:
    """Forks reader processes; when one exits, ends the script that Spark watches in its place."""

    def __init__(self, folder: Path, parent: int) -> None:
        self.folder = folder
        self.parent = parent
        self.children: dict[int, int] = {}
        self.environment = b""

    def serve(self) -> None:
        """Take requests for as long as the parent lives."""
        asked = os.open(self.folder / "ask", os.O_RDWR | os.O_CLOEXEC)
        (self.folder / "ready").write_text(str(os.getpid()))
        while os.getppid() == self.parent:
            readable, _, _ = select.select([asked], [], [], LOOK_S)
            if readable:
                for script in os.read(asked, 4096).split():
                    if self.fork(int(script)):
                        os.close(asked)
                        become_reader(self.environment)
            self.reap()

    def fork(self, script: int) -> bool:
        """A reader in the place of a script; True in the child."""
        path = self.folder / f"{script}.env"
        self.environment = path.read_bytes()
        path.unlink()
        child = os.fork()
        if child:
            self.children[child] = script
        return child == 0

    def reap(self) -> None:
        """Scripts whose readers have ended, end."""
        while self.children:
            child, _ = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                return
            with suppress(ProcessLookupError):
                os.kill(self.children.pop(child), signal.SIGTERM)

    def close(self) -> None:
        """Nothing outlives the parent, and what it had in temporary space goes too."""
        for process in (*self.children, *self.children.values()):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        temporary.remove(self.folder)
        temporary.remove_after(self.folder.parent)


def become_reader(environment: bytes) -> None:
    """Go on as Spark would have started it; never returns."""
    code = 1
    try:
        pairs = (line.partition(b"=") for line in environment.split(b"\0") if line)
        os.environb.clear()
        os.environb.update({key: value for key, _, value in pairs})
        before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:] = list(dict.fromkeys([path for path in before if path and not path.endswith(".zip")] + sys.path))
        sys.argv = [READER]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that it is imported already is the point
            runpy.run_module(READER, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def main() -> None:
    """Import what readers need, then serve."""
    folder, parent = Path(sys.argv[1]), int(sys.argv[2])
    forker = ReaderForker(folder, parent)
    # Ctrl-C is the parent's to answer; readers would otherwise end under its feet.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for name in PRELOADED:
            __import__(name)
        forker.serve()
    except FileNotFoundError:
        if folder.is_dir():
            raise  # else the parent ended before anything was asked, and has tidied up
    finally:
        forker.close()


if __name__ == "__main__":
    main()
