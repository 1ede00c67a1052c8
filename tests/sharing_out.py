"""Which test process runs which file? The last has those that need no Spark: much of their time they only wait."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARKS_MAX = 2
MARK = "mark.spark"


def processes() -> int:
    """One for each core, as far as there is room for their Sparks, and one that starts none."""
    return min(SPARKS_MAX, os.cpu_count() or 1) + 1


@cache
def needs_spark(file: Path) -> bool:
    """Whether any test of a file does."""
    return MARK in file.read_text(encoding="utf-8")


class SharingOut(LoadFileScheduling):
    """Hands out whole files in the order in which they were collected, those with Spark to all but one process."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        without = node.gateway.id == f"gw{self.numnodes - 1}"
        wanted = [scope for scope in self.workqueue if needs_spark(self.config.rootpath / scope) != without]
        if wanted:
            self.workqueue.move_to_end(wanted[0], last=False)
        elif without and len(self.nodes) > 1:
            node.shutdown()
            return
        super()._assign_work_unit(node)
