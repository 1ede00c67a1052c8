"""For whom are streams kept? For the readers of the plan in force, whether they have begun or not, and nobody else."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.plan.changing.fragments import Fragment
from weft.spark.channels.channel import fragment_of, reader_name
from weft.spark.channels.folders import Folders

AWAITED = "awaited"
"""The way in of a fragment that has none yet; what it reads by when it starts takes its place (`forget_others`)."""


def keep_for_readers(folders: Folders, fragments: Sequence[Fragment]) -> None:
    """Nothing is kept in channels for readers that a plan does not have."""
    for channel in folders.streams():
        channel.forget_but([one.id for one in fragments if channel.name in one.channels])


def await_readers(folders: Folders, fragments: Sequence[Fragment], written: Collection[str] | None = None) -> None:
    """Keep streams whole for fragments that have not begun to read them: their site may start long after the others.

    Of mirrored streams only homes await readers: `written` says which those are.
    """
    for one in fragments:
        for stream in one.channels:
            if not (folders.is_here(stream) if written is None else stream in written):
                continue
            channel = folders.stream(stream).create()
            if one.id not in map(fragment_of, channel.known()):
                channel.register(reader_name(one.id, AWAITED))
