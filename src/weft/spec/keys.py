"""Which keys are there? The one table behind reading, writing back and the JSON Schema."""

from __future__ import annotations

from typing import Any

from weft import model
from weft.model import Deployment
from weft.model.formats import SINKS, SOURCES
from weft.spec.addresses import ADDRESS
from weft.spec.ddl import Ddl
from weft.spec.forms import (
    ADVISE_FORM,
    PROJECT_FORM,
    RELIEF_FORM,
    ByKind,
    ByVerb,
    CostForm,
    OrderForm,
    ShareForm,
    Watermarks,
)
from weft.spec.shapes import Anything, Choice, Flag, Number, Scalar, Text
from weft.spec.store import StoreForm
from weft.spec.tables import ByName, Items, Key, Table

AVAILABLE_POLICIES = (
    "near",
    "greedy",
    "dp",
    "xzh",
    "cuckoo",
    "refine",
    "random",
    "latency",
    "partition",
    "tree",
    "collocated",
    "exact",
)
VERSION = 1

_SITE_NAME = Text(
    "a name (a letter, then letters, digits, `_`, `-` or `.`)",
    r"[A-Za-z][A-Za-z0-9_.-]{0,99}",
)
_NAME = Text(
    "a name (a letter, then letters, digits, `_` or `-`)",
    r"[A-Za-z][A-Za-z0-9_-]{0,99}",
    "; rename it",
)
_STREAM = Text("the name of a source or an operator")
_SITE = Text("the name of a site")
_POSITIVE = Number(above=0)
_NOT_NEGATIVE = Number(at_least=0)
_SHARE = Number(at_least=0, at_most=1)
_USE = Number(above=0, at_most=1)
_OPTIONS = ByName(Scalar())

SPARK = Table(
    model.Spark,
    "a Spark",
    (
        Key(
            "master",
            Text(
                "local, local[N], local[*] or spark://HOST:PORT",
                r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?|spark://[A-Za-z0-9._-]+:\d{1,5}(,[A-Za-z0-9._-]+:\d{1,5})*",
                "; other masters are not there yet",
            ),
            "cores of this machine (absent: local[*], all of them), or a standalone cluster",
        ),
        Key("conf", _OPTIONS, "further settings of Spark, which win over Weft's own, as spark.driver.memory"),
    ),
)

SITE = Table(
    model.Site,
    "a site",
    (
        Key("name", _SITE_NAME, "what the site is called", required=True),
        Key("capacity", _POSITIVE, "relative speed: 2.0 halves the time a record takes"),
        Key("quota", Number(above=0, at_most=1), "the greatest utilisation allowed"),
        Key("memory_mb", _POSITIVE, "memory for state"),
        Key("parent", _SITE, "the site above it in the tree"),
        Key("failure_probability", _SHARE, "the chance that the site is down"),
        Key(
            "cap",
            Flag(),
            "live, work at most as much as the capacity says: so many batches at once, so much of the time",
        ),
        Key(
            "batch",
            Table(
                model.Batch,
                "micro-batches",
                (
                    Key("interval_ms", _NOT_NEGATIVE, "the least time between the beginnings of two batches"),
                    Key("fixed_ms", _NOT_NEGATIVE, "what a batch costs besides its records, on a site of capacity 1"),
                ),
            ),
            "the twin serves records in micro-batches here, as Spark does; absent: one by one",
        ),
        Key("spark", SPARK, "the Spark that it would have of its own; sites in one process share one"),
        Key("address", ADDRESS, "where its process listens, as `host:port`; absent: on loopback, wherever is room"),
    ),
)

LINK = Table(
    model.Link,
    "a link",
    (
        Key("from", _SITE, "one end", required=True, into="from_"),
        Key("to", _SITE, "the other end", required=True),
        Key("delay_ms", _NOT_NEGATIVE, "the time a record travels"),
        Key("bandwidth_kbps", _POSITIVE, "1000 bits a second; absent: unlimited"),
        Key("oneway", Flag(), "only from `from` to `to`"),
        Key("emulate", Flag(), "slow the link down live, as in the twin"),
    ),
)

