"""What can a format do? One line each for sources and sinks; how Spark reads and writes them is said in `spark/`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """Facts about sources of a format.

    `has_path`: it reads users' files. `recorded`: these are laid down as a recording first, else Spark reads them
    itself and knows each by its full name. `made_up`: records are made up from arrivals, and nothing is read. `timed`:
    Weft says when each record is born, and counts how many were given. `endless`: there is always more to come.
    `has_topic`: a broker keeps its records, and says when each was born. `flat`: its files hold no nested columns.
    """

    name: str
    has_path: bool = False
    recorded: bool = False
    made_up: bool = False
    timed: bool = False
    endless: bool = False
    has_topic: bool = False
    flat: bool = False

    @property
    def born_outside_spark(self) -> bool:
        """True if a record is born when it comes, and not when Spark takes it up."""
        return self.timed or self.has_topic

    @property
    def seen_by_name(self) -> bool:
        """True if Spark reads users' files and remembers each by its full name."""
        return self.has_path and not self.recorded


@dataclass(frozen=True, slots=True)
class SinkFormat:
    """Facts about sinks of a format: whether it is a folder of files, and whether these hold no nested columns; or
    whether a broker takes its records (`has_topic`). Text is written by a job of Spark, however few records."""

    name: str
    has_path: bool = False
    flat: bool = False
    has_topic: bool = False
    text: bool = False


SOURCES: dict[str, SourceFormat] = {
    one.name: one
    for one in (
        SourceFormat("csv", has_path=True, flat=True),
        SourceFormat("json", has_path=True),
        SourceFormat("parquet", has_path=True),
        SourceFormat("rate", made_up=True, timed=True, endless=True),
        SourceFormat("kafka", endless=True, has_topic=True),
        SourceFormat("replay", has_path=True, recorded=True, timed=True),
    )
}
SINKS: dict[str, SinkFormat] = {
    one.name: one
    for one in (
        SinkFormat("parquet", has_path=True),
        SinkFormat("csv", has_path=True, flat=True, text=True),
        SinkFormat("json", has_path=True, text=True),
        SinkFormat("console"),
        SinkFormat("kafka", has_topic=True),
    )
}
