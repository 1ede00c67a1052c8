"""Which jars does Spark need to read Kafka? Its connector of its own version, else the newest that can be had.

Spark's own resolution (`spark.jars.packages`) would ask the network at every start; the same Ivy is asked once, and the
files are handed to Spark. Where the connector of this Spark's version is not published, or not all of what it asks for,
its parts are taken one by one, each the newest up to that version. They are told by name where Spark is told of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from weft.model import Deployment
from weft.spark.kafka.jars import NoJars, cached, fetched

JARS = "spark.jars"
SCALA = "2.13"
SPARK = "org.apache.spark"


def needs_connector(deployment: Deployment) -> bool:
    """True if Spark itself reads a topic."""
    return any(source.facts.has_topic for source in deployment.sources)


def with_jars(conf: Mapping[str, str]) -> dict[str, str]:
    """Settings with the connector's jars among those that Spark starts with."""
    given = [jar for jar in conf.get(JARS, "").split(",") if jar]
    return {**conf, JARS: ",".join([*given, *(str(path) for path in connector_jars())])}


def provide(session: SparkSession) -> None:
    """Let a Spark that runs already have the connector, unless it has it, and this thread find it there."""
    known = {str(name) for name in session.sparkContext._jsc.sc().listJars().mkString("\n").split("\n")}
    for path in connector_jars():
        if not any(name.endswith(f"/{path.name}") for name in known):
            session.sql(f"ADD JAR '{path}'")
    # Java looks formats up in what the thread knows, and every thread of ours is another one there.
    loader = session._jsparkSession.artifactManager().classloader()
    assert session.sparkContext._jvm is not None
    session.sparkContext._jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)


def _name() -> str:
    return f"spark-kafka-{pyspark.__version__}"


def connector_jars() -> list[Path]:
    """The jars of Spark's connector, fetched where they are not cached; NoJars where they cannot be had."""
    name, version = _name(), pyspark.__version__
    if cached(name):
        return cached(name)
    try:
        return fetched(name, [(SPARK, f"spark-sql-kafka-0-10_{SCALA}", version)])
    except NoJars as error:
        major = re.match(r"\d+", version)
        upto = f"[{major[0] if major else version}.0.0,{version}]"
        try:
            return fetched(
                name,
                [
                    (SPARK, f"spark-sql-kafka-0-10_{SCALA}", upto, "alone"),
                    (SPARK, f"spark-token-provider-kafka-0-10_{SCALA}", upto, "alone"),
                    ("org.apache.kafka", "kafka-clients", "[3.9,4.0)", "alone"),
                    ("org.apache.commons", "commons-pool2", "[2.12,3)", "alone"),
                ],
            )
        except NoJars:
            raise error from None


def connector_version() -> str:
    """The version of the connector that was fetched, as told to users."""
    found = [path.stem for path in cached(_name()) if path.stem.startswith(f"spark-sql-kafka-0-10_{SCALA}-")]
    return found[0].rpartition(f"_{SCALA}-")[2] if found else "none"
