"""The compiled part of an exploration: rows of numbers, tables that say what follows from them, a set of marks seen.

A state is a row of numbers, one for each machine, channel, script, for the timers, the ground and the counts of faults.
What a number stands for is known to the alphabet alone. A state is known by a mark of 128 bits: a sum of random words,
one for each place and number, so that a step changes only what it touches; two of 50 million states share a mark by
chance with a probability below 10^-20.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.plan.compiled import compiled

MISSING, FORBIDDEN, ILLEGAL = -1, -2, -3
OFFERS, RENAME = -1, -2
"""What may be missing of a value besides what operations make of it: its offers; from RENAME down, its other names."""
FREE, IDLE_ONLY, OPTIONAL = 0, 1, 2
"""How an offer may be taken: always; when nothing else is under way, else as a fault; always, but it need not come."""
EARLY, LOSE, OVERTAKE, CRASH, DOUBLE, TEAR, FIRST_OP = 3, 4, 5, 6, 7, 8, 9
WHOLE = -1
"""A step of which all effects are done; any other is a cut, from 0 up: some are done, then its machine crashes."""


@compiled
def mix(place: int, number: int, seed: int) -> Any:
    """A random word for a number at a place; nothing for 0, which stands for empty."""
    if number == 0:
        return np.uint64(0)
    z = (np.uint64(place) << np.uint64(40)) ^ np.uint64(number) ^ (np.uint64(seed) << np.uint64(56))
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def find(keys: Any, key: Any) -> Any:
    """Where a key stands in a table, or the free place for it."""
    size = keys.size - 1
    z = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    at = np.int64((z ^ (z >> np.uint64(29))) & np.uint64(size))
    while keys[at] != key and keys[at] != -1:
        at = (at + 1) & size
    return at


@compiled
def put(keys: Any, values: Any, programs: Any, key: int, value: int, program: int) -> None:
    """Notes what follows from a key."""
    at = find(keys, key)
    keys[at] = key
    values[at] = value
    programs[at] = program


@compiled
def rehash(keys: Any, values: Any, programs: Any, new_keys: Any, new_values: Any, new_programs: Any) -> None:
    """Carries a table over to a larger one."""
    for at in range(keys.size):
        if keys[at] != -1:
            put(new_keys, new_values, new_programs, keys[at], values[at], programs[at])


@compiled
def lookup(memo: Any, number: int, op: int) -> Any:
    """The place of what an operation makes of a number; below 0 where that is not known yet."""
    keys = memo[0]
    key = (np.int64(number) << 31) | np.int64(op)
    at = find(keys, key)
    return at if keys[at] == key else np.int64(-1)


@compiled
def change(row: Any, mark: Any, place: int, number: int) -> None:
    """Puts another number at a place of a row and its mark."""
    old = row[place]
    if old != number:
        mark[0] = mark[0] - mix(place, old, 0) + mix(place, number, 0)
        mark[1] = mark[1] - mix(place, old, 1) + mix(place, number, 1)
        row[place] = number


@compiled
def perform(row: Any, mark: Any, program: int, programs: Any, memo: Any, miss: Any) -> Any:
    """Does what a program says to a row; below 0 where something is not known yet."""
    for at in range(programs[0][program], programs[1][program]):
        place = programs[2][at]
        found = lookup(memo, row[place], programs[3][at])
        if found < 0:
            miss[0] = row[place]
            miss[1] = programs[3][at]
            return MISSING
        change(row, mark, place, memo[1][found])
    return 0


@compiled
def charge(row: Any, mark: Any, budget: int, kind: int, memo: Any, miss: Any) -> Any:
    """Counts a fault; below 0 where there may be no more of its kind, or that is not known yet."""
    found = lookup(memo, row[budget], kind)
    if found < 0:
        miss[0] = row[budget]
        miss[1] = kind
        return MISSING
    if memo[1][found] == FORBIDDEN:
        return FORBIDDEN
    change(row, mark, budget, memo[1][found])
    return 0


@compiled
def tear(row: Any, mark: Any, cut: int, budget: int, programs: Any, memo: Any, miss: Any) -> Any:
    """Does the effects of a step up to a cut; then its machine crashes, and comes back with what it had remembered."""
    charged = charge(row, mark, budget, TEAR, memo, miss)
    if charged < 0:
        return charged
    if perform(row, mark, programs[7][cut], programs, memo, miss) < 0:
        return MISSING
    ground = programs[8][cut]
    found = lookup(memo, row[ground], programs[9][cut])
    if found < 0:
        miss[0] = row[ground]
        miss[1] = programs[9][cut]
        return MISSING
    change(row, mark, ground, memo[1][found])
    return perform(row, mark, memo[2][found], programs, memo, miss)


@compiled
def take(
    row: Any,
    mark: Any,
    place: int,
    offer: int,
    cut: int,
    busy: bool,
    budget: int,
    offers: Any,
    programs: Any,
    memo: Any,
    miss: Any,
) -> Any:
    """Takes an offer in a row, whole or up to a cut: 1 without a fault, 0 with one, else why not.

    How many messages were sent is left in miss[2], how many cuts the step has in miss[3].
    """
    kind = offers[2][offer]
    sound = 1
    miss[2] = 0
    miss[3] = 0
    if kind == IDLE_ONLY and busy:
        kind = EARLY
    if kind >= EARLY:
        charged = charge(row, mark, budget, kind, memo, miss)
        if charged < 0:
            return charged
        sound = 0
    elif kind == OPTIONAL:
        sound = 0
    change(row, mark, place, offers[3][offer])
    site = offers[4][offer]
    if site >= 0:
        found = lookup(memo, row[site], offers[5][offer])
        if found < 0:
            miss[0] = row[site]
            miss[1] = offers[5][offer]
            return MISSING
        if memo[1][found] == ILLEGAL:
            miss[0] = row[site]
            miss[1] = offers[5][offer]
            return ILLEGAL
        program = memo[2][found]
        if cut != WHOLE:
            torn = tear(row, mark, programs[5][program] + cut, budget, programs, memo, miss)
            return torn if torn < 0 else 0
        change(row, mark, site, memo[1][found])
        miss[2] = programs[4][program]
        miss[3] = programs[6][program] - programs[5][program]
        if perform(row, mark, program, programs, memo, miss) < 0:
            return MISSING
    if offers[6][offer] >= 0 and perform(row, mark, offers[6][offer], programs, memo, miss) < 0:
        return MISSING
    return sound


@compiled
def least(row: Any, mark: Any, symmetry: Any, miss: Any) -> Any:
    """Takes of all rows that differ only in who is who the one with the least mark; below 0 where names are missing."""
    places, names = symmetry
    best = -1
    best_0 = mark[0]
    best_1 = mark[1]
    for turn in range(places.shape[0]):
        mark_0 = np.uint64(0)
        mark_1 = np.uint64(0)
        for place in range(row.size):
            if row[place] == 0:
                continue
            number = names[turn, row[place]]
            if number < 0:
                miss[0] = row[place]
                miss[1] = RENAME - turn
                return MISSING
            mark_0 += mix(places[turn, place], number, 0)
            mark_1 += mix(places[turn, place], number, 1)
        if mark_0 < best_0 or (mark_0 == best_0 and mark_1 < best_1):
            best = turn
            best_0 = mark_0
            best_1 = mark_1
    if best >= 0:
        old = row.copy()
        for place in range(row.size):
            row[places[best, place]] = names[best, old[place]] if old[place] != 0 else 0
        mark[0] = best_0
        mark[1] = best_1
    return 0


@compiled
def expand(  # noqa: PLR0912, PLR0915 one pass over everything a state offers
    rows: Any,
    marks: Any,
    todo: Any,
    offers: Any,
    busy_of: Any,
    programs: Any,
    memo: Any,
    symmetry: Any,
    budget: int,
    out: Any,
    missing: Any,
    again: Any,
) -> Any:
    """The states one step from each in `todo`; how many, what is missing, which must be done again, what is illegal."""
    out_rows, out_marks, out_source, out_sound, out_sent = out
    width = rows.shape[1]
    row = np.empty(width, np.int32)
    mark = np.empty(2, np.uint64)
    miss = np.zeros(4, np.int64)
    count = 0
    lacks = 0
    redo = 0
    illegal = -1
    illegal_value = 0
    illegal_op = 0
    for which in range(todo.size):
        source = todo[which]
        first = count
        if count + 4096 > out_rows.shape[0] or lacks + 1 >= missing.shape[0]:
            again[redo] = source
            redo += 1
            continue
        busy = False
        known = True
        for place in range(width):
            value = rows[source, place]
            busy = busy or busy_of[value] != 0
            if offers[0][value] < 0:
                known = False
                missing[lacks, 0] = value
                missing[lacks, 1] = OFFERS
                lacks += 1
                break
        if not known:
            again[redo] = source
            redo += 1
            continue
        for place in range(width):
            value = rows[source, place]
            for offer in range(offers[0][value], offers[1][value]):
                cut = WHOLE
                cuts = 0
                while cut < cuts:
                    row[:] = rows[source]
                    mark[0] = marks[source, 0]
                    mark[1] = marks[source, 1]
                    told = take(row, mark, place, offer, cut, busy, budget, offers, programs, memo, miss)
                    if cut == WHOLE:
                        cuts = miss[3]
                    cut += 1
                    if told == FORBIDDEN:
                        continue
                    if told == ILLEGAL:
                        if illegal < 0 or source < illegal:
                            illegal = source
                            illegal_value = miss[0]
                            illegal_op = miss[1]
                        continue
                    if told == MISSING or least(row, mark, symmetry, miss) < 0:
                        known = False
                        if lacks < missing.shape[0]:
                            missing[lacks, 0] = miss[0]
                            missing[lacks, 1] = miss[1]
                            lacks += 1
                        continue
                    out_rows[count] = row
                    out_marks[count, 0] = mark[0]
                    out_marks[count, 1] = mark[1]
                    out_source[count] = source
                    out_sound[count] = told
                    out_sent[count] = miss[2]
                    count += 1
        if not known:
            count = first
            again[redo] = source
            redo += 1
    return count, lacks, redo, illegal, illegal_value, illegal_op


@compiled
def intern(table: Any, table_marks: Any, marks: Any, first: int, count: int, known: int, targets: Any, new: Any) -> Any:
    """Numbers the states with these marks, new ones upwards from `known`; how many were done, and how many are new."""
    size = table.size - 1
    fresh = 0
    limit = table.size // 2
    for at in range(first, count):
        if known + fresh >= limit:
            return at, fresh
        low = marks[at, 0]
        high = marks[at, 1]
        place = np.int64((low ^ (high >> np.uint64(32))) & np.uint64(size))
        while table[place] >= 0 and (table_marks[table[place], 0] != low or table_marks[table[place], 1] != high):
            place = (place + 1) & size
        if table[place] < 0:
            number = known + fresh
            table[place] = number
            table_marks[number, 0] = low
            table_marks[number, 1] = high
            new[fresh] = at
            fresh += 1
        targets[at] = table[place]
    return count, fresh


@compiled
def retable(table: Any, table_marks: Any, count: int) -> None:
    """Fills an empty, larger table with the states known."""
    size = table.size - 1
    for number in range(count):
        place = np.int64((table_marks[number, 0] ^ (table_marks[number, 1] >> np.uint64(32))) & np.uint64(size))
        while table[place] >= 0:
            place = (place + 1) & size
        table[place] = number
