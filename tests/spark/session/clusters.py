"""A standalone cluster on loopback, from the installed pyspark alone: a master and workers, ended by their ids."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
STARTS_S_MAX = 240.0
ENDS_S_MAX = 30.0


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Cluster:
    """One master and some workers, each a process of this machine."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self.workers = workers
        self.master = f"spark://127.0.0.1:{_free_port()}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Cluster:
        self.folder.mkdir(parents=True, exist_ok=True)
        where = ["--host", "127.0.0.1", "--webui-port", "0"]
        try:
            port = self.master.rpartition(":")[2]
            self._start("master", "org.apache.spark.deploy.master.Master", *where, "--port", port)
            self._wait("master", "I have been elected leader")
            for number in range(self.workers):
                room = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / f"work-{number}")]
                self._start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *where, *room, self.master)
            for number in range(self.workers):
                self._wait(f"worker-{number}", "Successfully registered with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, name: str, *words: str) -> None:
        environment = {
            **os.environ, "SPARK_HOME": str(HOME), "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }  # fmt: skip
        for own in ("PYTHONPATH", "PYSPARK_PYTHON"):
            environment.pop(own, None)
        with open(self.folder / f"{name}.out", "wb") as out:
            self.processes[name] = subprocess.Popen(
                [str(HOME / "bin" / "spark-class"), *words], env=environment, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip

    def _wait(self, name: str, word: str) -> None:
        deadline = time.monotonic() + STARTS_S_MAX
        while word not in (said := (self.folder / f"{name}.out").read_text(errors="replace")):
            assert self.processes[name].poll() is None, said[-2000:]
            assert time.monotonic() < deadline, said[-2000:]
            time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(ENDS_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(ENDS_S_MAX)
