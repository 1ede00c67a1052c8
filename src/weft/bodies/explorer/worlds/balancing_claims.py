"""What must hold in worlds of balancing."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.bodies.explorer.world import Claim, View
from weft.bodies.explorer.worlds.balancing_ground import FAULTS, Case, Land
from weft.protocol.balancing import Memory

LEAVING = ("lent", "stopping", "giving")
ANSWERED = ("accepted", "promised")
OWN = ("offered", "demanded", "taking", *ANSWERED)


def sites(view: View) -> list[tuple[str, Any]]:
    """Every site with its machine."""
    return [(site, view.machine(site)) for site in view.ground.case.parent]


def one_runs(view: View) -> bool:
    """No operator runs at two sites."""
    running = [operator for operator, _ in view.ground.runs]
    return len(set(running)) == len(running)


def one_answers(view: View) -> bool:
    """Of every operator one site has it, or none has and it is being handed over."""
    has = [operator for _, machine in sites(view) for operator in machine.memory.here]
    given = {
        part.operator
        for _, machine in sites(view)
        for giving in machine.memory.giving.values()
        for part in giving.operators
    }
    return len(set(has)) == len(has) and {*has, *given} == set(view.ground.case.homes)


def runs_where_it_is(view: View) -> bool:
    """What runs at a site, the site answers for."""
    return all(operator in view.machine(site).memory.here for operator, site in view.ground.runs)


def streams_pass(view: View) -> bool:
    """Every operator is where all its inputs pass: at their sites or above."""
    case: Case = view.ground.case
    homes = {operator: site for site, machine in sites(view) for operator in machine.memory.here}
    edges = [(source, reader) for reader, read in case.streams.inputs.items() for source in read]
    known = [(homes[source], homes[reader]) for source, reader in edges if source in homes and reader in homes]
    return all(above in case.above(site) for site, above in known)


def below_is_true(view: View) -> bool:
    """What a site takes to lie below it does, on that side, and nothing else does."""
    case: Case = view.ground.case
    homes = {operator: site for site, machine in sites(view) for operator in machine.memory.here}
    for site, machine in sites(view):
        told = {operator: child for operator, child in machine.memory.below.items() if operator in homes}
        ways = {operator: list(case.above(home)) for operator, home in homes.items()}
        true = {operator: way[way.index(site) - 1] for operator, way in ways.items() if site in way[1:]}
        # What a child has taken is not known to lie there until the child's word of it has come.
        waits = {part.operator for giving in machine.memory.giving.values() for part in giving.operators}
        if told != {operator: child for operator, child in true.items() if operator not in waits}:
            return False
    return True


def under_timers(view: View) -> bool:
    """Whoever waits does so under a timer, or for others of the same negotiation; and no other timer is set."""
    timers = set(view.timers)
    for site, machine in sites(view):
        states = {peer: machine.rows[peer].state for peer in machine.peers}
        asks = any(state in ("offered", "demanded") for state in states.values())
        for peer, state in states.items():
            timed = state not in ("idle", *ANSWERED)
            if timed != ((site, peer) in timers) and site not in view.ground.down:
                return False
            if state in ANSWERED and not asks:
                return False
    return True


def written(view: View) -> bool:
    """What must outlive a crash is on disk, but for loads."""
    return all(_lasting(machine.memory) == _lasting(view.ground.memory(site)) for site, machine in sites(view))


def _lasting(memory: Memory) -> Any:
    return msgspec.to_builtins(msgspec.structs.replace(memory, here=dict.fromkeys(memory.here, ())))


def one_at_a_time(view: View) -> bool:
    """A site has one negotiation of its own, and no operator is promised twice."""
    for _, machine in sites(view):
        rows = [machine.rows[peer] for peer in machine.peers]
        names = [part.operator for row in rows if row.state in LEAVING for part in row.parts()]
        if len({row.number for row in rows if row.mine}) > 1 or len(set(names)) < len(names):
            return False
    return True


def room_is_kept(view: View) -> bool:
    """Where loads do not change, all that room is kept for fits."""
    ground: Land = view.ground
    if ground.changed:
        return True
    for _, machine in sites(view):
        keeps = any(machine.rows[peer].state in ("held", "taking") for peer in machine.peers)
        if keeps and not all(a <= b for a, b in zip(machine.committed(), machine.marks.most, strict=True)):
            return False
    return True


def over_is_over(view: View) -> bool:
    """Of what is over, nothing is left."""
    blank = ("idle", False, 0, (), False, 0, "")
    rows = [row for _, machine in sites(view) for row in machine.rows.values() if row.state == "idle"]
    return all(
        (row.state, row.mine, row.number, row.transfers, row.urgent, row.serial, row.reason) == blank for row in rows
    )


def mine_is_mine(view: View) -> bool:
    """Who asked knows that it did; who answers does not take it for its own; and nothing is chosen too early."""
    for _, machine in sites(view):
        rows = [machine.rows[peer] for peer in machine.peers]
        asks = {row.state for row in rows if row.mine}
        if not all(row.mine == (row.state in OWN) for row in rows if row.state not in ("stopping", "giving")):
            return False
        if ("offered" in asks and {"stopping", "giving"} & asks) or {"demanded", "taking"} <= asks:
            return False
    return True


def looked(view: View) -> bool:
    """A site knows whether it has looked since it came up."""
    return all(machine.looked == (site not in view.ground.blind) for site, machine in sites(view))


def agreed(view: View) -> bool:
    """Both sides of a negotiation speak of the same operators."""
    for site, machine in sites(view):
        for peer in machine.peers:
            row, other = machine.rows[peer], view.machine(peer).rows[site]
            if row.number != other.number or other.state not in ("stopping", "giving"):
                continue
            kept, given = _names(row), _names(other)
            if (row.state == "taking" and kept != given) or (row.state == "held" and not kept >= given):
                return False
    return True


def _names(row: Any) -> set[str]:
    return {part.operator for part in row.parts()}


def undisturbed(view: View) -> bool:
    """Whether nothing has gone wrong and no load has changed."""
    return not any(view.faults) and not view.ground.changed


def all_taken(view: View) -> bool:
    """Where nothing goes wrong, what is handed over is taken."""
    return not (undisturbed(view) and view.ground.declined)


def none_refused(view: View) -> bool:
    """Where nothing goes wrong and no demand gives way, no message is refused."""
    return not (view.ground.refused and view.ground.case.only and undisturbed(view))


def done_by_words(view: View) -> bool:
    """Where nothing goes wrong, words alone bring everything to its end: no timer is needed."""
    if not undisturbed(view) or view.busy:
        return True
    return not view.timers and all(row.state == "idle" for _, machine in sites(view) for row in machine.rows.values())


def as_expected(view: View) -> bool:
    """Where nothing goes wrong, operators end up at one of the placements that the world names."""
    case: Case = view.ground.case
    return not (case.ends and undisturbed(view) and quiet(view)) or placement(view) in case.ends


def placement(view: View) -> str:
    """Where operators that can move are, as text."""
    pinned = view.ground.case.streams.pinned
    return " ".join(f"{operator}@{site}" for operator, site in view.ground.runs if operator not in pinned)


def quiet(view: View) -> bool:
    """Nothing is under way, every site has looked, and every operator runs where it belongs."""
    ground: Land = view.ground
    if view.flight or view.timers or any(choice.due for choice in ground.choices()):
        return False
    rows = [row for _, machine in sites(view) for row in machine.rows.values()]
    return all(row.state == "idle" for row in rows) and len(ground.runs) == len(ground.case.homes)


def _without(fault: str) -> Claim:
    return lambda view: view.ground.fault != fault


INVARIANTS = {
    "no operator runs at two sites": one_runs,
    "every operator has one site that answers for it": one_answers,
    "what runs at a site, the site answers for": runs_where_it_is,
    "every operator is where its streams pass": streams_pass,
    "what a site takes to lie below it does": below_is_true,
    **{claim: _without(claim) for claim in FAULTS},
    "every wait is under a timer, and no timer is left": under_timers,
    "what must outlive a crash is written down": written,
    "a site has one negotiation of its own, and promises nothing twice": one_at_a_time,
    "where loads do not change, all that room is kept for fits": room_is_kept,
    "of what is over, nothing is left": over_is_over,
    "who asked knows it, and chooses when all have answered": mine_is_mine,
    "a site knows whether it has looked since it came up": looked,
    "both sides speak of the same operators": agreed,
    "where nothing goes wrong, what is handed over is taken": all_taken,
    "where nothing goes wrong, no message is refused": none_refused,
    "where nothing goes wrong, no timer is needed": done_by_words,
    "where nothing goes wrong, operators end up where they should": as_expected,
}
