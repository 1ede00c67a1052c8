"""What runs now, of the plan in force? The runs of all sites that are up, each where the plan has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.model import Deployment
from weft.plan.changing.fragments import Fragment
from weft.spark.engine import SparkEngine
from weft.spark.fragments.lifecycle import FragmentRun
from weft.spark.measuring.progress import StageTimes


class Running:
    """The engines of all sites in this process, as one."""

    def __init__(
        self,
        deployment: Deployment,
        engines: Mapping[str, SparkEngine],
        fragments: Callable[[], tuple[Fragment, ...]],
        stages: StageTimes,
    ) -> None:
        self.deployment = deployment
        self.stages = stages
        self._engines = engines
        self._fragments = fragments

    @property
    def fragments(self) -> dict[str, Fragment]:
        """The fragments in force."""
        return {fragment.id: fragment for fragment in self._fragments()}

    @property
    def runs(self) -> dict[str, FragmentRun]:
        """The latest run of each."""
        found: dict[str, FragmentRun] = {}
        for name, fragment in self.fragments.items():
            engine = self._engines.get(fragment.site)
            if engine is not None and name in engine.runs:
                found[name] = engine.runs[name]
        return found

    def drained(self) -> bool:
        """True if all that runs has come to the end of its inputs."""
        return all(run.drained() for run in self.runs.values())

    def look_after(self) -> None:
        """List what Spark has added to checkpoints since, and let go what is held back on silent streams."""
        for engine in list(self._engines.values()):
            engine.look_after()
            engine.nudge()

    def syncs_ms(self) -> list[float]:
        """How long batches of late have waited for the disk, each."""
        return [spent for run in self.runs.values() for spent in list(run.writer.sync_ms)]
