"""What a run stands on: where it keeps its state, and on which Spark it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MASTER = "local[*]"
"""All cores of this machine, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where streams, checkpoints and the journal lie; `fsync` makes what is called committed outlive a power cut."""

    path: str = ".weft"
    fsync: bool = True


@dataclass(frozen=True, slots=True)
class Channels:
    """In which kind of channel streams lie: all in `kind`, but for those that `streams` says otherwise of.

    `bootstrap` is where a broker is found, `prefix` how its topics begin, `options` what else its clients are told.
    """

    kind: str = "folder"
    bootstrap: str | None = None
    prefix: str = "weft."
    options: dict[str, str] = field(default_factory=dict, hash=False)
    streams: dict[str, str] = field(default_factory=dict, hash=False)

    def uses(self, kind: str) -> bool:
        """True if some stream may lie in channels of a kind."""
        return kind == self.kind or kind in self.streams.values()


@dataclass(frozen=True, slots=True)
class Spark:
    """A Spark: its master, None where it is not named, and settings that differ from Weft's."""

    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict, hash=False)


def shared_spark(top: Spark, sites: Mapping[str, Spark]) -> tuple[Spark, tuple[str, ...]]:
    """The one Spark of sites (by name) that share a process, and a warning for each thing they cannot agree upon.

    The deployment's own word wins; else what sites name counts where all that name it say the same.
    """
    warnings = []
    named = {name: spark.master for name, spark in sites.items() if spark.master is not None}
    master = top.master or next(iter(named.values()), None) or MASTER
    if top.master is None and len(set(named.values())) > 1:
        master = MASTER
        warnings.append(_differ("master", "spark.master", named, MASTER))
    conf = dict(top.conf)
    for key in sorted({key for spark in sites.values() for key in spark.conf} - conf.keys()):
        said = {name: spark.conf[key] for name, spark in sites.items() if key in spark.conf}
        if len(set(said.values())) > 1:
            warnings.append(_differ(key, "spark.conf", said, "the default"))
        else:
            conf[key] = next(iter(said.values()))
    return Spark(master, conf), tuple(warnings)


def _differ(what: str, place: str, said: Mapping[str, str], taken: str) -> str:
    each = _listed(f"{name} says {value}" for name, value in said.items())
    return f"sites that share one Spark differ on {what}: {each}; {taken} is taken, unless the top-level `{place}` says"


def _listed(parts: Iterable[str]) -> str:
    every = list(parts)
    return ", ".join(every[:10]) + (f", and {len(every) - 10} more" if len(every) > 10 else "")
