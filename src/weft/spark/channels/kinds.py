"""Which kinds of channel are there? One line each."""

from __future__ import annotations

from weft.spark.channels.channel import Channel
from weft.spark.channels.kafka_log import KafkaLog
from weft.spark.channels.log import Log
from weft.spark.channels.mirror import Mirror

KIND = "channel"
FOLDER, MIRROR, KAFKA = "folder", "mirror", "kafka"
CHANNELS: dict[str, type[Channel]] = {
    FOLDER: Log,
    MIRROR: Mirror,
    KAFKA: KafkaLog,
}


def open_channel(options: dict[str, str]) -> Channel:
    """The channel that a reader in another process was told of."""
    return CHANNELS[options.get(KIND, FOLDER)].of_options(options)
