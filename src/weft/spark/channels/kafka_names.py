"""What are the topics of a channel called, and how is their broker reached? From what a deployment file says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from weft.model import Channels
from weft.spark.kafka import client

BOOTSTRAP, PREFIX = "bootstrap", "prefix"
PREFIX_DEFAULT = "weft."
NAME_CHARS_MAX = 200


def safe(name: str) -> str:
    """A name that Kafka takes within a topic's: letters, digits, `.`, `_` and `-`, unique where it had to change."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:NAME_CHARS_MAX]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def settings_of(channels: Channels) -> dict[str, str]:
    """What a channel over Kafka must be told, from what a deployment file says."""
    if channels.bootstrap is None:
        return {}
    return {**channels.options, BOOTSTRAP: channels.bootstrap, PREFIX: channels.prefix}


def connection(settings: Mapping[str, str]) -> dict[str, Any]:
    """How the client reaches the broker of a channel."""
    given = {key: value for key, value in settings.items() if key.startswith(client.PREFIX)}
    return {**client.connection(given), "bootstrap.servers": settings.get(BOOTSTRAP, "")}