_RATE = Key("rate_per_s", _POSITIVE, "the normal, mean rate", required=True)
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
                Key("period_s", _POSITIVE, "the mean length of a period"),
                Key("period_s_sd", _NOT_NEGATIVE, "the deviation of that length"),
            ),
        ),
        "sine": Table(
            model.Sine,
            "a rate that swings",
            (
                _RATE,
                Key("amplitude", _SHARE, "the swing as a share of the mean"),
                Key("period_s", _POSITIVE, "the length of a swing"),
            ),
        ),
        "walk": Table(
            model.Walk,
            "a rate that walks at random",
            (
                _RATE,
                Key("step_per_s", _NOT_NEGATIVE, "the deviation of a step", required=True),
                Key("every_s", _POSITIVE, "the time between steps"),
                Key("rate_per_s_min", _NOT_NEGATIVE, "the least rate"),
                Key("rate_per_s_max", _POSITIVE, "the greatest rate"),
            ),
        ),
        "trace": Table(
            model.Trace,
            "recorded rates",
            (
                Key("rates_per_s", Items(_NOT_NEGATIVE, 1), "the rates, one after another", required=True),
                Key("period_s", _POSITIVE, "how long each rate holds", required=True),
            ),
        ),
    },
)

SOURCE = Table(
    model.Source,
    "a source",
    (
        Key("name", _NAME, "what the stream is called", required=True),
        Key("site", _SITE, "where the stream enters", required=True),
        Key("format", Choice(tuple(SOURCES)), " | ".join(SOURCES), required=True),
        Key("schema", Ddl(), "columns as DDL, as `ts TIMESTAMP, meter STRING`", required=True),
        Key("path", Text("a file, a folder or a glob"), "a file, a folder or a glob, from this file's folder"),
        Key("options", _OPTIONS, "options of Spark's reader"),
        Key("bad_records", Choice(("fail", "skip", "keep")), "what to do with records that cannot be read"),
        Key("event_time", Text("a column's name"), "the TIMESTAMP column that says when a record happened"),
        Key("record_bytes", _POSITIVE, "the size of a record"),
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
        Key("latency_ms", _POSITIVE, "bounds the quantile of end-to-end latency"),
        Key("quantile", Number(above=0, below=1), "the quantile that is bounded"),
        Key("availability", _SHARE, "the share of time that results are there"),
        Key("loss", _SHARE, "the share of records that may be lost"),
        Key(
            "levels",
            Items(
                Table(
                    model.Level,
                    "a level",
                    (
                        Key("latency_ms", _POSITIVE, "a longer latency that would also do", required=True),
                        Key("weight", _SHARE, "what it is worth beside the promised one, which is worth 1"),
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
        Key("seconds", _POSITIVE, "how many seconds back a join looks in the twin"),
    ),
)

LATE = Table(
    model.Late,
    "late",
    (
        Key("to", Text("a folder"), "the folder they go to, from this file's folder", required=True),
        Key("format", Choice(tuple(name for name, one in SINKS.items() if one.has_path)), "parquet unless given"),
        Key("options", _OPTIONS, "options of Spark's writer"),
    ),
)

OPERATOR = Table(
    model.Operator,
    "an operator",
    (
        Key("name", _NAME, "what the operator and its stream are called", required=True),
        Key(
            "from",
            Items(_STREAM, 1, single=True),
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
        Key("selectivity", _NOT_NEGATIVE, "records out per record in"),
        Key("state_kb", _NOT_NEGATIVE, "the size of its state"),
        Key("stateful", Flag(), "whether it keeps state; for `call`"),
        Key("schema", Ddl(), "its output columns as DDL; for `call`"),
        Key("site", _SITE, "pins it to a site"),
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
        Key("site", _SITE, "where it is; absent: at its operator"),
        Key("mode", Choice(("append", "update")), "append each record once, or update by key"),
        Key(
            "key",
            Items(Text("a column's name"), 1, single=True),
            "the columns that tell records apart in update mode; for Kafka, the key of its records",
        ),
        Key("options", _OPTIONS, "options of Spark's writer"),
        Key("value", Choice(("json", "raw")), "what a Kafka record holds: all columns as JSON, or the column `value`"),
        Key("exact", Flag(), "to Kafka: each record once, by transactions; absent: at least once"),
    ),
)

QUERY = Table(
    model.Query,
    "a query",
    (
        Key("name", _NAME, "what the query is called", required=True),
        Key("promise", PROMISE, "what is promised; what is not stated is not promised"),
        Key("weight", _POSITIVE, "how much the query counts against others"),
        Key("operators", Items(OPERATOR, 1), "its steps", required=True),
        Key("sink", Items(SINK, 1, single=True), "where its records end up", required=True, into="sinks"),
    ),
)

PLACE = Table(
    model.Place,
    "place",
    (
        Key("policy", Choice(AVAILABLE_POLICIES), "which planner decides where operators run"),
        Key("objective", Choice(("latency", "potential")), "what it minimises"),
        Key(
            "weights",
            Table(
                model.Weights,
                "weights",
                (
                    Key("load", _NOT_NEGATIVE, "weight of the load potential"),
                    Key("correlation", _NOT_NEGATIVE, "weight of the correlation potential"),
                    Key("network", _NOT_NEGATIVE, "weight of the network potential"),
                ),
            ),
            "how much each potential counts",
        ),
        Key("overload_penalty", _NOT_NEGATIVE, "what a site over its quota costs"),
        Key("keep", _SHARE, "the share of operators, the lightest, that stay where they run"),
        Key(
            "hop_ms",
            _NOT_NEGATIVE,
            "what a stream between sites costs beside its links; absent: as `weft calibrate` measured it",
        ),
        Key("terms", ByName(_NOT_NEGATIVE), "weights of further terms to minimise: traffic, risk, or registered ones"),
        Key("series", Flag(), "plan by how source rates change over time: traces, or what the last run measured"),
    ),
)

BALANCE = Table(
    model.Balance,
    "balance",
    (
        Key("kind", Choice(("tree",)), "how sites balance"),
        Key("measure", Choice(("cpu", "memory", "both")), "what counts as utilisation"),
        Key("low", _USE, "takes operators below this utilisation"),
        Key("target", _USE, "the utilisation aimed at"),
        Key("high", _USE, "gives operators away above this utilisation"),
        Key("period_s", _POSITIVE, "the time between two looks"),
    ),
)

SCALE = Table(
    model.Scale,
    "scale",
    (
        Key("target", _USE, "the utilisation aimed at"),
        Key("high", _USE, "adds an instance above this utilisation"),
        Key("low", _USE, "removes an instance below this utilisation"),
        Key("period_s", _POSITIVE, "the time between two looks"),
        Key("safe", Flag(), "aim lower where rounding by chance could leave too few instances"),
    ),
)

SERVE = Table(
    model.Serve,
    "serve",
    (
        Key("discipline", Choice(("fcfs", "deadline", "slack")), "whose turn is next on a site of the twin"),
        Key("drop_late", Flag(), "the twin drops records past their promise, as far as the promise allows loss"),
    ),
)

CONTROL = Table(
    model.Control,
    "control",
    (
        Key("place", PLACE, "where operators run"),
        Key("balance", BALANCE, "moves operators from busy sites; absent: off"),
        Key("scale", SCALE, "changes the number of instances, in the twin; absent: off"),
        Key("order", OrderForm(), "puts late records in order; absent: off"),
        Key("serve", SERVE, "in which order the twin serves records; absent: as they come"),
        Key("share", ShareForm(), "makes once what several queries ask alike; absent: off"),
        Key("advise", ADVISE_FORM, "rules say what they would move, and move nothing; absent: off"),
        Key("project", PROJECT_FORM, "projects bursty streams segment by segment; absent: by mean rates"),
        Key("relief", RELIEF_FORM, "operators leave a site before a promise breaks; absent: off"),
    ),
)

_AT = Key("at_s", _NOT_NEGATIVE, "seconds since sources began to flow", required=True)
_TARGET = Text("query.operator", r"[^.\s]+\.[^.\s]+", "; join the query's and the operator's name with a dot")
HAPPENING = ByVerb(
    "a happening",
    {
        "move": Table(
            model.MoveAt,
            "a move",
            (
                _AT,
                Key("move", _TARGET, "the operator, as `query.operator`", required=True),
                Key("to", _SITE, "the site it goes to", required=True),
            ),
        ),
        "rate": Table(
            model.RateAt,
            "a rate",
            (
                _AT,
                Key("rate", ByName(_NOT_NEGATIVE, 1), "times the normal rate, by source", required=True),
            ),
        ),
        "crash": Table(model.CrashAt, "a crash", (_AT, Key("crash", _SITE, "the site that is lost", required=True))),
        "restart": Table(
            model.RestartAt,
            "a restart",
            (
                _AT,
                Key("restart", _SITE, "the site that comes back", required=True),
            ),
        ),
        "partition": Table(
            model.PartitionAt,
            "a partition",
            (
                _AT,
                Key("partition", Items(_SITE, 2, at_most=2), "two sites that cannot speak", required=True),
                Key("for_s", _POSITIVE, "for how long", required=True),
            ),
        ),
        "add": Table(
            model.AddAt,
            "an addition",
            (
                _AT,
                Key("add", Text("a file's path"), "a file with one or more `queries`, which come", required=True),
                Key("anyway", Flag(), "they come though a promise would break"),
            ),
        ),
        "remove": Table(
            model.RemoveAt,
            "a removal",
            (
                _AT,
                Key("remove", Text("a query's name"), "the query that goes", required=True),
            ),
        ),
    },
)

_KIND = Choice(("folder", "mirror", "kafka"))
CHANNELS = Table(
    model.Channels,
    "channels",
    (
        Key(
            "kind",
            _KIND,
            "folder (in the store) | mirror (of processes: each site its own copy) | kafka (topics of a broker)",
        ),
        Key("bootstrap", Text('a broker, as "127.0.0.1:9092"', r"[^\s,]+:\d+(,[^\s,]+:\d+)*"), "where the broker is"),
        Key(
            "prefix",
            Text("the beginning of topics' names (letters, digits, `.`, `_`, `-`)", r"[A-Za-z0-9._-]{1,40}"),
            "how the topics of channels are called",
        ),
        Key("options", _OPTIONS, "further options of Kafka's clients, as kafka.security.protocol"),
        Key("streams", ByName(_KIND), "the kind for single streams, as {suspicious.valid: kafka}"),
    ),
)

DEPLOYMENT = Table(
    Deployment,
    "a deployment",
    (
        Key("sites", Items(SITE, 1), "places with capacity", required=True),
        Key("links", Items(LINK), "ways between sites; both ways unless `oneway: true`"),
        Key("sources", Items(SOURCE, 1), "streams that enter", required=True),
        Key("queries", Items(QUERY, 1), "what is computed", required=True),
        Key("control", CONTROL, "how it is steered (docs/control.md); parts that are absent are off, except place"),
        Key("scenario", Items(HAPPENING), "what happens to it while it runs"),
        Key("store", StoreForm(), "where streams, checkpoints and logs lie; absent: .weft beside this file"),
        Key("channels", CHANNELS, "in which kind of channel streams lie; absent: in folders of the store"),
        Key("spark", SPARK, "the Spark that all sites of a process share; it wins over what sites say"),
        Key("desk", ADDRESS, "where the desk listens, as `host:port`; absent: on loopback, wherever is room"),
        Key("keys", Text("a folder"), "the keys that `weft keys` made, from this file's folder; absent: in the state"),
    ),
)


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a deployment file."""
    body = DEPLOYMENT.schema()
    version = {"description": "the version of the file's form", "const": VERSION}
    body["properties"] = {"weft": version, **body["properties"]}
    body["required"] = ["weft", *body["required"]]
    body["patternProperties"] = {"^x-": {"description": "anything of your own, for YAML's anchors; it is not read"}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Weft deployment", **body}
