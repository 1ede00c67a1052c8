"""Is there a topic for every source and sink that a broker keeps? Asked before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyspark

from weft.model import Channels, Deployment, dataflow
from weft.plan.dataflow.real_time import real_time
from weft.spark.kafka import client
from weft.spark.kafka.client import KafkaTrouble
from weft.spark.kafka.connector import connector_jars, connector_version, needs_connector
from weft.spec import is_stateful

SHUFFLED = 2  # partitions of a shuffle, as `session/settings.py` has them


def check_topics(deployment: Deployment) -> list[str]:
    """Notes on what will be used; KafkaTrouble where a topic or a broker is missing, NoJars without a connector."""
    known: dict[str, dict[str, int]] = {}
    for who, options, is_source in _users(deployment):
        conf = client.connection(options)
        where = str(conf.get("bootstrap.servers"))
        try:
            if where not in known:
                known[where] = client.topics(conf)
            if is_source:
                client.subscribed(options, known[where])
            else:
                client.present([_topic(options)], known[where])
        except KafkaTrouble as error:
            raise KafkaTrouble(f"{who}: {error}") from error
    if deployment.channels.uses("kafka"):
        try:
            client.topics(_of_channels(deployment.channels))
        except KafkaTrouble as error:
            raise KafkaTrouble(f"channels: {error}") from error
    if not needs_connector(deployment):
        return []
    connector_jars()
    version = connector_version()
    if version == pyspark.__version__:
        return []
    return [f"Spark's Kafka connector is {version}: none of version {pyspark.__version__}, as Spark is, can be had"]


def real_time_tasks(deployment: Deployment) -> int:
    """How many tasks queries that run record by record keep running: one for each partition, and as many with state."""
    tasks = 0
    for name in real_time(deployment):
        query = deployment.query(name)
        for source in dataflow(deployment).sources_of(name):
            options = deployment.source(source).options
            tasks += sum(client.subscribed(options, client.topics(client.connection(options))).values())
        tasks += SHUFFLED if any(is_stateful(operator) for operator in query.operators) else 0
    return tasks


def _users(deployment: Deployment) -> Iterator[tuple[str, Mapping[str, str], bool]]:
    for source in deployment.sources:
        if source.facts.has_topic:
            yield f"source {source.name}", source.options, True
    for query in deployment.queries:
        for sink in query.sinks:
            if sink.facts.has_topic:
                yield f"sink of {query.name}", sink.options, False


def _of_channels(channels: Channels) -> dict[str, Any]:
    return {**client.connection(channels.options), "bootstrap.servers": channels.bootstrap or ""}


def _topic(options: Mapping[str, str]) -> str:
    return next((value.strip() for name, value in options.items() if name.lower() == "topic"), "")
