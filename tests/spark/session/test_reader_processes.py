"""Readers are forked, connect as Spark expects, and leave nothing behind."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.spark.session.reader_processes import READER

WAIT_S_MAX = 60.0
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")
PARENT = """
import time
from weft.spark.session.reader_processes import interpreter
print(interpreter(), flush=True)
time.sleep(600)
"""


def until(condition: object) -> None:
    """Wait for something, not for ever."""
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


@pytest.fixture
def parent() -> object:
    """A process with a forker."""
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()


def alive(process: int) -> bool:
    """Whether a process runs; one that only waits to be asked after does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_reader_is_a_fork_that_connects_and_ends_with_its_conversation(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    python = Path(parent.stdout.readline().strip())
    until((python.parent / "ready").exists)
    forker = int((python.parent / "ready").read_text())
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S_MAX)
        environment = {
            **os.environ,
            "PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1]),
            "PYTHON_WORKER_FACTORY_SECRET": "secret",
        }
        script = subprocess.Popen([str(python), "-m", READER], env=environment)
        conversation, _ = server.accept()
        with conversation:
            conversation.settimeout(WAIT_S_MAX)
            (length,) = struct.unpack(">i", conversation.recv(4))
            assert conversation.recv(length) == b"secret"
            conversation.sendall(struct.pack(">i", 2) + b"ok")
            (reader,) = struct.unpack(">i", conversation.recv(4))
            assert int(Path(f"/proc/{reader}/stat").read_text().rpartition(")")[2].split()[1]) == forker
            assert script.poll() is None
        script.wait(WAIT_S_MAX)
        until(lambda: not alive(reader))
    parent.kill()
    parent.wait()
    until(lambda: not alive(forker))
    assert not python.parent.exists()


def test_everything_else_is_the_interpreter_itself(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    python = parent.stdout.readline().strip()
    command = [python, "-c", "import sys; print(sys.executable)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == sys.executable


def test_who_comes_up_when_all_is_over_says_nothing(tmp_path: Path) -> None:
    words = ["-m", "weft.spark.session.reader_processes", str(tmp_path / "gone" / "readers"), str(os.getpid())]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")
