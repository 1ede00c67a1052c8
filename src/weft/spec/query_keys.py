"""Which keys have sources and queries?"""

from __future__ import annotations

from weft import model
from weft.model.formats import SINKS, SOURCES
from weft.spec.ddl import Ddl
from weft.spec.forms import ByKind, CostForm, OrderForm, Watermarks
from weft.spec.shapes import Anything, Choice, Flag, Number, Text
from weft.spec.tables import ByName, Items, Key, Table
from weft.spec.values import KNOWN_SITE, KNOWN_STREAM, NAME, NOT_NEGATIVE, OPTIONS, POSITIVE, SHARE

_RATE = Key("rate_per_s", POSITIVE, "the normal, mean rate", required=True)

ARRIVALS = ByKind(
    "how records arrive",
    {
        "constant": Table(model.Constant, "constant arrivals", (_RATE,)),
        "poisson": Table(model.Poisson, "Poisson arrivals", (_RATE,)),
        "onoff": Table(
            model.OnOff,
            "busy and quiet periods in turn",
            (
                _RATE,
                Key("ratio", Number(at_least=1), "the busy rate over the quiet one"),
                Key("period_s", POSITIVE, "the mean length of a period"),
                Key("period_s_sd", NOT_NEGATIVE, "the deviation of that length"),
            ),
        ),
        "sine": Table(
            model.Sine,
            "a rate that swings",
            (
                _RATE,
                Key("amplitude", SHARE, "the swing as a share of the mean"),
                Key("period_s", POSITIVE, "the length of a swing"),
            ),
        ),
        "walk": Table(
            model.Walk,
            "a rate that walks at random",
            (
                _RATE,
                Key("step_per_s", NOT_NEGATIVE, "the deviation of a step", required=True),
                Key("every_s", POSITIVE, "the time between steps"),
                Key("rate_per_s_min", NOT_NEGATIVE, "the least rate"),
                Key("rate_per_s_max", POSITIVE, "the greatest rate"),
            ),
        ),
        "trace": Table(
            model.Trace,
            "recorded rates",
            (
                Key("rates_per_s", Items(NOT_NEGATIVE, 1), "the rates, one after another", required=True),
                Key("period_s", POSITIVE, "how long each rate holds", required=True),
            ),
        ),
    },
)

SOURCE = Table(
    model.Source,
    "a source",
    (
        Key("name", NAME, "what the stream is called", required=True),
        Key("site", KNOWN_SITE, "where the stream enters", required=True),
        Key("format", Choice(tuple(SOURCES)), " | ".join(SOURCES), required=True),
        Key("schema", Ddl(), "columns as DDL, as `ts TIMESTAMP, meter STRING`", required=True),
        Key("path", Text("a file, a folder or a glob"), "a file, a folder or a glob, from this file's folder"),
        Key("options", OPTIONS, "options of Spark's reader"),
        Key("bad_records", Choice(("fail", "skip", "keep")), "what to do with records that cannot be read"),
        Key("event_time", Text("a column's name"), "the TIMESTAMP column that says when a record happened"),
        Key("record_bytes", POSITIVE, "the size of a record"),
        Key("arrivals", ARRIVALS, "how records arrive: in the twin, and from rate and replay sources"),
        Key(
            "value",
            Choice(("json", "raw")),
            "what a Kafka record holds: a JSON object, or anything (as Spark gives it)",
        ),
    ),
)

PROMISE = Table(
    model.Promise,
    "a promise",
    (
        Key("latency_ms", POSITIVE, "bounds the quantile of end-to-end latency"),
        Key("quantile", Number(above=0, below=1), "the quantile that is bounded"),
        Key("availability", SHARE, "the share of time that results are there"),
        Key("loss", SHARE, "the share of records that may be lost"),
        Key(
            "levels",
            Items(
                Table(
                    model.Level,
                    "a level",
                    (
                        Key("latency_ms", POSITIVE, "a longer latency that would also do", required=True),
                        Key("weight", SHARE, "what it is worth beside the promised one, which is worth 1"),
                    ),
                ),
                1,
            ),
            "latencies that would also do, the best first: the best that can be kept is taken",
        ),
    ),
)

