"""How are topics, offsets and moments asked for? Through confluent-kafka, and nowhere else.

Options are as Spark's Kafka source and sink have them (`kafka.` and a name of Kafka's Java client). The few that the
client here calls otherwise are put in its words; one that it does not know at all is an error that names it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

ANSWERS_S_MAX = 20.0
PREFIX = "kafka."
INSTALL = "pip install 'weft[kafka]'"
# What Spark's connector has for Java alone, and what is the same thing here under another name.
_JAVA_ONLY = (
    "key.",
    "value.",
    "interceptor.",
    "group.",
    "auto.",
    "max.poll.",
    "fetch.",
    "isolation.",
    "request.timeout",
)
_NAMES = {"ssl.truststore.location": "ssl.ca.location", "ssl.keystore.location": "ssl.keystore.location"}
_JAAS = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


class KafkaTrouble(RuntimeError):
    """A broker that does not answer, refuses, or lacks a topic; the text says which and what helps."""


def connection(options: Mapping[str, str]) -> dict[str, Any]:
    """How the client reaches a broker, from options as Spark has them; what concerns Java alone is left out."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        own = name[len(PREFIX) :] if name.lower().startswith(PREFIX) else None
        if own is None or own.startswith(_JAVA_ONLY):
            continue
        if own == "sasl.jaas.config":
            told = dict(_JAAS.findall(value))
            found |= {f"sasl.{key}": told[key] for key in ("username", "password") if key in told}
        elif own not in ("ssl.truststore.type", "ssl.keystore.type"):
            found[_NAMES.get(own, own)] = value
    return found


def library() -> Any:
    """The client's module; KafkaTrouble where it is not installed."""
    try:
        import confluent_kafka
    except ImportError:
        raise KafkaTrouble(f"Kafka needs a client that is not installed here: {INSTALL}") from None
    return confluent_kafka


def admin(conf: Mapping[str, Any]) -> Any:
    """Who asks for topics and offsets."""
    library()
    from confluent_kafka.admin import AdminClient

    return _made(AdminClient, conf)


def consumer(conf: Mapping[str, Any], **more: Any) -> Any:
    """One that reads where it is told to, and belongs to no group."""
    quiet = {"group.id": "weft", "enable.auto.commit": False, "auto.offset.reset": "error"}
    return _made(library().Consumer, {**conf, **quiet, **more})


def producer(conf: Mapping[str, Any], **more: Any) -> Any:
    """One whose records come in order, each once, or not at all."""
    return _made(library().Producer, {"enable.idempotence": True, "acks": "all", "linger.ms": 0, **conf, **more})


def _made(kind: Any, conf: Mapping[str, Any]) -> Any:
    quiet = {"log_level": 2, "socket.nagle.disable": True, "error_cb": lambda error: None}
    try:
        return kind({**quiet, **conf})
    except library().KafkaException as error:
        raise KafkaTrouble(f"option for Kafka: {_text(error)}") from error


def _text(error: Any) -> str:
    first = error.args[0] if error.args else error
    return str(first.str()) if hasattr(first, "str") else str(first)


def topics(conf: Mapping[str, Any], seconds: float = ANSWERS_S_MAX) -> dict[str, int]:
    """The topics of a broker, each with its number of partitions; KafkaTrouble where it does not answer."""
    try:
        held = admin(conf).list_topics(timeout=seconds).topics
    except library().KafkaException as error:
        where = conf.get("bootstrap.servers", "?")
        raise KafkaTrouble(f"no Kafka answers at {where} within {seconds:.0f} s ({_text(error)})") from error
    return {name: len(about.partitions) for name, about in held.items() if about.error is None}


def make_topics(
    conf: Mapping[str, Any], wanted: Sequence[tuple[str, int]], config: Mapping[str, str] | None = None
) -> None:
    """Make topics, each with its number of partitions; one that is there already stays as it is."""
    library()
    from confluent_kafka.admin import NewTopic

    fresh = [NewTopic(name, count, -1, config=dict(config or {})) for name, count in wanted]
    asks = admin(conf)  # held until all is answered: one that is let go answers nothing
    asked = asks.create_topics(fresh, operation_timeout=ANSWERS_S_MAX, request_timeout=ANSWERS_S_MAX)
    for name, answer in asked.items():
        try:
            answer.result(2 * ANSWERS_S_MAX)
        except Exception as error:
            if "exists" not in _text(error).lower():
                raise KafkaTrouble(f"topic {name} cannot be made: {_text(error)}") from error
    _wait_for({name for name, _ in wanted}, conf)


