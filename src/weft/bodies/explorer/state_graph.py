"""What does the graph of all states tell? The steps from state `at` begin at `starts[at]`; `targets` says where to."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.plan.compiled import compiled


@compiled
def settle(goal: Any, starts: Any, targets: Any) -> Any:
    """Which states can reach a goal: sweeps from the last state to the first until nothing changes."""
    reach = goal.copy()
    changed = True
    while changed:
        changed = False
        for at in range(reach.size - 1, -1, -1):
            if reach[at] == 0:
                for edge in range(starts[at], starts[at + 1]):
                    if reach[targets[edge]] != 0:
                        reach[at] = 1
                        changed = True
                        break
    return reach


@compiled
def in_order(starts: Any, targets: Any) -> Any:
    """States so that every step leads to a later one; fewer than there are where steps go in circles."""
    size = starts.size - 1
    before = np.zeros(size, np.int32)
    for edge in range(starts[size]):
        before[targets[edge]] += 1
    order = np.empty(size, np.uint32)
    last = 0
    for at in range(size):
        if before[at] == 0:
            order[last] = at
            last += 1
    at = 0
    while at < last:
        state = order[at]
        for edge in range(starts[state], starts[state + 1]):
            before[targets[edge]] -= 1
            if before[targets[edge]] == 0:
                order[last] = targets[edge]
                last += 1
        at += 1
    return order[:last], before


@compiled
def most(order: Any, starts: Any, targets: Any, sent: Any) -> Any:
    """The most that can be sent on any way from the first state."""
    total = np.zeros(starts.size - 1, np.int32)
    greatest = 0
    for at in range(order.size):
        state = order[at]
        for edge in range(starts[state], starts[state + 1]):
            after = total[state] + sent[edge]
            if after > total[targets[edge]]:
                total[targets[edge]] = after
                greatest = max(greatest, after)
    return greatest
