"""What is computed: sources, operators, sinks, and what a query was promised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from weft.model.arrivals import Arrivals
from weft.model.formats import SINKS, SOURCES, SinkFormat, SourceFormat

COST_MS_DEFAULT = 0.1
"""Work per record of an operator that names none."""
SELECTIVITY_DEFAULT = 1.0
"""Records out per record in, of an operator that names none."""

BadRecords = Literal["fail", "skip", "keep"]
Mode = Literal["append", "update"]
Value = Literal["json", "raw"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream; `type` is Spark DDL, None where only the name is known."""

    name: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A stream that enters at a site."""

    name: str
    site: str
    format: str
    schema: tuple[Column, ...]
    path: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    bad_records: BadRecords = "fail"
    event_time: str | None = None
    record_bytes: float = 100.0
    arrivals: Arrivals | None = None
    value: Value = "json"

    @property
    def facts(self) -> SourceFormat:
        """What sources of its format can do."""
        return SOURCES.get(self.format) or SourceFormat(self.format)


@dataclass(frozen=True, slots=True)
class Watermark:
    """How late a record may be: `input` None means every input of the operator, `column` None its event time."""

    delay: str
    column: str | None = None
    input: str | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """Work per record on a site of capacity 1, in ms: constant (ms) | exponential (mean) | uniform (low, high) |
    normal (mean, sd) | empirical (values)."""

    kind: Literal["constant", "exponential", "uniform", "normal", "empirical"]
    values: tuple[float, ...]

    @property
    def mean_ms(self) -> float:
        """The expected work per record."""
        if self.kind in ("uniform", "empirical"):
            return sum(self.values) / len(self.values)
        return self.values[0]


@dataclass(frozen=True, slots=True)
class Queue:
    """A bound on waiting records (not the one in service), and what happens to the next."""

    length: int
    when_full: Literal["drop", "block"] = "drop"


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """How far back a join looks in the twin: a number of records or of seconds."""

    records: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Putting late records in order: the margin `lambda_`, or the share that may stay late.

    `time` None means the event time of what is read; more than `held_max` records are not held back: they leave early.
    `speculate` is the part of the hold that is not waited for: who then comes too late is a revision. After `idle_s` of
    silence all that is held leaves; None: about twice the hold.
    """

    lambda_: float = 0.5
    late_max: float | None = None
    time: str | None = None
    held_max: int = 1_000_000
    speculate: float = 0.0
    idle_s: float | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Where the records go that an operator leaves out as late: a folder of its own, one each for several inputs."""

    to: str
    format: str = "parquet"
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """A stream that is divided off one that holds several: how, and which records of the operator's input are its."""

    stream: str
    sql: str
    where: str | None = None
    selectivity: float | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """One step of a query: Spark SQL, or a Python function DataFrame -> DataFrame.

    One with `parts` was made of several, and no file says it.
    """

    name: str
    from_: tuple[str, ...]
    sql: str | None = None
    call: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    watermarks: tuple[Watermark, ...] = ()
    cost_ms: Cost | None = None
    selectivity: float | None = None
    state_kb: float = 0.0
    stateful: bool | None = None
    schema: tuple[Column, ...] | None = None
    site: str | None = None
    queue: Queue | None = None
    window: JoinWindow | None = None
    order: Order | None = None
    late: Late | None = None
    pure: bool = False
    """Whether a function gives the same for the same records whoever asks; of SQL it is known."""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a query's records end up; `value` and `exact` are for those that a broker takes."""

    from_: str
    format: str
    path: str | None = None
    site: str | None = None
    mode: Mode = "append"
    key: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    value: Value = "json"
    exact: bool = False

    @property
    def at_least_once(self) -> bool:
        """True if a crash may let those who read it find some records twice."""
        return self.facts.has_topic and not self.exact

    @property
    def facts(self) -> SinkFormat:
        """What sinks of its format can do."""
        return SINKS.get(self.format) or SinkFormat(self.format)


@dataclass(frozen=True, slots=True)
class Level:
    """A latency that would also do, and what it is worth beside the promised one, which is worth 1."""

    latency_ms: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Promise:
    """What a query was assured; what is None is not promised. `levels` would also do, the best first."""

    latency_ms: float | None = None
    quantile: float = 0.95
    availability: float | None = None
    loss: float | None = None
    levels: tuple[Level, ...] = ()

    def level(self, latency_ms: float) -> Level | None:
        """The best level that such a latency keeps, the promise itself being the first; None where it keeps none."""
        if self.latency_ms is None:
            return None
        return next((one for one in (Level(self.latency_ms), *self.levels) if latency_ms <= one.latency_ms), None)


@dataclass(frozen=True, slots=True)
class Query:
    """Operators joined by streams, with a promise."""

    name: str
    operators: tuple[Operator, ...]
    sinks: tuple[Sink, ...]
    promise: Promise = Promise()
    weight: float = 1.0

    def operator(self, name: str) -> Operator:
        """The operator of that name; KeyError where there is none."""
        for operator in self.operators:
            if operator.name == name:
                return operator
        raise KeyError(name)

    def consumers(self, stream: str) -> tuple[Operator, ...]:
        """The operators that read a stream, in the order written."""
        return tuple(operator for operator in self.operators if stream in operator.from_)
