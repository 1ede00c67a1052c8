"""Where a run keeps what it must not lose: one state folder, a room for each thing."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from weft.spark.channels.channel import Channel
from weft.spark.channels.kinds import CHANNELS, FOLDER, KIND
from weft.spark.channels.log import Log
from weft.spark.channels.rooms import CONSOLE, FRAGMENTS, HEADS, LATE, LEFT_OUT, LOGS, RECORDINGS
from weft.spark.storage.disk import Disk


@dataclass(frozen=True, slots=True)
class Folders:
    """The rooms of a state folder, the run that they belong to, how things are written there, and in which channels."""

    state: Path
    run: str = ""
    disk: Disk = field(default_factory=Disk, compare=False)
    channels: str = FOLDER

    def stream(self, name: str) -> Channel:
        """The channel of a stream."""
        return CHANNELS[self.channels].of_stream(self.state, name, self.run, self.disk)

    def streams(self) -> list[Channel]:
        """The channels of all streams that were ever written."""
        return [self.stream(name) for name in CHANNELS[self.channels].names(self.state)]

    def reader_options(self, channel: Channel) -> dict[str, str]:
        """What a reader in another process must be told to open a channel of this run."""
        return {KIND: self.channels, **channel.options()}

    def recording(self, source: str) -> Log:
        """The recorded log that a replay source takes its records from."""
        return Log(self.state / RECORDINGS / source, self.run, self.disk, self.head(f"recording {source}"))

    def sink(self, name: str, path: Path) -> Log:
        """The log of what a sink's folder was given, beside that folder and on the same disk."""
        return Log(path.parent / f".{path.name}.weft", self.run, self.disk, self.head(f"sink {name}"))

    def console(self, name: str) -> Path:
        """Where a sink on the console keeps what it has shown."""
        return self.state / CONSOLE / name

    def head(self, name: str) -> Path:
        """How far a log has come, kept away from it."""
        return self.state / HEADS / name

    def checkpoint(self, fragment: str, generation: int) -> Path:
        """Spark's checkpoint of a fragment; each other cut of its operators is a generation."""
        return self.state / FRAGMENTS / fragment / f"checkpoint-{generation}"

    def gate(self, fragment: str, generation: int) -> Path:
        """Where a generation that started before its turn finds out that it has come."""
        return self.state / FRAGMENTS / fragment / f"gate-{generation}.json"

    def fragment(self, fragment: str) -> Path:
        """A fragment's own room."""
        return self.state / FRAGMENTS / fragment

    def ticks(self, fragment: str) -> Path:
        """Files whose appearance makes a fragment on a user's files run a batch without records."""
        return self.state / FRAGMENTS / fragment / "ticks"

    def nudge(self, fragment: str) -> Path:
        """A number whose change makes a fragment on channels run a batch without records."""
        return self.state / FRAGMENTS / fragment / "nudge"

    def late(self, stream: str) -> Path:
        """Records that came too late for their place in a stream, and how ordering is doing."""
        return self.state / LATE / stream

    def left_out(self, stream: str) -> Path:
        """How many records an operator's watermark left out; the records themselves only where its `late` says so."""
        return self.state / LEFT_OUT / stream

    @property
    def flows(self) -> Path:
        """When sources began to flow, at every start of the run."""
        return self.state / "flows.json"

    @property
    def logs(self) -> Path:
        """Spark's own messages."""
        return self.state / LOGS


def spark_name(name: str) -> str:
    """A name that Spark accepts for a source: letters, digits and underscores, unique where it had to change."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain == name else f"{plain}_{hashlib.sha1(name.encode()).hexdigest()[:8]}"
