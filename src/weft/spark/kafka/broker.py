"""A broker for trials and tests: one process, on loopback, in a folder of its own, ended by its process id.

    FOLDER/broker.json          {"pid": 4711, "started": 81234, "bootstrap": "127.0.0.1:41093", "temporary": true}
    FOLDER/server.properties    what it was started with; its ports are those of the start before, where they are free
    FOLDER/broker.log           what it said
    CACHE/weft/kafka/folder     the folder of the broker that was started without one

It is a single node in KRaft mode (no ZooKeeper), with little memory, and makes no topic by itself: a wrong name is an
error and no empty topic.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from weft.spark.kafka.jars import NoJars, cached, fetched
from weft.spark.session.class_archive import java_command
from weft.spark.storage import temporary
from weft.spark.storage.cache import user_cache

VERSION = "4.3.1"
JARS = f"kafka-{VERSION}"
MODULES = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    # Without it nothing that a broker says is heard.
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4", "alone"),
)
RECORD, SETTINGS = "broker.json", "server.properties"
PREFIX = "weft-kafka-"
HEAP = "256m"
STARTS_S_MAX = 180.0
ENDS_S_MAX = 30.0
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{second}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{second}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
num.network.threads=2
num.io.threads=2
num.recovery.threads.per.data.dir=1
log.cleaner.dedupe.buffer.size=16777216
message.max.bytes=16777216
"""
LOG4J = """status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


class NoBroker(RuntimeError):
    """A broker cannot be started, or there is none; the text says why."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that was started: its process, where it listens, its folder, and whether that goes with it."""

    pid: int
    started: int | None
    bootstrap: str
    folder: str
    temporary: bool

    @property
    def port(self) -> int:
        """Where it listens on loopback."""
        return int(self.bootstrap.rpartition(":")[2])

    def lives(self) -> bool:
        """True if its process is there, and no other that was given the same number since."""
        if self.started is None:  # no way to tell processes apart here
            return _answers(self.port)
        return temporary.started(self.pid) == self.started


def up(folder: Path | None = None, port: int | None = None) -> Broker:
    """Start a broker, or find the one that runs; without a folder its data are temporary.

    NoBroker where it does not start, NoJars where what it consists of cannot be had.
    """
    running = find(folder)
    if running is not None and running.lives():
        return running
    java = java_command()
    if java is None:
        raise NoJars("Java was not found: not in JAVA_HOME, not on PATH")
    fetched(JARS, MODULES)
    is_temporary = folder is None
    if running is not None and running.temporary:
        _remove(running)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX)) if folder is None else folder.absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NoBroker(f"{folder} cannot be made: {error.strerror}") from error
    if is_temporary:
        record = _default()
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record.write_text(f"{folder}\n", encoding="utf-8")
    return _start(java, folder, _ports(folder, port), is_temporary)


def down(folder: Path | None = None) -> Broker | None:
    """End a broker in order, by force where that takes too long; None where none runs. Temporary data are removed."""
    found = find(folder)
    if found is None:
        return None
    lived = found.lives()
    if lived:
        with suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGTERM)
            if not _gone(found, ENDS_S_MAX):
                os.kill(found.pid, signal.SIGKILL)
                _gone(found, ENDS_S_MAX)
    if found.temporary:
        _remove(found)
    else:
        Path(found.folder, RECORD).unlink(missing_ok=True)
    return found if lived else None


def find(folder: Path | None = None) -> Broker | None:
    """The broker of a folder, or the one that was started without one, be it alive or not; None where none was."""
    if folder is None:
        try:
            folder = Path(_default().read_text(encoding="utf-8").strip())
        except OSError:
            return None
    try:
        told = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return Broker(**told)
    except (OSError, ValueError, TypeError):
        return None


def _default() -> Path:
    return user_cache() / "kafka" / "folder"


def _remove(broker: Broker) -> None:
    """Remove temporary data: only a folder that is called as ours are, and that the record names."""
    if Path(broker.folder).name.startswith(PREFIX):
        temporary.remove(Path(broker.folder))
    _default().unlink(missing_ok=True)


def _ports(folder: Path, asked: int | None) -> tuple[int, int]:
    """Where to listen: as asked, as before where that is free, else anywhere; and a second port for the node itself."""
    port = asked or _port_before(folder)
    if port is not None and _free(port) is None:
        if asked is not None:
            raise NoBroker(f"port {asked} is taken; leave --port out for a free one")
        port = None
    port = port or _free(0)
    assert port is not None
    second = next(found for found in iter(lambda: _free(0), None) if found != port)
    assert second is not None
    return port, second


def _port_before(folder: Path) -> int | None:
    """Where the broker of a folder listened last: whoever knows it looks for it there."""
    try:
        found = re.search(r"^listeners=PLAINTEXT://127\.0\.0\.1:(\d+)", (folder / SETTINGS).read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None


def _free(port: int) -> int | None:
    """A port that can be listened to; None where the one asked for cannot."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return None
        return int(one.getsockname()[1])


def _start(java: Path, folder: Path, ports: tuple[int, int], is_temporary: bool) -> Broker:
    port, second = ports
    (folder / SETTINGS).write_text(PROPERTIES.format(port=port, second=second, folder=folder))
    (folder / "log4j2.properties").write_text(LOG4J)
    path = os.pathsep.join(str(jar) for jar in cached(JARS))
    command = [
        str(java), f"-Xmx{HEAP}", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+PerfDisableSharedMem",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}", "-cp", path,
    ]  # fmt: skip
    if not (folder / "data" / "meta.properties").exists():
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        _format([*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(folder / SETTINGS)])
    with open(folder / "broker.log", "ab") as log:
        process = subprocess.Popen(
            [*command, "kafka.Kafka", str(folder / SETTINGS)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True,
        )  # fmt: skip
    broker = Broker(process.pid, temporary.started(process.pid), f"127.0.0.1:{port}", str(folder), is_temporary)
    (folder / RECORD).write_text(json.dumps(asdict(broker)), encoding="utf-8")
    deadline = time.monotonic() + STARTS_S_MAX
    while not _answers(port):
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            why = "it ended" if ended else f"it did not answer within {STARTS_S_MAX:.0f} s"
            process.kill()
            process.wait(ENDS_S_MAX)
            raise NoBroker(f"no broker: {why}; {folder / 'broker.log'} says: {_last_words(folder / 'broker.log')}")
        time.sleep(0.05)
    return broker


def _format(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=STARTS_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        raise NoBroker(f"its folder was not made ready within {STARTS_S_MAX:.0f} s") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        raise NoBroker(f"its folder was not made ready; Kafka says: {said[-1][:200]}")


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
    except OSError:
        return False
    return True


def _gone(broker: Broker, seconds: float) -> bool:
    """Whether its process ends within a time; a child of this process is also waited for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            os.waitpid(broker.pid, os.WNOHANG)
        if not broker.lives():
            return True
        time.sleep(0.05)
    return False


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "Exception" in line]
    return (errors or lines or ["nothing"])[-1][:300]
