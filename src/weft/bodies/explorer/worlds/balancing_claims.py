"""What must hold in worlds of balancing.

Claims about one site look at its machine alone; those about all of them at marks, which many states share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from weft.bodies.explorer.world import Claim, View
from weft.bodies.explorer.worlds.balancing_ground import FAULTS, Land, Tree
from weft.protocol.balancing import Demand, Memory, Offer

LEAVING = ("lent", "stopping", "giving")
ANSWERED = ("accepted", "promised")
OWN = ("offered", "demanded", "taking", *ANSWERED)


class Mark(NamedTuple):
    """What of a machine claims about all of them need."""

    here: tuple[str, ...]
    below: tuple[tuple[str, str], ...]
    given: tuple[str, ...]
    idle: bool


def mark(machine: Any) -> Mark:
    """The mark of a machine."""
    memory: Memory = machine.memory
    given = [part.operator for giving in memory.giving.values() for part in giving.operators]
    idle = all(row.state == "idle" for row in machine.rows.values())
    return Mark(tuple(memory.here), tuple(sorted(memory.below.items())), tuple(sorted(given)), idle)


def marks(case: Tree, view: View) -> dict[str, Mark]:
    """The marks of all sites."""
    return {site: view.mark(site) for site in case.parent}


def homes(case: Tree, view: View) -> dict[str, str]:
    """Where operators are that some site has."""
    return {operator: site for site, one in marks(case, view).items() for operator in one.here}


def one_runs(view: View) -> bool:
    """No operator runs at two sites."""
    running = [operator for operator, _ in view.ground.runs]
    return len(set(running)) == len(running)


def one_answers(case: Tree, view: View) -> bool:
    """Of every operator one site has it, or none has and it is being handed over."""
    has = [operator for one in marks(case, view).values() for operator in one.here]
    given = [operator for one in marks(case, view).values() for operator in one.given]
    return len(set(has)) == len(has) and {*has, *given} == set(case.homes)


def streams_pass(case: Tree, view: View) -> bool:
    """Every operator is where all its inputs pass: at their sites or above."""
    where = homes(case, view)
    edges = [(source, reader) for reader, read in case.streams.inputs.items() for source in read]
    known = [(where[source], where[reader]) for source, reader in edges if source in where and reader in where]
    return all(above in case.above(site) for site, above in known)


def below_is_true(case: Tree, view: View) -> bool:
    """What a site takes to lie below it does, on that side, and nothing else does."""
    where = homes(case, view)
    ways = {operator: list(case.above(home)) for operator, home in where.items()}
    for site, one in marks(case, view).items():
        told = {operator: child for operator, child in one.below if operator in where}
        true = {operator: way[way.index(site) - 1] for operator, way in ways.items() if site in way[1:]}
        # What a child has taken is not known to lie there until the child's word of it has come.
        if told != {operator: child for operator, child in true.items() if operator not in one.given}:
            return False
    return True


def runs_where_it_is(site: str, view: View) -> bool:
    """What runs at a site, the site answers for."""
    has = view.mark(site).here
    return all(operator in has for operator, where in view.ground.runs if where == site)


def under_timers(site: str, view: View) -> bool:
    """Whoever waits does so under a timer, or for others of the same negotiation; and no other timer is set."""
    machine = view.machine(site)
    states = {peer: machine.rows[peer].state for peer in machine.peers}
    asks = any(state in ("offered", "demanded") for state in states.values())
    if any(state in ANSWERED and not asks for state in states.values()):
        return False
    timed = {(site, peer) for peer, state in states.items() if state not in ("idle", *ANSWERED)}
    return timed == {timer for timer in view.timers if timer[0] == site} or site in view.ground.down


def written(site: str, view: View) -> bool:
    """What must outlive a crash is on disk, but for loads."""
    return bool(_lasting(view.machine(site).memory) == _lasting(view.ground.memory(site)))


def _lasting(memory: Memory) -> Any:
    return msgspec.to_builtins(msgspec.structs.replace(memory, here=dict.fromkeys(memory.here, ())))


def one_at_a_time(site: str, view: View) -> bool:
    """A site has one negotiation of its own, and no operator is promised twice."""
    machine = view.machine(site)
    rows = [machine.rows[peer] for peer in machine.peers]
    names = [part.operator for row in rows if row.state in LEAVING for part in row.parts()]
    return len({row.number for row in rows if row.mine}) <= 1 and len(set(names)) == len(names)


def room_is_kept(site: str, view: View) -> bool:
    """Where loads do not change, all that room is kept for fits, beside what is here and what may come back."""
    machine = view.machine(site)
    rows = [machine.rows[peer] for peer in machine.peers]
    if not any(row.state in ("held", "taking") for row in rows):
        return True
    comes = [part.loads for row in rows if row.state in ("held", "taking", "giving") for part in row.parts()]
    sums = (sum(one) for one in zip(machine.none, *machine.memory.here.values(), *comes, strict=True))
    fits = all(load <= most for load, most in zip(sums, machine.limits.thresholds().most, strict=True))
    return fits or bool(view.ground.changed)


def over_is_over(site: str, view: View) -> bool:
    """Of what is over, nothing is left."""
    blank = ("idle", False, 0, (), False, 0, "")
    rows = [row for row in view.machine(site).rows.values() if row.state == "idle"]
    return all(
        (row.state, row.mine, row.number, row.transfers, row.urgent, row.serial, row.reason) == blank for row in rows
    )


def mine_is_mine(site: str, view: View) -> bool:
    """Who asked knows that it did; who answers does not take it for its own; and nothing is chosen too early."""
    machine = view.machine(site)
    rows = [machine.rows[peer] for peer in machine.peers]
    asks = {row.state for row in rows if row.mine}
    if not all(row.mine == (row.state in OWN) for row in rows if row.state not in ("stopping", "giving")):
        return False
    return not (("offered" in asks and {"stopping", "giving"} & asks) or {"demanded", "taking"} <= asks)


def looked(site: str, view: View) -> bool:
    """A site knows whether it has looked since it came up."""
    return bool(view.machine(site).looked == (site not in view.ground.blind))


def agreed(site: str, peer: str, view: View) -> bool:
    """Both sides of a negotiation speak of the same operators."""
    row, other = view.machine(site).rows[peer], view.machine(peer).rows[site]
    if row.state not in ("held", "taking") or other.state not in ("stopping", "giving") or row.number != other.number:
        return True
    kept, given = _names(row), _names(other)
    return kept == given if row.state == "taking" else kept >= given


def _names(row: Any) -> set[str]:
    return {part.operator for part in row.parts()}


def undisturbed(view: View) -> bool:
    """Whether nothing has gone wrong and no load has changed."""
    return not any(view.faults) and not view.ground.changed


def all_taken(view: View) -> bool:
    """Where nothing goes wrong, what is handed over is taken."""
    return not (view.ground.declined and undisturbed(view))


def none_refused(view: View) -> bool:
    """Where nothing goes wrong and no demand gives way, no message is refused."""
    return not (view.ground.refused and view.ground.case.only and undisturbed(view))


def done_by_words(case: Tree, view: View) -> bool:
    """Where nothing goes wrong, words alone bring everything to its end: no timer is needed."""
    if view.busy or any(view.faults) or view.ground.changed:
        return True
    return not view.timers and all(one.idle for one in marks(case, view).values())


def as_expected(case: Tree, view: View) -> bool:
    """Where nothing goes wrong, operators end up at one of the placements that the world names."""
    if not case.ends or view.busy or any(view.faults) or view.ground.changed:
        return True
    return not quiet(view) or placement(view) in case.ends


def placement(view: View) -> str:
    """Where operators that can move are, as text."""
    pinned = view.ground.case.streams.pinned
    return " ".join(f"{operator}@{site}" for operator, site in view.ground.runs if operator not in pinned)


def quiet(view: View) -> bool:
    """Nothing is under way, every site has looked, and every operator runs where it belongs."""
    if view.busy or view.timers:
        return False
    ground: Land = view.ground
    idle = all(view.mark(site).idle for site in ground.case.parent)
    return idle and len(ground.runs) == len(ground.case.homes)


def _without(fault: str) -> Claim:
    return lambda view: view.ground.fault != fault


OF_ALL: dict[str, Callable[[Tree, View], bool]] = {
    "every operator has one site that answers for it": one_answers,
    "every operator is where its streams pass": streams_pass,
    "what a site takes to lie below it does": below_is_true,
    "where nothing goes wrong, no timer is needed": done_by_words,
    "where nothing goes wrong, operators end up where they should": as_expected,
}
OF_ONE: dict[str, Callable[[str, View], bool]] = {
    "what runs at a site, the site answers for": runs_where_it_is,
    "every wait is under a timer, and no timer is left": under_timers,
    "what must outlive a crash is written down": written,
    "a site has one negotiation of its own, and promises nothing twice": one_at_a_time,
    "where loads do not change, all that room is kept for fits": room_is_kept,
    "of what is over, nothing is left": over_is_over,
    "who asked knows it, and chooses when all have answered": mine_is_mine,
    "a site knows whether it has looked since it came up": looked,
}
AGREED = "both sides speak of the same operators"


def numbers_written(view: View) -> bool:
    """What bears a number was said after the number was written down, so that no life uses it twice."""
    counts = {site: view.ground.memory(site).count for site in view.ground.case.parent}
    return not any(
        isinstance(message, Offer | Demand) and message.number > counts[site]
        for (site, _), messages in view.flight
        for message in messages
    )


def claims(case: Tree) -> dict[str, Claim]:
    """All claims of a case; those about one site, for each site."""
    ups = [(site, up) for site, up in case.parent.items() if up]
    pairs = [*ups, *((up, site) for site, up in ups)]
    return {
        "no operator runs at two sites": one_runs,
        **{claim: partial(holds, case) for claim, holds in OF_ALL.items()},
        **{claim: _without(claim) for claim in FAULTS},
        **{f"{claim}: {site}": partial(holds, site) for claim, holds in OF_ONE.items() for site in case.parent},
        **{f"{AGREED}: {site} and {peer}": partial(agreed, site, peer) for site, peer in pairs},
        "where nothing goes wrong, what is handed over is taken": all_taken,
        "where nothing goes wrong, no message is refused": none_refused,
    }
