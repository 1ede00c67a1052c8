"""What does a site do live for a change? Makes ready what will start there, carries it over, watches channels drain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor

from weft.bodies.live.engine import Engine
from weft.bodies.live.parcels import pack, unpack
from weft.plan.changing.task import Task
from weft.protocol.change_messages import After, after_of
from weft.protocol.machine import Effect, Input
from weft.protocol.moving import (
    CarriedOver,
    Carry,
    ChannelDrained,
    Cool,
    Drain,
    LetIn,
    NotCarriedOver,
    NotWarmed,
    Warm,
    Warmed,
)
from weft.protocol.words import Parcel
from weft.spark.fragments.operators import BadOperator
from weft.spark.fragments.positions import Standing

DRAIN_LOOK_S = 0.05
DRAIN_S_MAX = 600.0
UNKNOWN = Parcel()


class Preparing:
    """The part of a site's body that the preparer asks."""

    def __init__(self, engine: Engine, work: Executor, tell: Callable[[Input], None], gone: threading.Event) -> None:
        self._engine = engine
        self._work = work
        self._tell = tell
        self._gone = gone

    def perform(self, effect: Effect) -> bool:
        """Do what the preparer asks; False where the effect is not about what is to come."""
        match effect:
            case Warm():
                self._work.submit(self._warm, effect)
            case Carry():
                self._work.submit(self._carry, effect)
            case LetIn(fragment=fragment, ended=ended):
                self._work.submit(self._engine.let_in, fragment, unpack(ended.stands, Standing))
            case Cool(task=task):
                self._engine.discard_prepared(unpack(task, Task))
            case Drain(number=number, channel=channel, fragment=fragment, after=after):
                watch = threading.Thread(target=self._drain, args=(number, channel, fragment, after), daemon=True)
                watch.start()
            case _:
                return False
        return True

    def _warm(self, asked: Warm) -> None:
        try:
            known = UNKNOWN not in asked.ends
            ends = [unpack(one, Standing) for one in asked.ends] if known else None
            awaits = self._engine.warm(unpack(asked.task, Task), ends)
        except BadOperator as error:
            self._tell(NotWarmed(asked.number, asked.fragment, str(error), impossible=True))
        except Exception as error:
            self._tell(NotWarmed(asked.number, asked.fragment, str(error)))
        else:
            self._tell(Warmed(asked.number, asked.fragment, awaits))

    def _carry(self, asked: Carry) -> None:
        after = after_of(asked.ended)
        try:
            ends = [unpack(one.stands, Standing) for one in asked.ended]
            found = self._engine.carry_over(unpack(asked.task, Task), ends, after)
        except Exception as error:
            self._tell(NotCarriedOver(asked.number, asked.fragment, after, f"{type(error).__name__}: {error}"))
        else:
            self._tell(CarriedOver(asked.number, asked.fragment, after, pack(found)))

    def _drain(self, number: int, channel: str, fragment: str, after: After) -> None:
        deadline = time.monotonic() + DRAIN_S_MAX
        while not self._gone.wait(DRAIN_LOOK_S) and time.monotonic() < deadline:
            if self._engine.channel_drained(channel, fragment):
                self._tell(ChannelDrained(number, channel, fragment, after))
                return
