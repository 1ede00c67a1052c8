"""`weft` in a process that is killed, with its children, at a chosen write.

    python -m tests.bodies.live.cut_run POINT ARGS...

A point is a number (that write of all) or PATTERN@COUNT: the so manyth write whose kind and path match, as in
`link .*manifests/0@3`. A `!` in front means after the write is done, else the process ends before it.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from weft.spark.storage.disk import Disk

KINDS = ("write", "link", "rename", "remove", "remove_tree", "sync", "make")


class Counted:
    """Counts writes, and ends the process group at the one asked for."""

    def __init__(self, point: str) -> None:
        self.after = point.startswith("!")
        self.pattern, _, count = point.removeprefix("!").rpartition("@")
        self.pattern = self.pattern.replace(" ", " .*", 1)
        self.left = int(count)

    def due(self, kind: str, path: object) -> bool:
        if self.pattern and not re.search(self.pattern, f"{kind} {path}"):
            return False
        self.left -= 1
        return self.left == 0


def arm(point: str) -> None:
    """Let the process die there."""
    counted = Counted(point)

    def wrapped(kind: str, method: Any) -> Any:
        def call(self: Disk, first: Any, *more: Any, **named: Any) -> Any:
            if kind == "sync":
                first, more = list(first), tuple(list(one) for one in more)
            # What is linked or renamed is known by its new name.
            path = more[0] if kind in ("link", "rename") else first
            due = counted.due(kind, path)
            if due and not counted.after:
                die(kind, path)
            done = method(self, first, *more, **named)
            if due:
                die(kind, path)
            return done

        return call

    for kind in KINDS:
        setattr(Disk, kind, wrapped(kind, getattr(Disk, kind)))


def die(kind: str, path: object) -> None:
    told = os.environ.get("CUT_TOLD")
    if told:
        Path(told).write_text(f"{kind} {path}")
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    from weft.cli import main

    arm(sys.argv[1])
    sys.argv = ["weft", *sys.argv[2:]]
    main()
