"""What every Python process that Spark starts for Weft runs first."""

import os
import subprocess
import sys

from weft.spark.session.starting import WORKERS

PROGRAM = """
import gc, weakref

class Node: pass

def knot():
    one, other = Node(), Node()
    one.other, other.one = other, one
    return weakref.ref(one)

stays = [Node() for _ in range(1000)]
gc.collect()
frozen = gc.get_freeze_count()
lost = knot()
found = gc.collect()
kept = Node(); kept.itself = kept
gc.collect()
seen = weakref.ref(kept)
del kept
for _ in range(200):
    gc.collect()
print(frozen >= 1000, lost() is None, found >= 2, seen() is None)
"""


def test_what_stays_is_looked_at_once_and_garbage_goes_all_the_same():
    environment = {**os.environ, "PYTHONPATH": str(WORKERS)}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=60)
    assert run.stdout.split() == ["True"] * 4, run.stderr
