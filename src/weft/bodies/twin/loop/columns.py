"""The flat memory of the event loop: one array of whole numbers `m`, one of floats `x`.

Everything stands at an offset of `m`, and that offset is its handle: `m[site + BUSY]`, `m[operator + HOME]` (itself
the handle of a site), `m[record + TIME]`. The first numbers of `m` are the scalars of the run.
"""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Scalars, at the start of `m`.
_n = count()
FREE, FREE_N, CURSOR, HEAP, HEAP_N, ACCEPTS, EVENTS, LOG, LOG_N, LOG_ROOM = (next(_n) for _ in range(10))
TODO, TODO_N, POOL_N, POOL_N_MAX, RECORDS, RECORDS_N, RECORDS_MAX, LOST = (next(_n) for _ in range(8))
WHEEL, WHEEL_MASK, WIDTH, RANKED, CONTRIBUTING = (next(_n) for _ in range(5))
WAYS, SITES_N, SOURCES, SOURCES_N, SPARE, NEED, TODO_DONE = (next(_n) for _ in range(7))
AHEAD, HORIZON, COARSE, COARSE_SHIFT, COARSE_MASK, DROPS_LATE = (next(_n) for _ in range(6))
# Where sites share one machine: their batches under way, and where in `x` it stands how these slow each other down.
SHARED, UNDER_WAY = (next(_n) for _ in range(2))
FILLED = next(_n)  # a bit for each slot of the wheel: whether an event lies there
SCALARS = 48

# A record: 8 numbers, one cache line. It waits at an operator, is in service, or has one event pending.
TIME, KEY, NEXT, BIRTH, STREAM, AT, MASK, SEQ = range(8)
LEFT, SIDE = TIME, MASK  # while it is at an operator
RECORD_SIZE = 8

# What every reader of a stream has: an operator or a sink.
HOME = 0

# What every stream's maker has, a source or an operator: one cache line. QUICK is for the common case of one reader:
# its handle << 1 | side (NOBODY where there are others or it is a sink), and where only a delay lies between, that and
# its site. Ahead, a sink beside its operator is such a reader too: -2 - its number.
RANK, NUMBER, FLOATS, HELD, QUICK_READER, QUICK_DELAY, QUICK_SITE = range(1, 8)
READERS, READERS_N = 16, 17

# A site: its queue in one cache line.
SERVING, STARTED, HEAD, TAIL, WAITING, WAITING_MAX, BUSY, DOWN, SINCE, INDEX, SPEED, LAST, LAST_GAVE = range(13)
# Where it serves in batches: INTERVAL is NOBODY where it does not; LATER waits for the next one, OUT for its end.
INTERVAL, BATCHING, FIXED, FIRST, LATER, LATER_END, OUT, OUT_END, BATCH_EVENT, POKED, TRIGGER = range(13, 24)
# Where it shares a machine: what a batch costs alone, what the next takes more as one of the first, how many came.
# One that CLOSES windows lets out what a batch gave with the next one: KEPT waits for that. AFTER its results left a
# batch goes on for a while.
BASE, EXTRA, BATCHES_N, KEY_BATCH, CLOSES, KEPT, KEPT_END, AFTER = range(24, 32)
SITE_SIZE = 32
EMPTY = 2  # BATCHING, without records
GIVEN = 2  # more in BATCHING: its results have left
CROWD, SPREAD, COOLING, ROOM = range(4)  # in x, from SHARED on
AREA = 1  # in x, after its speed: beyond what 64 bits count where a million records wait for hours
FREE_FROM = STARTED  # ahead: when all that has come will be served

# An operator.
WAITS, LIMIT, SERVICE, KEY_SELECTIVITY, ARRIVED, BEGUN, ENDED, PASS = range(8, 16)  # what every visit needs ends here
MANY, COST, KEY_COST, KIND, BLOCKS, PARKED, PARKED_END, OUTSIDE, OUTSIDE_END, DROPPED, DUE = range(18, 29)
RING_0, RING_1, RING_SIZE, WINDOW, LOSERS = range(29, 34)
INSTANCES, INSTANCES_N, FIRST_OF = range(34, 37)  # where it has several; a further one knows the first
OPERATOR_SIZE = 40
FILTER, JOIN_RECORDS, JOIN_SECONDS, WINDOW_RECORDS, WINDOW_SECONDS, ORDER = range(6)
CONSTANT, UNIFORM, EXPONENTIAL, NORMAL, EMPIRICAL = range(5)
BYTES, COST_A, COST_B, SELECTIVITY, LENGTH, RATE_MAX_0, RATE_MAX_1 = range(7)  # in x, from FLOATS on
FLOATS_SIZE = 7

# A source.
STEP, STEP_LAST, STEP_RATE, BORN, BACKLOG, BACKLOG_END, RANDOM, KEY_GAP = range(8, 16)
EVENT = 18
SOURCE_SIZE = 24
EXACT_NS = 1  # in x

# A link.
FREE_AT, CUT_UNTIL, DELAY, SENT, LINK_BUSY, LINK_FLOATS = range(6)
LINK_SIZE = 8

# A sink.
SINK_NUMBER = 1
SINK_SIZE = 2

# The queries that lose a record which an operator drops: how many, then each.
LOSERS_N = 0

# A query: what it has lost, its sources, and (in x) the share it may lose.
LOST_N, QUERY_SOURCES_N, QUERY_LOSS, QUERY_SOURCES = range(4)

# A time or count window: its open windows follow as (count, youngest).
LOW, GREATEST, LATENESS, WINDOWS_N = range(4)
WINDOW_HEAD = 4

# An ordering operator: its window of delays follows twice, as they came and ranked. In x: share, margin,
# deviation, budget of late records, the present and the worst run of them.
ORDER_CLOCK, ORDER_HOLD, ORDER_LATE, ORDER_SEEN, ORDER_WAITED, ORDER_KNOWN, ORDER_AT, ORDER_FLOATS = range(8)
ORDER_HEAD = 8
ORDER_WINDOW = 512

# The order of events at one nanosecond: services end, records enter links, records arrive, batches end and begin.
END, HOP, ARRIVE, BATCH = range(4)
# Then: the rank of the stream (20 bits), the number of the record (31), the destination site (10).
KIND_SHIFT, RANK_SHIFT, NUMBER_SHIFT = 61, 41, 10
NUMBER_MASK = (1 << RANK_SHIFT) - (1 << NUMBER_SHIFT)
DEST_MASK = (1 << NUMBER_SHIFT) - 1
HANDED_ON = 1 << 30  # in the number of what a stopped instance hands on, which is no number of its stream

JOIN_RATE_RECORDS = 32
TODO_SIZE = 1 << 12
READERS_MAX = 62  # of one stream, as bits of a copy's MASK
EVERYONE = -1
NOBODY = -1
NEVER_NS = 1 << 61
DONE, LOG_FULL, PAUSED, GROW = range(4)
EVENTS_MAX = 1 << 20  # between two pauses
RESULTS_MAX = 1e12  # of one record: beyond any memory
TAKES_NS_MAX = 2e18  # a service or a sending: for ever
BIRTHS = -2  # the MASK of a source's own event
DIRECT = -3  # the MASK of a record whose AT is its reader (handle << 1 | side)
RELEASED = -4  # the SEQ of a result that its batch has let go, and of all that is on its way: no batch keeps it
PASS_NEVER = 1 << 60
GAVE_LATER = 2  # what a service gives is found at its end
