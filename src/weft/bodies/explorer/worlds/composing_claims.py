"""What must hold of composers and keepers, in every state and at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from weft.bodies.explorer.world import Claim, View
from weft.bodies.explorer.worlds.composing_ground import FAULTS, Case, Terrain
from weft.bodies.explorer.worlds.strange import Stale
from weft.plan.composing.graphs import ways
from weft.plan.composing.impact import time_us
from weft.plan.composing.values import GONE, Broken
from weft.protocol import Received, Send
from weft.protocol.composing.words import (
    Answer,
    Confirmed,
    Found,
    Free,
    Kept,
    Leave,
    Left,
    NotConfirmed,
    Settle,
    Wanted,
)

ASKS = ("finding", "probing", "confirming", "leaving")
KEPT = ("confirmed", "held")


def _without(fault: str) -> Claim:
    return lambda view: view.ground.fault != fault


def never_overbooked(site: str, view: View) -> bool:
    """What is reserved and held at a site is at most what it has, and on every way to it what that carries."""
    keeper = view.machine(site)
    lines: dict[str, int] = {}
    for row in keeper.rows.values():
        for feed in row.feeds if row.state != "barren" else ():
            lines[feed.start] = lines.get(feed.start, 0) + feed.kbps
    within = all(kbps <= keeper.network.kbps(start, site) for start, kbps in lines.items())
    return within and sum(row.load for row in keeper.rows.values()) <= keeper.capacity


def counted(site: str, view: View) -> bool:
    """What a keeper counts is what its rows say."""
    keeper = view.machine(site)
    before = (keeper.load, dict(keeper.lines), dict(keeper.needs), keeper.needs_most)
    keeper.recount()
    return before == (keeper.load, keeper.lines, keeper.needs, keeper.needs_most)


def in_time_here(site: str, view: View) -> bool:
    """Whatever is confirmed or held at a site takes no longer there than it may."""
    keeper = view.machine(site)
    for row in keeper.rows.values():
        if row.state in KEPT and row.bound_us and row.cost_us:
            took = time_us(row.cost_us, keeper.load, keeper.capacity)
            if took is None or took > row.bound_us:
                return False
    return True


def promises_kept(case: Case, view: View) -> bool:
    """Every admitted query keeps its promise with all that sites are asked for now."""
    ground: Terrain = view.ground
    for _, decided in ground.notes:
        if decided.leaving or not decided.promised_us:
            continue
        took: dict[str, int | None] = {}
        for hop in decided.graph.hops:
            row = view.machine(hop.site).rows.get(f"{decided.attempt} {hop.piece}")
            if row is not None and row.cost_us and not hop.leans:
                keeper = view.machine(hop.site)
                took[hop.piece] = time_us(row.cost_us, keeper.load, keeper.capacity)
        for way in ways(decided.graph):
            times = [took.get(hop.piece, hop.exec_us) for hop in way]
            if None in times or sum(times) + sum(hop.link_us for hop in way) > decided.promised_us:  # type: ignore[arg-type]
                return False
    return True


def under_timers(case: Case, view: View) -> bool:
    """Every wait is under a timer, and no timer is left of what is over."""
    due = {(site, key) for site in case.sites() for key, row in view.machine(site).rows.items() if row.state != "held"}
    for name in case.composers():
        due |= {(name, key) for key, row in view.machine(name).rows.items() if row.state in ASKS}
    blind = {name for name, life in view.ground.lives if life > 1}
    # One that came back sets its timers when it is told to begin.
    return {one for one in due if one[0] not in blind} == {one for one in view.timers if one[0] not in blind}


def written(site: str, view: View) -> bool:
    """What is confirmed or held is on disk, with all that must not be forgotten of it."""
    disk = {(one.attempt, one.piece): one for name, one in view.ground.disks if name == site}
    rows = {(row.attempt, row.piece): row for row in view.machine(site).rows.values() if row.state in KEPT}
    return {*disk} == {*rows} and all(_same(one, rows[key]) for key, one in disk.items())


def _same(disk: Kept, row: Any) -> bool:
    feeds = {(feed.before, feed.start, feed.kbps) for feed in row.feeds if (feed.before, feed.start) in row.chosen}
    return (
        (disk.settled, disk.owner, disk.stream, disk.load, disk.cost_us, disk.bound_us, disk.by_us)
        == (row.state == "held", row.owner, row.stream, row.load, row.cost_us, row.bound_us, row.by_us)
        and (disk.leans, disk.leaving) == (row.leans, row.leaving)
        and {*disk.feeds} == feeds
    )  # fmt: skip


def noted(name: str, view: View) -> bool:
    """What runs or leaves is written down where it was composed, with all that must not be forgotten of it."""
    notes = {one.request: one for owner, one in view.ground.notes if owner == name}
    rows = {key: row for key, row in view.machine(name).rows.items() if row.state in ("running", "leaving")}
    return {*notes} == {*rows} and all(
        (one.attempt, one.promised_us, one.how, one.graph, {*one.left}, one.leaving)
        == (row.attempt, row.promised_us, row.how, row.graph, {*row.left}, row.state == "leaving")
        for one, row in ((notes[key], row) for key, row in rows.items())
    )


def only_chosen_ways(site: str, view: View) -> bool:
    """Of what runs just the ways are kept that were chosen."""
    held = [row for row in view.machine(site).rows.values() if row.state == "held"]
    return all({(feed.before, feed.start) for feed in row.feeds} == {*row.chosen} for row in held)


def only_admitted_runs(view: View) -> bool:
    """What runs belongs to a query that was admitted, or others lean on it."""
    ground: Terrain = view.ground
    noted = {(f"{one.attempt} {hop.piece}", hop.site) for _, one in ground.notes for hop in one.graph.hops}
    return all((one.name, one.site) in noted for one in ground.runs)


def leaves_backwards(view: View) -> bool:
    """Of a query that leaves, whatever stays has all that it reads."""
    leaving = [one for _, one in view.ground.notes if one.leaving]
    return all(
        hop.before in one.left or hop.before not in {other.piece for other in one.graph.hops}
        for one in leaving for hop in one.graph.hops if hop.piece in one.left
    )  # fmt: skip


def lent_is_there(site: str, view: View) -> bool:
    """What somebody leans on runs."""
    rows = view.machine(site).rows
    return all(not row.leans or (row.leans in rows and rows[row.leans].state == "held") for row in rows.values())


def leaves_with_the_last(site: str, view: View) -> bool:
    """What is to leave stays only while somebody leans on it."""
    rows = view.machine(site).rows
    leant = {row.leans for row in rows.values() if row.state != "absent"}
    return all(not row.leaving or key in leant for key, row in rows.items())


def answered(case: Case, view: View) -> bool:
    """Every request has ended, nothing is reserved, and just what was admitted is held."""
    ground: Terrain = view.ground
    if view.busy or not {*case.queries} <= {name for name, _ in ground.told}:
        return False
    stays: set[tuple[str, str]] = set()
    for name in case.composers():
        for row in view.machine(name).rows.values():
            if row.state not in ("running", "leaving"):
                return False
            pieces = row.left if row.state == "leaving" else {hop.piece for hop in row.graph.hops}
            stays |= {(f"{row.attempt} {hop.piece}", hop.site) for hop in row.graph.hops if hop.piece in pieces}
    held = {(key, site) for site in case.sites() for key, row in view.machine(site).rows.items() if row.state == "held"}
    others = any(row.state != "held" for site in case.sites() for row in view.machine(site).rows.values())
    return not others and held == stays


def as_expected(case: Case, view: View) -> bool:
    """Where nothing goes wrong, one of the outcomes comes about that the world names."""
    if not case.ends or any(view.faults) or not answered(case, view) or not view.told:
        return True
    ground: Terrain = view.ground
    runs = " ".join(sorted(name for name, what in ground.told if what == "admitted"))
    return runs in case.ends


def stale(machine: Any) -> Iterator[Stale]:
    """What comes of another attempt, or of what is so already, and what is said to that."""
    if not hasattr(machine, "life"):
        for row in machine.rows.values():
            if row.state == "held":
                yield Received(row.owner, Settle(row.attempt, row.piece)), ()
                yield Received(row.owner, Free(row.attempt, row.piece)), ()
            else:
                yield Received(row.owner, Leave(row.attempt, row.piece)), ()
            for branch in row.branches if row.state == "probing" else ():
                for site in branch.pending:
                    rounds = (row.round - 1, row.round + 1)
                    yield from (
                        (Received(site, Answer(row.attempt, branch.piece, row.piece, one)), ()) for one in rounds
                    )
                yield Received("nobody", Answer(row.attempt, branch.piece, row.piece, row.round)), ()
        return
    for key, row in machine.rows.items():
        old = f"{key}#0.0"
        if row.state == "finding":
            yield Found(key, row.serial - 1), ()
        for branch in row.branches:
            yield Received("nobody", Answer(row.attempt, branch.piece, branch.before, 0)), ()
        for piece in {*row.waiting, *(hop.piece for hop in row.graph.hops), *row.left}:
            yield Received("a", Wanted(old, piece)), (Send("a", Free(old, piece)),)
            yield Received("a", Confirmed(old, piece, row.turn)), ()
            yield Received("a", Left(old, piece)), ()
            yield Received("a", NotConfirmed(old, piece, row.turn, Broken(GONE, "a", piece))), ()
            for turn in (row.turn - 1, row.turn + 1) if row.state == "confirming" else ():
                yield Received("a", Confirmed(row.attempt, piece, turn)), ()
                yield Received("a", NotConfirmed(row.attempt, piece, turn, Broken(GONE, "a", piece))), ()
            if row.state in ("running", "leaving") and row.attempt != old:
                yield Received("nobody", Wanted(row.attempt, piece)), (Send("nobody", Free(row.attempt, piece)),)
                ends = [hop.site for hop in row.graph.hops if hop.piece == piece]
                yield Received(ends[0], Wanted(row.attempt, piece)), (Send(ends[0], Settle(row.attempt, piece)),)


OF_ONE: dict[str, Callable[[str, View], bool]] = {
    "no site is overbooked": never_overbooked,
    "what a keeper counts is what its rows say": counted,
    "what runs at a site takes no longer there than it may": in_time_here,
    "what is confirmed is written down": written,
    "what somebody leans on runs": lent_is_there,
    "what is to leave stays only while somebody leans on it": leaves_with_the_last,
    "of what runs just the ways are kept that were chosen": only_chosen_ways,
}
OF_ALL: dict[str, Callable[[Case, View], bool]] = {
    "every admitted query keeps its promise": promises_kept,
    "every wait is under a timer, and no timer is left": under_timers,
    "where nothing goes wrong, what can be admitted is": as_expected,
}


def claims(case: Case) -> dict[str, Claim]:
    """All claims of a case."""
    return {
        **{claim: _without(claim) for claim in FAULTS},
        **{f"{claim}: {site}": partial(holds, site) for claim, holds in OF_ONE.items() for site in case.sites()},
        **{claim: partial(holds, case) for claim, holds in OF_ALL.items()},
        **{f"what runs or leaves is written down: {name}": partial(noted, name) for name in case.composers()},
        "only what was admitted runs": only_admitted_runs,
        "of a query that leaves, whatever stays has all that it reads": leaves_backwards,
    }
