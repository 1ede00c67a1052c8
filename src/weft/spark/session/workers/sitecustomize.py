"""Python runs this at the start of every process that Spark starts: take pyspark from where it is installed.

Spark puts its pyspark.zip first on their path. A zip holds no compiled files, so that each process would compile
pyspark anew: 1.4 s of CPU instead of 0.4 s, for every channel that is read, and Spark waits ten seconds for each.
"""

import gc
import itertools
import os
import sys
import traceback
from importlib.machinery import PathFinder
from typing import Any

LOOKED_AT_AGAIN = 200  # calls of the collector


def _take_installed() -> None:
    zips = [path for path in sys.path if os.path.basename(path) == "pyspark.zip"]
    rest = [path for path in sys.path if path not in zips]
    found = PathFinder.find_spec("pyspark", rest)
    # Only where the zip belongs to that same installation are both the same version.
    if found is not None and found.origin and all(path.startswith(os.path.dirname(found.origin)) for path in zips):
        sys.path[:] = rest


def _run_next() -> None:
    """Only the first sitecustomize on the path is run: let one of the user's own have its turn."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        sys.modules["sitecustomize"] = ours


def _end_quietly() -> None:
    """A worker whose task was stopped finds its socket closed: pyspark's daemon would print that as a failure."""
    if sys.argv[:1] != ["-m"]:
        return
    tell = traceback.print_exc

    def print_exc(*args: Any, **options: Any) -> None:
        asked_by = sys._getframe(1).f_globals.get("__spec__")
        is_daemon = asked_by is not None and asked_by.name == "pyspark.daemon"
        if not (is_daemon and isinstance(sys.exc_info()[1], BrokenPipeError)):
            tell(*args, **options)

    traceback.print_exc = print_exc


def _collect_little() -> None:
    """Between two tasks a worker collects garbage, and pyspark, pandas and the compiled code that it has loaded take
    50 ms to look through. What survived once is looked at again only now and then."""
    collect, calls = gc.collect, itertools.count(1)

    def collect_new(generation: int = 2) -> int:
        if next(calls) % LOOKED_AT_AGAIN == 0:
            gc.unfreeze()
        found = collect(generation)
        gc.freeze()
        return found

    gc.collect = collect_new


_take_installed()
_end_quietly()
_collect_little()
_run_next()
