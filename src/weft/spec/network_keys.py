"""Which keys have sites, links and what records travel in?"""

from __future__ import annotations

from weft import model
from weft.spec.addresses import ADDRESS
from weft.spec.shapes import Choice, Flag, Number, Text
from weft.spec.tables import ByName, Key, Table
from weft.spec.values import KNOWN_SITE, NOT_NEGATIVE, OPTIONS, POSITIVE, SHARE, SITE_NAME

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
        Key("conf", OPTIONS, "further settings of Spark, which win over Weft's own, as spark.driver.memory"),
    ),
)

SITE = Table(
    model.Site,
    "a site",
    (
        Key("name", SITE_NAME, "what the site is called", required=True),
        Key("capacity", POSITIVE, "relative speed: 2.0 halves the time a record takes"),
        Key("quota", Number(above=0, at_most=1), "the greatest utilisation allowed"),
        Key("memory_mb", POSITIVE, "memory for state"),
        Key("parent", KNOWN_SITE, "the site above it in the tree"),
        Key("failure_probability", SHARE, "the chance that the site is down"),
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
                    Key("interval_ms", NOT_NEGATIVE, "the least time between the beginnings of two batches"),
                    Key("fixed_ms", NOT_NEGATIVE, "what a batch costs besides its records, on a site of capacity 1"),
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
        Key("from", KNOWN_SITE, "one end", required=True, into="from_"),
        Key("to", KNOWN_SITE, "the other end", required=True),
        Key("delay_ms", NOT_NEGATIVE, "the time a record travels"),
        Key("bandwidth_kbps", POSITIVE, "1000 bits a second; absent: unlimited"),
        Key("oneway", Flag(), "only from `from` to `to`"),
        Key("emulate", Flag(), "slow the link down live, as in the twin"),
    ),
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
        Key("options", OPTIONS, "further options of Kafka's clients, as kafka.security.protocol"),
        Key("streams", ByName(_KIND), "the kind for single streams, as {suspicious.valid: kafka}"),
    ),
)
