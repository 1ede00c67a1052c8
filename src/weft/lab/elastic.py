"""A pipeline of operators whose instances scale by themselves, in steps (Decentral §3.4.1); machines as they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from weft.lab.virtual import Virtual, seeded
from weft.protocol import Effect
from weft.protocol.exclusion import Refuse
from weft.protocol.scaling import Create, Drain, Drained, Ended, Grow, Instance, Place, ScaleRule, Shrink
from weft.protocol.scaling.decision import copies, ds2_instances, leader_copies
from weft.protocol.scaling.instance import SENDS

CAPACITY = 500.0
PERIOD_STEPS = 5
HOP_STEPS = 0.5
"""So that a scale-out takes three steps and a scale-in two, the first included."""

Load = Callable[[str, int], float]


@dataclass(slots=True)
class Elastic:
    """What one run gave, for each operator and step: its load and how many instances worked on it."""

    loads: dict[str, list[float]] = field(default_factory=dict)
    counts: dict[str, list[int]] = field(default_factory=dict)
    messages: list[int] = field(default_factory=list)
    """All messages sent up to each step."""
    capacities: dict[str, list[float]] = field(default_factory=dict)


def run(
    load: Load,
    seed: int,
    who: str = "instances",
    operators: int = 5,
    instances: int = 14,
    steps: int = 200,
    rule: ScaleRule | None = None,
    period: int = PERIOD_STEPS,
    capacity_of: Callable[[str, int], float] | None = None,
) -> Elastic:
    """One run; `who` decides: the instances, a leader for each operator, or ds2 for all at once.

    Capacities are the same unless `capacity_of(instance, step)` says otherwise; load is shared in proportion to them.
    """
    rule = rule or ScaleRule()
    names = [f"o{at}" for at in range(operators)]
    places = {
        name: Place(name, tuple(names[at - 1 : at] if at else ()), tuple(names[at + 1 : at + 2]))
        for at, name in enumerate(names)
    }
    rng = seeded(who, operators, instances, steps, rule, seed)
    first = {f"{name}.{at}": name for name in names for at in range(instances)}

    def of(operators: tuple[str, ...]) -> dict[str, str]:
        return {name: operator for name, operator in first.items() if operator in operators}

    machines = {
        name: Instance(name, places[o], of(places[o].upstream), of(places[o].downstream), name.endswith(".0"))
        for name, o in first.items()
    }
    body = Virtual(machines, lambda _: HOP_STEPS, rng)
    turns = {name: rng.randrange(period) for name in machines}
    capacity = capacity_of or (lambda instance, step: CAPACITY)

    def perform(site: str, effect: Effect) -> None:
        assert not isinstance(effect, Refuse), effect
        match effect:
            case Create(instance):
                body.machines[instance] = Instance(instance, body.machines[site].place)  # type: ignore[attr-defined]
                turns[instance] = rng.randrange(period)
            case Drain():
                body.at(body.now_ms, site, Drained())
            case Ended():
                del turns[site]

    body.perform = perform
    found = Elastic({n: [] for n in names}, {n: [] for n in names}, [], {n: [] for n in names})
    for step in range(steps):
        body.run(until_ms=step)
        body.now_ms = float(step)
        working: dict[str, list[str]] = {name: [] for name in names}
        for name in turns:
            if body.machines[name].state in SENDS:  # type: ignore[attr-defined]
                working[body.machines[name].place.operator].append(name)  # type: ignore[attr-defined]
        for operator in names:
            now = load(operator, step)
            found.loads[operator].append(now)
            found.counts[operator].append(len(working[operator]))
            found.capacities[operator].append(sum(capacity(name, step) for name in working[operator]))
            if who == "instances":
                _by_themselves(body, rule, working[operator], turns, period, step, now, capacity, rng.random)
            elif step % period == 0:
                wanted = leader_copies(rule, now, CAPACITY, len(working[operator]))
                if who == "ds2":
                    rates = ds2_instances({operator: ()}, {operator: now}, {operator: CAPACITY}, {}, rule.target)
                    wanted = rates[operator] - len(working[operator])
                _by_one(body, working[operator], wanted)
        found.messages.append(body.sent)
    return found


def _by_themselves(
    body: Virtual,
    rule: ScaleRule,
    working: list[str],
    turns: dict[str, int],
    period: int,
    step: int,
    load: float,
    capacity: Callable[[str, int], float],
    chance: Callable[[], float],
) -> None:
    """Every instance whose turn it is decides from its own share."""
    total = sum(capacity(name, step) for name in working)
    for name in list(working):
        if turns[name] != step % period:
            continue
        own = capacity(name, step)
        keeper = body.machines[name].keeper  # type: ignore[attr-defined]
        made = copies(rule, load * own / total if total else load, own, chance(), keeper, CAPACITY)
        if made > 0:
            body.tell(name, Grow(made))
        elif made < 0:
            body.tell(name, Shrink())


def _by_one(body: Virtual, working: list[str], wanted: int) -> None:
    """One that decides for all lets the keeper grow, or others end."""
    keeper, *others = sorted(working, key=lambda name: not body.machines[name].keeper)  # type: ignore[attr-defined]
    if wanted > 0:
        body.tell(keeper, Grow(wanted))
    for name in others[: max(0, -wanted)]:
        body.tell(name, Shrink())
