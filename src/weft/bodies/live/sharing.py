"""What do the queries of a run share? As its file says, and what runs already as it was begun."""

from __future__ import annotations

from weft.bodies.live import journal
from weft.bodies.live.state import CannotRun, State
from weft.bodies.live.valid import valid
from weft.model import Deployment
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.dataflow.real_time import with_real_time
from weft.plan.dataflow.sharing import as_written, resumed, with_sharing
from weft.spark.storage.disk import Damaged
from weft.spec import SpecError


def to_run(deployment: Deployment, state: State, fresh: bool, data: bool = True) -> Deployment:
    """A deployment as desk and sites run it: with guards, with what is shared, and what runs in real time.

    What came and went while it ran before counts, too; CannotRun where that does not go with the file any more. Without
    `data` the files that sources read need not be on this machine.
    """
    held = None if fresh else held_by(state)
    written = as_written(deployment)
    if held is None or not held.beside.of_file(written):
        whole = valid(written, data)
    else:
        valid(written, data)
        try:
            whole = valid(held.beside.applied(written), data)
        except SpecError as error:
            told = "; ".join(f"{problem.field}: {problem.message}" for problem in error.errors)
            raise CannotRun(
                f"what came and went while {state.path} ran does not go with this file: {told}. `weft apply` lets the "
                "file alone count"
            ) from error
    whole = with_ordering(whole)
    return with_real_time(with_sharing(whole) if held is None else as_held(whole, held))


def held_by(state: State) -> journal.Held | None:
    """What the journal of a state holds; one that cannot be read is refused by name when the state is looked at."""
    try:
        return journal.read(state)
    except (Damaged, OSError, LookupError):
        return None


def as_held(deployment: Deployment, held: journal.Held) -> Deployment:
    """A deployment as a run goes on with it under the plan that is held."""
    before = {stream.partition(".")[0] for stream in held.placement.homes}
    return resumed(as_written(deployment), before, held.stands, held.operators)


def with_beside(deployment: Deployment, held: journal.Held) -> Deployment:
    """The same, with what came and went while it ran."""
    return as_held(with_ordering(held.beside.applied(as_written(deployment))), held)