QUEUE = Table(
    model.Queue,
    "a queue",
    (
        Key("length", Number(at_least=0, whole=True), "waiting records, without the one in service", required=True),
        Key("when_full", Choice(("drop", "block")), "what happens to the next record"),
    ),
)

WINDOW = Table(
    model.JoinWindow,
    "a join window",
    (
        Key("records", Number(at_least=1, whole=True), "how many records back a join looks in the twin"),
        Key("seconds", POSITIVE, "how many seconds back a join looks in the twin"),
    ),
)

LATE = Table(
    model.Late,
    "late",
    (
        Key("to", Text("a folder"), "the folder they go to, from this file's folder", required=True),
        Key("format", Choice(tuple(name for name, one in SINKS.items() if one.has_path)), "parquet unless given"),
        Key("options", OPTIONS, "options of Spark's writer"),
    ),
)

OPERATOR = Table(
    model.Operator,
    "an operator",
    (
        Key("name", NAME, "what the operator and its stream are called", required=True),
        Key(
            "from",
            Items(KNOWN_STREAM, 1, single=True),
            "the streams it reads: sources, operators of its query, or `query.operator` of another",
            required=True,
            into="from_",
        ),
        Key("sql", Text("Spark SQL"), "one SELECT over the streams in `from`"),
        Key(
            "call",
            Text('"module:function"', r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"),
            'a Python function DataFrame -> DataFrame, as "module:function"',
        ),
        Key("args", ByName(Anything()), "further arguments of the function"),
        Key("watermark", Watermarks(), "how late a record may be, as `10 minutes`", into="watermarks"),
        Key("cost_ms", CostForm(), "work per record on a site of capacity 1; in the twin also a distribution"),
        Key("selectivity", NOT_NEGATIVE, "records out per record in"),
        Key("state_kb", NOT_NEGATIVE, "the size of its state"),
        Key("stateful", Flag(), "whether it keeps state; for `call`"),
        Key("schema", Ddl(), "its output columns as DDL; for `call`"),
        Key("site", KNOWN_SITE, "pins it to a site"),
        Key("queue", QUEUE, "bounds its waiting records; absent: unbounded"),
        Key("window", WINDOW, "how far back a join looks in the twin"),
        Key("order", OrderForm(), "puts late records in order before it"),
        Key("pure", Flag(), "for `call`: equal records give equal results, so that queries may share it"),
        Key("late", LATE, "keeps the records that its watermark leaves out, each once; absent: they are only counted"),
    ),
)

SINK = Table(
    model.Sink,
    "a sink",
    (
        Key(
            "from", Text("the name of an operator"), "the operator whose records it keeps", required=True, into="from_"
        ),
        Key("format", Choice(tuple(SINKS)), " | ".join(SINKS), required=True),
        Key("path", Text("a folder"), "the folder it writes, from this file's folder"),
        Key("site", KNOWN_SITE, "where it is; absent: at its operator"),
        Key("mode", Choice(("append", "update")), "append each record once, or update by key"),
        Key(
            "key",
            Items(Text("a column's name"), 1, single=True),
            "the columns that tell records apart in update mode; for Kafka, the key of its records",
        ),
        Key("options", OPTIONS, "options of Spark's writer"),
        Key("value", Choice(("json", "raw")), "what a Kafka record holds: all columns as JSON, or the column `value`"),
        Key("exact", Flag(), "to Kafka: each record once, by transactions; absent: at least once"),
    ),
)

QUERY = Table(
    model.Query,
    "a query",
    (
        Key("name", NAME, "what the query is called", required=True),
        Key("promise", PROMISE, "what is promised; what is not stated is not promised"),
        Key("weight", POSITIVE, "how much the query counts against others"),
        Key("operators", Items(OPERATOR, 1), "its steps", required=True),
        Key("sink", Items(SINK, 1, single=True), "where its records end up", required=True, into="sinks"),
    ),
)
