"""Where a run keeps what it must not lose: one state folder, a room for each thing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from weft.spark.channels.channel import Channel
from weft.spark.channels.kafka_log import KafkaLog
from weft.spark.channels.kinds import CHANNELS, FOLDER, KAFKA, KIND, MIRROR
from weft.spark.channels.log import Log
from weft.spark.channels.rooms import CONSOLE, FRAGMENTS, HEADS, LATE, LEFT_OUT, LOGS, RECORDINGS, SITES, TOPICS
from weft.spark.storage.disk import Disk


@dataclass(frozen=True, slots=True)
class Folders:
    """The rooms of a state folder, the run that they belong to, how things are written there, and in which channels."""

    state: Path
    run: str = ""
    disk: Disk = field(default_factory=Disk, compare=False)
    channels: str = FOLDER
    kinds: Mapping[str, str] = field(default_factory=dict, compare=False)  # of streams in channels of another kind
    settings: Mapping[str, str] = field(default_factory=dict, compare=False)  # of a channel that is not in folders
    site: str = ""  # whose streams and checkpoints these are, where each site has rooms of its own

    @property
    def rooms(self) -> Path:
        """Where streams, recordings and checkpoints lie: in the state, or where no other site looks."""
        return self.state / SITES / quote(self.site, safe="") if self.site else self.state

    def is_here(self, stream: str) -> bool:
        """Whether a stream's log lies in these rooms; a mirrored one lies in those of sites, and only there."""
        return bool(self.site) or self.kind_of(stream) != MIRROR

    def checkpoints(self) -> list[Path]:
        """All checkpoints of the run, those in the rooms of single sites included."""
        pattern = f"{FRAGMENTS}/*/checkpoint-*"
        return sorted([*self.state.glob(pattern), *self.state.glob(f"{SITES}/*/{pattern}")])

    def kind_of(self, stream: str) -> str:
        """In which kind of channel a stream lies; one that a relay carries lies where its source's would."""
        return self.kinds.get(stream, self.kinds.get(stream.partition("@")[0], self.channels))

    def stream(self, name: str) -> Channel:
        """The channel of a stream."""
        kind = self.kind_of(name)
        if kind == KAFKA:
            return KafkaLog.of_stream(self.rooms, name, self.run, self.disk, self.settings)
        return CHANNELS[kind].of_stream(self.rooms, name, self.run, self.disk)

    def streams(self) -> list[Channel]:
        """The channels of all streams that were ever written."""
        kinds = dict.fromkeys([self.channels, *self.kinds.values()])
        return [
            self.stream(name) for name in sorted({one for kind in kinds for one in CHANNELS[kind].names(self.rooms)})
        ]

    def reader_options(self, channel: Channel) -> dict[str, str]:
        """What a reader in another process must be told to open a channel of this run."""
        return {KIND: self.kind_of(channel.name), **channel.options()}

    def recording(self, source: str) -> Log:
        """The recorded log that a replay source takes its records from."""
        return Log(self.rooms / RECORDINGS / source, self.run, self.disk, self.head(f"recording {source}"))

    def sink(self, name: str, path: Path) -> Log:
        """The log of what a sink's folder was given, beside that folder and on the same disk."""
        # Results lie where people look, and so does what was given to them: apart from the rooms of sites.
        return Log(path.parent / f".{path.name}.weft", self.run, self.disk, self.state / HEADS / f"sink {name}")

    def console(self, name: str) -> Path:
        """Where a sink on the console keeps what it has shown."""
        return self.state / CONSOLE / name

    def topic(self, name: str) -> Path:
        """Where a sink to a broker keeps what is on its way, and how far it has come."""
        return self.state / TOPICS / name

    def head(self, name: str) -> Path:
        """How far a log has come, kept away from it."""
        return self.rooms / HEADS / name

    def checkpoint(self, fragment: str, generation: int) -> Path:
        """Spark's checkpoint of a fragment; each other cut of its operators is a generation."""
        return self.fragment(fragment) / f"checkpoint-{generation}"

    def gate(self, fragment: str, generation: int) -> Path:
        """Where a generation that started before its turn finds out that it has come."""
        return self.fragment(fragment) / f"gate-{generation}.json"

    def fragment(self, fragment: str) -> Path:
        """A fragment's own room."""
        return self.rooms / FRAGMENTS / fragment

    def ticks(self, fragment: str) -> Path:
        """Files whose appearance makes a fragment on a user's files run a batch without records."""
        return self.fragment(fragment) / "ticks"

    def nudge(self, fragment: str) -> Path:
        """A number whose change makes a fragment on channels run a batch without records."""
        return self.fragment(fragment) / "nudge"

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


NAME_CHARS_MAX = 247


def spark_name(name: str) -> str:
    """A name that Spark accepts for a source: letters, digits and underscores, unique where it had to change."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    plain = plain if plain == name else f"{plain}_{hashlib.sha1(name.encode()).hexdigest()[:8]}"
    # Spark makes a folder of that name, with some letters more.
    return plain if len(plain) <= NAME_CHARS_MAX else f"{plain[:200]}_{hashlib.sha1(name.encode()).hexdigest()}"
