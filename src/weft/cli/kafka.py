"""`weft kafka`: a broker on this machine, for trials and tests."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.output import WRONG_INPUT, Json, fail, note, patience, print_json, say

if TYPE_CHECKING:
    from weft.spark.kafka.broker import Broker


class Action(StrEnum):
    """What to do with the broker."""

    UP = "up"
    DOWN = "down"
    STATUS = "status"


def kafka(
    action: Annotated[Action, typer.Argument(help="Start it, end it, or say where it is.")],
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="Where its data lie and stay; temporary unless given.", show_default=False
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="P", min=1, max=65535, help="Where it listens; a free port unless given.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:N]", help="With up: make a topic of N partitions; may be given again."),
    ] = None,
    json: Json = False,
) -> None:
    """A Kafka broker on loopback for trials; the first `up` fetches it (44 MB) to the user's cache.

    \b
    Example:  weft kafka up --topic readings
    """
    from weft.spark.kafka.broker import NoBroker, down, find, up
    from weft.spark.kafka.jars import NoJars

    try:
        if action is Action.UP:
            wanted = [_topic(text) for text in topic or ()]
            with patience("starting a broker; the first time what it consists of is fetched"):
                broker = up(folder, port)
                made = _make(broker, wanted)
            _tell(broker, json, "runs", topics=made)
        elif action is Action.DOWN:
            ended = down(folder)
            if json:
                print_json({"ended": ended is not None, "pid": ended.pid if ended else None})
            else:
                say("no broker runs" if ended is None else f"ended the broker at {ended.bootstrap} (pid {ended.pid})")
        else:
            found = find(folder)
            if found is not None and not found.lives():
                note(f"the broker of {found.folder} (pid {found.pid}) is gone; `weft kafka up` starts it again")
                found = None
            if found is None:
                print_json({"up": False}) if json else say("no broker runs")
                return
            _tell(found, json, "runs")
    except (NoJars, NoBroker) as error:
        fail(str(error), WRONG_INPUT)


def _topic(text: str) -> tuple[str, int]:
    name, _, count = text.partition(":")
    if not name or (count and not (count.isdigit() and int(count) > 0)):
        fail(f"--topic must be a name, or a name and a number of partitions as readings:4, found `{text}`", WRONG_INPUT)
    return name, int(count or 1)


def _make(broker: Broker, wanted: list[tuple[str, int]]) -> list[str]:
    from weft.spark.kafka.client import KafkaTrouble, make_topics

    if not wanted:
        return []
    try:
        make_topics({"bootstrap.servers": broker.bootstrap}, wanted)
    except KafkaTrouble as error:
        fail(str(error), WRONG_INPUT)
    return [name for name, _ in wanted]


def _tell(broker: Broker, json: bool, does: str, **more: Any) -> None:
    if json:
        told = {"up": True, "bootstrap": broker.bootstrap, "pid": broker.pid, "folder": broker.folder}
        print_json({**told, "temporary": broker.temporary, **more})
        return
    say(f"a broker {does} at {broker.bootstrap} (pid {broker.pid}, data in {broker.folder})")
    for name in more.get("topics", ()):
        say(f"  topic {name}")
    say(f"`weft kafka down{'' if broker.temporary else f' {broker.folder}'}` ends it")
