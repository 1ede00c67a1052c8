"""What do the queries of a run share? As its file says, and what runs already as it was begun."""

from __future__ import annotations

from weft.bodies.live import journal
from weft.bodies.live.state import State
from weft.bodies.live.valid import valid
from weft.model import Deployment
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.dataflow.real_time import with_real_time
from weft.plan.dataflow.sharing import as_written, resumed, with_sharing
from weft.spark.storage.disk import Damaged


def to_run(deployment: Deployment, state: State, fresh: bool) -> Deployment:
    """A deployment as desk and sites run it: with guards, with what is shared, and what runs in real time."""
    return with_real_time(with_held_sharing(with_ordering(valid(as_written(deployment))), state, fresh))


def with_held_sharing(deployment: Deployment, state: State, fresh: bool) -> Deployment:
    """A deployment whose equal operators run once; where a state holds a plan, as far as that has it so."""
    try:
        held = None if fresh else journal.read(state)
    except Damaged:
        held = None  # refused by name when the state is looked at
    return with_sharing(deployment) if held is None else as_held(deployment, held)


def as_held(deployment: Deployment, held: journal.Held) -> Deployment:
    """A deployment as a run goes on with it under the plan that is held."""
    before = {stream.partition(".")[0] for stream in held.placement.homes}
    return resumed(as_written(deployment), before, held.stands, held.operators)
