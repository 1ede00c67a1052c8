"""Which plan is in force, and why is everything where it is? One sealed file of the state, written whole each time.

plan.json holds the number of the change that made the plan, the placement with its reasons, the fragments, how often
each fragment was cut anew (generations), and where those that were started early went on (gates). Where queries share,
it also holds which streams stand for which, and the operators behind them: their query may leave the file. `beside` is
what came and went while it ran, and the file does not say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from weft.bodies.live.beside import Beside, beside_of
from weft.bodies.live.state import State
from weft.model import Deployment, Operator, Placement
from weft.plan.changing.fragments import Fragment, with_queries
from weft.plan.changing.running_plan import RunningPlan
from weft.plan.dataflow.sharing import made_for_others
from weft.spark.storage.disk import Damaged

FILE = "plan.json"


@dataclass(frozen=True, slots=True)
class Held:
    """What a journal holds."""

    number: int
    placement: Placement
    fragments: tuple[Fragment, ...]
    generations: dict[str, int] = field(default_factory=dict)
    gates: dict[str, Any] = field(default_factory=dict)
    stands: dict[str, str] = field(default_factory=dict)
    operators: dict[str, Operator] = field(default_factory=dict)
    beside: Beside = Beside()

    def plan(self, deployment: Deployment) -> RunningPlan:
        """The plan in force, of a deployment that has all its queries."""
        return RunningPlan(self.number, deployment, self.placement, self.fragments)


def read(state: State) -> Held | None:
    """What the journal of a state holds, None where there is none yet; Damaged where it is garbled."""
    found = state.read(FILE)
    try:
        return None if found is None else held(found)
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # msgspec's errors are ValueErrors
        raise Damaged(state.path / FILE, "holds no plan in force") from error


def held(found: Mapping[str, Any]) -> Held:
    """A journal from its plain form; one of an earlier version has no reasons, and one query a fragment."""
    homes: dict[str, str] = {}
    others: dict[str, tuple[str, ...]] = {}
    for query, operators in found["placement"].items():
        for operator, (home, *more) in operators.items():
            homes[f"{query}.{operator}"] = home
            if more:
                others[f"{query}.{operator}"] = tuple(more)
    instances = {stream: tuple(sites) for stream, sites in found.get("instances", others).items()}
    backups = {stream: tuple(sites) for stream, sites in found.get("backups", {}).items()}
    placement = Placement(homes, instances, backups, found.get("reasons", {}))
    fragments = tuple(msgspec.convert(with_queries(value), Fragment) for value in found["fragments"])
    shared = found.get("shared", {})
    operators = {stream: msgspec.convert(plain, Operator) for stream, plain in shared.get("operators", {}).items()}
    return Held(
        found["number"], placement, fragments, dict(found["generations"]), dict(found["gates"]),
        dict(shared.get("stands", {})), operators, beside_of(found),
    )  # fmt: skip


def write(
    state: State,
    plan: RunningPlan,
    generations: Mapping[str, int],
    gates: Mapping[str, Any],
    beside: Beside | None = None,
) -> None:
    """Let a plan be in force: it is on disk when this returns."""
    placement = plan.placement
    state.write(
        FILE,
        {
            "number": plan.number,
            "placement": placement.as_json(),
            "instances": {stream: list(sites) for stream, sites in placement.instances.items()},
            "backups": {stream: list(sites) for stream, sites in placement.backups.items()},
            "reasons": dict(placement.reasons),
            "fragments": [asdict(fragment) for fragment in plan.fragments],
            "generations": dict(generations),
            "gates": dict(gates),
            **_shared(plan.deployment),
            **(beside.plain() if beside else {}),
        },
    )


def write_alone(state: State) -> None:
    """Let the file alone say which queries there are: what came and went while it ran is forgotten."""
    found = state.read(FILE)
    if found is not None and found.pop("beside", None) is not None:
        state.write(FILE, found)


def _shared(deployment: Deployment) -> dict[str, Any]:
    """What queries share, where they do."""
    if deployment.sharing is None or not deployment.sharing.stands:
        return {}
    operators = {stream: asdict(operator) for stream, operator in made_for_others(deployment).items()}
    return {"shared": {"stands": dict(deployment.sharing.stands), "operators": operators}}
