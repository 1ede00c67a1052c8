"""Where a run keeps what it must not lose: one state folder, a room for each thing."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from weft.spark.log import Log


@dataclass(frozen=True, slots=True)
class Folders:
    """The rooms of a state folder."""

    state: Path

    def stream(self, name: str) -> Log:
        """The log of a stream."""
        return Log(self.state / "streams" / name)

    def streams(self) -> list[Log]:
        """The logs of all streams that were ever written."""
        folder = self.state / "streams"
        return [Log(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []

    def recording(self, source: str) -> Log:
        """The recorded log that a replay source takes its records from."""
        return Log(self.state / "recordings" / source)

    def checkpoint(self, fragment: str, generation: int) -> Path:
        """Spark's checkpoint of a fragment; each other cut of its operators is a generation."""
        return self.state / "fragments" / fragment / f"checkpoint-{generation}"

    def gate(self, fragment: str, generation: int) -> Path:
        """Where a generation that started before its turn finds out that it has come."""
        return self.state / "fragments" / fragment / f"gate-{generation}.json"

    def fragment(self, fragment: str) -> Path:
        """A fragment's own room."""
        return self.state / "fragments" / fragment

    def ticks(self, fragment: str) -> Path:
        """Files whose appearance makes a fragment on a user's files run a batch without records."""
        return self.state / "fragments" / fragment / "ticks"

    def nudge(self, fragment: str) -> Path:
        """A number whose change makes a fragment on channels run a batch without records."""
        return self.state / "fragments" / fragment / "nudge"

    def late(self, stream: str) -> Path:
        """Records that came too late for their place in a stream, and how ordering is doing."""
        return self.state / "late" / stream

    @property
    def flows(self) -> Path:
        """When sources began to flow, at every start of the run."""
        return self.state / "flows.json"

    @property
    def logs(self) -> Path:
        """Spark's own messages."""
        return self.state / "logs"


def spark_name(name: str) -> str:
    """A name that Spark accepts for a source: letters, digits and underscores, unique where it had to change."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain == name else f"{plain}_{hashlib.sha1(name.encode()).hexdigest()[:8]}"
