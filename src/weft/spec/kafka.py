"""Is what a file says of Kafka enough, and harmless? Options of its sources and sinks, before anything starts."""

from __future__ import annotations

import json

from weft.model import Column, Deployment, Sink, Source
from weft.spec.problems import Problems, did_you_mean, listed, unknown

BOOTSTRAP = "kafka.bootstrap.servers"
NAMING = ("subscribe", "subscribePattern", "assign")
COLUMNS = {
    "key": ("BINARY", "STRING"),
    "value": ("BINARY", "STRING"),
    "topic": ("STRING",),
    "partition": ("INT",),
    "offset": ("BIGINT",),
    "timestamp": ("TIMESTAMP",),
    "timestampType": ("INT",),
    "headers": ("ARRAY<STRUCT<key: STRING, value: BINARY>>",),
}
"""What Spark gives of a record of Kafka, and the types that each may be declared with."""

_SOURCE = (
    *NAMING, "startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp", "startingOffsetsByTimestampStrategy",
    "failOnDataLoss", "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions",
    "maxRecordsPerPartition", "groupIdPrefix", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)  # fmt: skip
JSON = (
    "timestampFormat", "timestampNTZFormat", "dateFormat", "timeZone", "locale", "primitivesAsString", "encoding",
    "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes", "allowNumericLeadingZeros",
    "allowNonNumericNumbers", "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars",
)  # fmt: skip
"""Options of how a JSON object is read."""
_SINK = ("topic",)
JSON_WRITTEN = ("timestampFormat", "timestampNTZFormat", "dateFormat", "timeZone", "locale", "ignoreNullFields")
"""Options of how a JSON object is written."""

_OFFSETS = "the run itself says what is read next, and what was"
_NO_END = "a stream is read on and on"
_ORDER = "records could be lost, doubled or change places without a word"
_REFUSED: dict[str, tuple[str | None, str]] = {
    "failondataloss": ("true", "records that Kafka has removed before they were read would be missing without a word"),
    "endingoffsets": (None, _NO_END),
    "endingoffsetsbytimestamp": (None, _NO_END),
    "endingtimestamp": (None, _NO_END),
    "includeheaders": (None, "headers are read where the schema has a column `headers`"),
    "kafka.auto.offset.reset": (None, _OFFSETS),
    "kafka.enable.auto.commit": ("false", _OFFSETS),
    "kafka.isolation.level": ("read_committed", "records that their writer has taken back would be read"),
    "kafka.key.deserializer": (None, "keys come as they are; declare `key` STRING or BINARY"),
    "kafka.value.deserializer": (None, "what a value holds is said by `value: json | raw`"),
    "kafka.interceptor.classes": (None, _OFFSETS),
}
_REFUSED_WRITTEN: dict[str, tuple[str | None, str]] = {
    "kafka.acks": ("all", _ORDER),
    "kafka.enable.idempotence": ("true", _ORDER),
    "kafka.transactional.id": (None, "transactions are Weft's own; say `exact: true`"),
    "kafka.key.serializer": (None, "what a record holds is said by `value: json | raw`"),
    "kafka.value.serializer": (None, "what a record holds is said by `value: json | raw`"),
}


def check_kafka(deployment: Deployment, problems: Problems) -> None:
    """Reports what is missing, unknown or harmful of what a file says of Kafka."""
    for index, source in enumerate(deployment.sources):
        field = f"sources[{index}]"
        if source.facts.has_topic:
            _check_source(source, field, problems)
        elif source.value != "json":
            problems.error(f"{field}.value", f"is for Kafka; a {source.format} source has no values")
    _check_channels(deployment, problems)
    for at, query in enumerate(deployment.queries):
        for index, sink in enumerate(query.sinks):
            field = f"queries[{at}].sink" + (f"[{index}]" if len(query.sinks) > 1 else "")
            _check_sink(sink, field, problems)


def _check_channels(deployment: Deployment, problems: Problems) -> None:
    channels = deployment.channels
    if channels.uses("kafka") and channels.bootstrap is None:
        problems.error("channels.bootstrap", 'is missing: say where the broker is, as "127.0.0.1:9092"')
    if {"mirror", "folder"} <= {channels.kind, *channels.streams.values()}:
        problems.error("channels", "`mirror` and `folder` do not go together: sites share a folder, or they do not")
    streams = [source.name for source in deployment.sources]
    streams += [f"{query.name}.{operator.name}" for query in deployment.queries for operator in query.operators]
    for name in channels.streams:
        if name not in streams:
            problems.error(f"channels.streams.{name}", unknown("stream", name, streams))
    for name in channels.options:
        if not name.startswith("kafka.") or name.lower() in _REFUSED | _REFUSED_WRITTEN or name == BOOTSTRAP:
            says = "must be an option of Kafka's clients that says how to reach the broker, as kafka.security.protocol"
            problems.error(f"channels.options.{name}", says)