def _wait_for(names: set[str], conf: Mapping[str, Any]) -> None:
    """A topic that was just made is known to all a moment later."""
    deadline = time.monotonic() + ANSWERS_S_MAX
    while not names <= topics(conf).keys():
        if time.monotonic() > deadline:
            raise KafkaTrouble(f"topics {', '.join(sorted(names))} were made and are not there")
        time.sleep(0.05)


def ends(
    conf: Mapping[str, Any], partitions: Iterable[tuple[str, int]], seconds: float = ANSWERS_S_MAX
) -> dict[tuple[str, int], int]:
    """The offset that the next record of each partition will get."""
    return _bounds(conf, partitions, seconds, latest=True)


def beginnings(
    conf: Mapping[str, Any], partitions: Iterable[tuple[str, int]], seconds: float = ANSWERS_S_MAX
) -> dict[tuple[str, int], int]:
    """The offset of the oldest record that each partition still holds."""
    return _bounds(conf, partitions, seconds, latest=False)


def _bounds(
    conf: Mapping[str, Any], partitions: Iterable[tuple[str, int]], seconds: float, latest: bool
) -> dict[tuple[str, int], int]:
    kafka = library()
    from confluent_kafka.admin import OffsetSpec

    spec = OffsetSpec.latest() if latest else OffsetSpec.earliest()
    asks = admin(conf)
    asked = asks.list_offsets({kafka.TopicPartition(*one): spec for one in partitions}, request_timeout=seconds)
    found = {}
    for where, answer in asked.items():
        try:
            found[where.topic, where.partition] = int(answer.result(seconds).offset)
        except Exception as error:
            raise KafkaTrouble(f"topic {where.topic}, partition {where.partition}: {_text(error)}") from error
    return found


def cut_off(conf: Mapping[str, Any], before: Mapping[str, int]) -> None:
    """Remove all messages of topics of one partition before an offset each; where that fails, another time will do."""
    kafka = library()
    asks = admin(conf)
    places = [kafka.TopicPartition(topic, 0, offset) for topic, offset in before.items()]
    with suppress(Exception):
        for answer in asks.delete_records(places, request_timeout=ANSWERS_S_MAX).values():
            answer.result(ANSWERS_S_MAX)


def remove_topics(conf: Mapping[str, Any], names: Sequence[str]) -> None:
    """Remove topics; one that is not there is no trouble."""
    asks = admin(conf)
    for name, answer in asks.delete_topics(list(names), request_timeout=ANSWERS_S_MAX).items():
        try:
            answer.result(2 * ANSWERS_S_MAX)
        except Exception as error:
            if "unknown topic" not in _text(error).lower():
                raise KafkaTrouble(f"topic {name} cannot be removed: {_text(error)}") from error


def subscribed(options: Mapping[str, str], known: Mapping[str, int]) -> dict[str, int]:
    """The topics that a source of such options reads, of those that are known; KafkaTrouble where one is not there."""
    held = {name.lower(): value for name, value in options.items()}
    if "subscribepattern" in held:
        found = {name: count for name, count in known.items() if re.fullmatch(held["subscribepattern"], name)}
        if not found:
            raise KafkaTrouble(f"no topic is called as `{held['subscribepattern']}`; make one before the run")
        return found
    if "assign" in held:
        names = sorted(json.loads(held["assign"]))
    else:
        names = [name.strip() for name in held.get("subscribe", "").split(",") if name.strip()]
    return present(names, known)


def present(names: Iterable[str], known: Mapping[str, int]) -> dict[str, int]:
    """Those topics, each with its partitions; KafkaTrouble where one is not there."""
    names = list(names)
    missing = [name for name in names if name not in known]
    if missing:
        are = "is no topic" if len(missing) == 1 else "are no topics"
        there = ", ".join(sorted(name for name in known if not name.startswith("__"))) or "none"
        raise KafkaTrouble(f"there {are} {', '.join(missing)}: make what is missing before the run (there: {there})")
    return {name: known[name] for name in names}
