"""Compiles the inner loops of planner, twin and explorer, which are kept: `python -m tests.compiling`.

In a fresh clone each test process would otherwise compile what it needs, some of it at the same time as another.
"""

from __future__ import annotations

import importlib

from benchmarks._bench import load

from weft.bodies.explorer import run
from weft.bodies.explorer.worlds import feedback


def main() -> None:
    """What calls them all, in a short form."""
    for name in ("placement", "twin"):
        importlib.import_module(f"benchmarks.{name}").measure(load(name, short=True))
    for world in feedback.worlds()[:1]:
        run(world)


if __name__ == "__main__":
    main()