def _check_source(source: Source, field: str, problems: Problems) -> None:
    known = (*_SOURCE, *(JSON if source.value == "json" else ()))
    _check_options(source.options, known, _REFUSED, f"{field}.options", problems)
    held = _small(source.options)
    naming = [name for name in NAMING if name.lower() in held]
    if len(naming) != 1:
        says = f"found {' and '.join(naming)}" if naming else "as {subscribe: readings}"
        problems.error(f"{field}.options", f"must name its topics by one of {listed(NAMING)}, {says}")
    begin = held.get("startingoffsets", "earliest").strip()
    if begin.lower() == "latest":
        says = "would begin elsewhere after every restart before the first batch, and pass over what came meanwhile"
        problems.error(f"{field}.options.startingOffsets", f"{says}; name a moment with startingTimestamp, or offsets")
    elif begin.lower() != "earliest" and not _is_json(begin):
        problems.error(
            f"{field}.options.startingOffsets", "must be earliest, or offsets by topic and partition in JSON"
        )
    if "assign" in held and not _is_json(held["assign"]):
        problems.error(f"{field}.options.assign", 'must be partitions by topic in JSON, as {"readings": [0, 1]}')
    if source.value == "raw":
        _check_raw(source.schema, field, problems)
        if source.bad_records != "fail":
            problems.error(f"{field}.bad_records", "a raw value is never bad; leave it out")


def _check_raw(schema: tuple[Column, ...], field: str, problems: Problems) -> None:
    names = {name.lower(): name for name in COLUMNS}
    for column in schema:
        own = names.get(column.name.lower())
        if own is None:
            says = f"`value: raw` gives the columns {listed(COLUMNS)}, not `{column.name}`"
            problems.error(f"{field}.schema", f"{says}{did_you_mean(column.name, COLUMNS)}")
        elif column.type is not None and _plain(column.type) not in map(_plain, COLUMNS[own]):
            says = f"`{column.name}` is {column.type}; Kafka's is {' or '.join(COLUMNS[own])}"
            problems.error(f"{field}.schema", says)


def _check_sink(sink: Sink, field: str, problems: Problems) -> None:
    if not sink.facts.has_topic:
        for key, given in (("value", sink.value != "json"), ("exact", sink.exact)):
            if given:
                problems.error(f"{field}.{key}", f"is for Kafka; leave it out of a {sink.format} sink")
        return
    known = (*_SINK, *(JSON_WRITTEN if sink.value == "json" else ()))
    _check_options(sink.options, known, _REFUSED_WRITTEN, f"{field}.options", problems)
    if not _small(sink.options).get("topic", "").strip():
        problems.error(f"{field}.options", "must name the topic, as {topic: results}")
    if sink.value == "raw" and sink.key:
        problems.error(f"{field}.key", "with `value: raw` the key is the column `key`; leave it out")
    if sink.at_least_once:
        says = "at least once: after a crash its readers may find some records twice"
        problems.warn(field, f"{says}; `exact: true` gives each record once, in transactions")


def _check_options(
    options: dict[str, str],
    known: tuple[str, ...],
    refused: dict[str, tuple[str | None, str]],
    field: str,
    problems: Problems,
) -> None:
    if BOOTSTRAP not in _small(options):
        problems.error(field, f'must name a broker, as {{{BOOTSTRAP}: "127.0.0.1:9092"}}')
    for name, value in options.items():
        harmless, why = refused.get(name.strip().lower(), (None, ""))
        if why and (harmless is None or value.strip().lower() != harmless):
            instead = f'; leave it out, or say "{harmless}"' if harmless else "; leave it out"
            problems.error(f"{field}.{name}", f"cannot be given: {why}{instead}")
        elif not why and not name.lower().startswith("kafka.") and name.lower() not in map(str.lower, known):
            says = f"is no option of Kafka in Spark; there are: kafka.*, {listed(known)}"
            problems.error(f"{field}.{name}", says + did_you_mean(name, (*known, BOOTSTRAP)))


def _small(options: dict[str, str]) -> dict[str, str]:
    return {name.strip().lower(): value for name, value in options.items()}


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _plain(type_: str) -> str:
    return "".join(type_.upper().split())
