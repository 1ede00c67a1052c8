"""What would a move change? Judged without making it, where no link can be full and no promise binds those touched."""

from __future__ import annotations

from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.site_costs import correlation_of, site_value
from weft.plan.search.stream_costs import pulled, reroute


@compiled
def plain(i: Ints, op: int, old: int, new: int) -> bool:
    """Whether a move can be judged without making it."""
    if i[c.LIMITED]:
        return False
    if not i[c.LATENCY]:
        return True
    return bool(i[i[c.QUERY_OF] + op] < 0 and i[i[c.BOUND] + old] == 0 and i[i[c.BOUND] + new] == 0)


@compiled
def trial(i: Ints, f: Floats, op: int, new: int, most: float) -> float:
    """What `shift` would return, for a placed operator and a move that is `plain`; beyond `most` only a bound of it."""
    old = i[i[c.HOME] + op]
    change = pulled(i, f, op, new) - pulled(i, f, op, old)
    if i[c.POTENTIAL]:
        change += reroute(i, f, op, old, new)
    return _with_sites(i, f, change, old, op, new, -1, most)


@compiled
def trial_exchange(i: Ints, f: Floats, one: int, two: int, most: float) -> float:
    """What `exchange` would return, for operators whose moves are `plain`; beyond `most` only a bound of it."""
    home = i[c.HOME]
    here, there = i[home + one], i[home + two]
    change = pulled(i, f, one, there) - pulled(i, f, one, here)
    if i[c.POTENTIAL]:
        change += reroute(i, f, one, here, there)
    # The second goes while the first has gone already: they may be neighbours, or read the same.
    i[home + one] = there
    change += pulled(i, f, two, here) - pulled(i, f, two, there)
    if i[c.POTENTIAL]:
        change += reroute(i, f, two, there, here)
    i[home + one] = here
    return _with_sites(i, f, change, here, one, there, two, most)


@compiled
def _with_sites(i: Ints, f: Floats, change: float, here: int, one: int, there: int, two: int, most: float) -> float:
    """A change with that of two sites, which have one operator (-1: none) of the other's for one of their own.

    Correlation takes longer than all the rest and is at least -1 for each operator, which is often answer enough.
    """
    if i[c.POTENTIAL] and i[c.VARIES]:
        least = change + _value_with(i, f, here, one, two, False) + _value_with(i, f, there, two, one, False)
        if least > most:
            return least
    return change + _value_with(i, f, here, one, two, True) + _value_with(i, f, there, two, one, True)


@compiled
def _value_with(i: Ints, f: Floats, site: int, without: int, extra: int, whole: bool) -> float:
    """What a site's part would change by, one operator left out or one more (-1: none), or at least change by."""
    load, asked, lift = f[i[c.SITE_LOAD] + site], f[i[c.SITE_ASKED] + site], f[i[c.LIFT] + site]
    count = i[i[c.COUNT] + site]
    for op, sign in ((without, -1), (extra, 1)):
        if op >= 0:
            load += sign * f[i[c.LOAD] + op]
            asked += sign * f[i[c.ASKED] + op]
            lift += sign * f[i[c.WEIGHT] + op] * f[i[c.COST] + op]
            count += sign
    before = f[i[c.VALUE] + site]
    if count == 0:
        return -float(before)
    correlation = 0.0
    if i[c.POTENTIAL] and i[c.VARIES]:
        correlation = correlation_of(i, f, site, without, extra) if whole else -float(count)
    return site_value(i, f, site, load, asked, lift, count, correlation) - float(before)
