"""How does a query stand that is asked for, and how long is it waited for?"""

from __future__ import annotations

import msgspec
from msgspec import field

from weft.plan.composing.values import Broken, Graph, Level, QueryPlan
from weft.protocol.composing.branches import Branch
from weft.protocol.composing.words import Hosts, Instance, Quest
from weft.protocol.machine import Row

NEW, FINDING, PROBING, CONFIRMING, RUNNING, LEAVING, OVER = (
    "new", "finding", "probing", "confirming", "running", "leaving", "over",
)  # fmt: skip


class ComposerLimits(msgspec.Struct, frozen=True):
    """How long is waited, how many candidates are asked (in thousandths, and at least), and how many graphs are kept.

    `deploys`: whether new operators may go elsewhere than beside others, and whole new graphs be tried; `tells`:
    whether the nearest promise is looked for before a query is refused.
    """

    find_ms: int = 5_000
    hop_ms: int = 2_000
    confirm_ms: int = 2_000
    tries: int = 2
    leave_ms: int = 5_000
    ratio: int = 100
    least: int = 2
    graphs: int = 16
    shares: bool = True
    deploys: bool = True
    tells: bool = True


class Asking(Row, array_like=True):
    """A query that is asked for, or runs."""

    state: str = NEW
    plan: QueryPlan | None = None
    levels: tuple[Level, ...] = ()
    instances: tuple[Instance, ...] = ()
    hosts: tuple[Hosts, ...] = ()
    others: tuple[str, ...] = ()
    serial: int = 0
    how: str = ""
    shared: tuple[str, ...] = ()
    attempt: str = ""
    quest: Quest | None = None
    branches: list[Branch] = field(default_factory=list)
    graphs: list[tuple[Level | None, Graph]] = field(default_factory=list)
    turn: int = 0
    tries: int = 0
    waiting: list[str] = field(default_factory=list)
    touched: list[tuple[str, str]] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    graph: Graph = Graph()
    promised_us: int = 0
    left: list[str] = field(default_factory=list)
