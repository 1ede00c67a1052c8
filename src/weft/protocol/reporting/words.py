"""What a site says of what it has measured, and what its desk answers and asks.

A report holds two things. How the site stands now (`fragments`, `cpu_s`, `bad`) replaces what it said before. What has
happened (`events`) is numbered within one life of the site, and is said again until the desk says that it has it: so a
report that is lost or comes twice does no harm. `protocol/reporting/outbox.py` and `inbox.py` keep to that.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.protocol.balancing.eras import BalanceFrom, BalanceNow
from weft.protocol.words import Message, Name, Reason

SLACKS_MAX = 4_096
Count = Annotated[int, msgspec.Meta(ge=0)]
Counts = dict[str, int]
Life = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class BatchDone(msgspec.Struct, frozen=True, array_like=True, tag="batch"):
    """A batch of a fragment is over, or several, as one, up to `batch`; what Spark has reported of it.

    `sources`, `bad` are records of users' files, `operators` what was counted on the way, `state_kb` is by stream.
    """

    fragment: Name
    generation: Count
    batch: int
    busy_ms: int
    sources: Counts = {}
    bad: Counts = {}
    operators: Counts = {}
    state_kb: dict[str, float] = {}
    sync_ms: tuple[float, ...] = ()
    batches: Count = 1


class BatchWeighed(msgspec.Struct, frozen=True, array_like=True, tag="weighed"):
    """What a batch took into and gave out of each operator (None where nothing tells), and the work of its tasks.

    `start` tells starts of a fragment in one life of its site apart: the first batches of each are slower.
    """

    fragment: Name
    query: Name
    start: int
    operators: tuple[str, ...] = ()
    into: tuple[int | None, ...] = ()
    out: tuple[int | None, ...] = ()
    work_ms: float | None = None
    tasks: Count = 0


class Committed(msgspec.Struct, frozen=True, array_like=True, tag="commit"):
    """A segment of a stream, or a batch of a sink, is there for good; `late`: of what a watermark has left out."""

    fragment: Name
    stream: Name
    sink: bool
    batch: int
    rows: Count
    rows_total: Count
    committed_ms: float
    birth_ms: tuple[float, float] | None = None
    late: bool = False


Event = BatchDone | BatchWeighed | Committed


class Waiting(msgspec.Struct, frozen=True, array_like=True):
    """What waits at one way into a fragment: at a source, or in a channel, whose segments are counted too."""

    stream: Name
    operator: str
    records: Count
    segments: int | None = None


class FragmentNow(msgspec.Struct, frozen=True, array_like=True):
    """How far a fragment has come, over all runs: by what offsets and manifests tell.

    `taken` are records from channels and timed sources, `sources` those of each timed source; `committed` is by
    operator, `sinks` and `late` by name; `ordering` tells how streams are being put in order. `begun`: its first batch,
    which is slow, is over, or there is nothing for it to do.
    """

    fragment: Name
    epoch: Count
    generation: Count
    drained: bool = False
    taken: Count = 0
    sources: Counts = {}
    committed: Counts = {}
    sinks: Counts = {}
    late: Counts = {}
    waiting: tuple[Waiting, ...] = ()
    ordering: dict[str, dict[str, float]] = {}
    begun: bool = True


class SiteNow(msgspec.Struct, frozen=True):
    """How a site stands: its fragments, the CPU seconds of its tasks in this life, or the seconds of its
    batches where a cap counts these, bad records of its recordings.

    `at_ms` is when its fragments stood so, by its clock: a report may take seconds to come, where a machine is busy.
    `balance` is how its balancer stands, where sites balance; `slack_ms` the time left for its operators, or for all
    those of a query whose results end here, by what sites of the query fed back.
    """

    fragments: tuple[FragmentNow, ...] = ()
    cpu_s: float = 0.0
    bad: Counts = {}
    balance: BalanceNow | None = None
    slack_ms: Annotated[dict[Name, float], msgspec.Meta(max_length=SLACKS_MAX)] = {}
    at_ms: float = 0.0


class Measured(msgspec.Struct, frozen=True):
    """What a site has measured since it last looked, and how it stands."""

    events: tuple[Event, ...] = ()
    now: SiteNow = SiteNow()


class Report(Message, frozen=True):
    """What a life of a site has measured: `events` from number `first` on, and how it stands.

    The desk has said that it has all up to `had`. `more` events wait for their turn, `dropped` had to be given up
    while nobody heard. `answers` is the number of the question that this answers in full.
    """

    life: Life
    number: Count
    at_ms: float
    had: Count
    first: Count
    events: tuple[Event, ...] = ()
    more: Count = 0
    dropped: Count = 0
    now: SiteNow = SiteNow()
    answers: Count = 0


class Reported(Message, frozen=True):
    """The desk has all events of a life up to a number."""

    life: Life
    upto: Count


class AskReport(Message, frozen=True):
    """Tell all that is known by now; the answer bears the number, greater than any of an earlier life of the desk."""

    number: Count


class SourcesEnd(Message, frozen=True):
    """A fragment has read all that its sources hold, and would end their streams: what comes later is too late."""

    fragment: Name


class SourcesMayEnd(Message, frozen=True):
    """It is written down what the sources hold."""

    fragment: Name


class SettleSinks(Message, frozen=True):
    """All is done: leave only the last value of every key in these sinks of update mode; numbered as `AskReport`."""

    number: Count
    sinks: tuple[Name, ...] = ()


class SinksSettled(Message, frozen=True):
    """The sinks of a question are settled, or could not be."""

    number: Count
    reason: Reason = ""


TO_SITES = Reported | AskReport | SourcesMayEnd | SettleSinks | BalanceFrom
TO_DESK = Report | SourcesEnd | SinksSettled
MESSAGES = TO_SITES | TO_DESK
