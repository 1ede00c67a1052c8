"""Breadth first over every order; the first broken claim gives the shortest story that breaks it.

Steps of machines are remembered by (snapshot, input), so a step is computed once however often it is met.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

from weft.bodies.explorer.world import State, View, World
from weft.protocol import (
    CancelTimer,
    Effect,
    IllegalStep,
    Input,
    Machine,
    Message,
    Received,
    Send,
    SetTimer,
    TimerFired,
)
from weft.protocol import story_line as line

ENDS = "every wait ends: from here no quiet state can be reached"
STEPS_LEGAL = "every step is legal"
BOUNDED = "the world is explored whole"


class Lost(Input, frozen=True):
    """A message that never arrived."""

    sender: str
    message: Message


class Crashed(Input, frozen=True):
    """A machine that lost what it had not remembered."""


class Violation(NamedTuple):
    """A broken claim and the shortest story that breaks it."""

    world: str
    claim: str
    story: tuple[str, ...]


class Result(NamedTuple):
    """What an exploration found."""

    world: str
    states: int
    steps: int
    violations: tuple[Violation, ...]




Told = tuple[str, Input, tuple[Effect, ...]]
Next = tuple[State, Told, bool]
"""A state, how it came about, and whether it comes about without faults."""


class _Explorer:
    """One exploration of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        fresh = world.machines()
        self.names = tuple(sorted(fresh))
        self.place = {name: at for at, name in enumerate(self.names)}
        self.scratch = fresh
        machines = tuple(fresh[name].snapshot() for name in self.names)
        self.first = State(machines, (), (), world.ground, (0,) * len(world.scripts), 0, 0, 0, 0)
        self.memory: dict[tuple[str, bytes, Input], tuple[bytes, tuple[Effect, ...]]] = {}
        self.thawed: dict[tuple[str, bytes], Machine] = {}

    def thaw(self, name: str, state: State) -> Machine:
        """A machine as a state has it."""
        snapshot = state.machines[self.place[name]]
        machine = self.thawed.get((name, snapshot))
        if machine is None:
            machine = self.world.machines()[name]
            machine.restore(snapshot)
            self.thawed[name, snapshot] = machine
        return machine

    def told(self, state: State, site: str, input: Input) -> tuple[State, Told]:
        """The state after a machine took an input and its effects were performed."""
        at = self.place[site]
        key = (site, state.machines[at], input)
        known = self.memory.get(key)
        if known is None:
            machine = self.scratch[site]
            machine.restore(state.machines[at])
            effects = tuple(machine.handle(input))
            known = self.memory[key] = (machine.snapshot(), effects)
        snapshot, effects = known
        flight, timers, ground = state.flight, state.timers, state.ground
        for effect in effects:
            if isinstance(effect, Send):
                between = dict(flight)
                pair = (site, effect.to)
                between[pair] = (*between.get(pair, ()), effect.message)
                flight = tuple(sorted(between.items(), key=_pair))
            elif isinstance(effect, SetTimer):
                timers = tuple(sorted({*timers, (site, effect.name)}))
            elif isinstance(effect, CancelTimer):
                timers = tuple(one for one in timers if one != (site, effect.name))
            else:
                ground = ground.perform(site, effect)
        machines = (*state.machines[:at], snapshot, *state.machines[at + 1 :])
        after = state._replace(machines=machines, flight=flight, timers=timers, ground=ground)
        return after, (site, input, effects)

    def arrivals(self, state: State) -> Iterator[Next]:
        """Messages that arrive, overtake or are lost."""
        world = self.world
        for place, (pair, messages) in enumerate(state.flight):
            sender, to = pair
            for at, message in enumerate(messages):
                if at and state.overtaken >= world.overtake:
                    break
                rest = ((pair, messages[:at] + messages[at + 1 :]),) if len(messages) > 1 else ()
                without = state._replace(flight=(*state.flight[:place], *rest, *state.flight[place + 1 :]))
                if at:
                    without = without._replace(overtaken=state.overtaken + 1)
                elif state.lost < world.lose:
                    yield without._replace(lost=state.lost + 1), (to, Lost(sender, message), ()), False
                yield *self.told(without, to, Received(sender, message)), not at

    def successors(self, state: State) -> Iterator[Next]:
        """Every state one step away."""
        world = self.world
        busy = bool(state.flight)
        yield from self.arrivals(state)
        for choice in state.ground.choices():
            busy |= choice.due
            after = state._replace(ground=choice.after)
            if choice.heard:
                yield *self.told(after, choice.site, choice.fact), choice.due
            else:
                yield after, (choice.site, choice.fact, ()), choice.due
        for which, script in enumerate(world.scripts):
            done = state.scripts[which]
            if done < len(script):
                scripts = (*state.scripts[:which], done + 1, *state.scripts[which + 1 :])
                yield *self.told(state._replace(scripts=scripts), *script[done]), True
        if not busy or state.early < world.early:
            early = state.early + busy
            for timer in state.timers:
                others = tuple(one for one in state.timers if one != timer)
                after, told = self.told(state._replace(timers=others, early=early), timer[0], TimerFired(timer[1]))
                yield after, told, not busy
        if state.crashed < world.crash and world.reborn:
            for site in world.mortal:
                yield self.crashed(state, site), (site, Crashed(), ()), False

    def crashed(self, state: State, site: str) -> State:
        """The state after a machine crashed and came back with what it had remembered."""
        assert self.world.reborn is not None
        ground = state.ground.crash(site)
        at = self.place[site]
        snapshot = self.world.reborn(site, ground).snapshot()
        return state._replace(
            machines=(*state.machines[:at], snapshot, *state.machines[at + 1 :]),
            timers=tuple(one for one in state.timers if one[0] != site),
            ground=ground,
            scripts=tuple(
                0 if script and script[0][0] == site else done
                for done, script in zip(state.scripts, self.world.scripts, strict=True)
            ),
            crashed=state.crashed + 1,
        )

    def run(self) -> Result:
        """Explores all, or up to the first violation."""
        world = self.world
        ids: dict[State, int] = {self.first: 0}
        order = [self.first]
        how: list[tuple[int, Told] | None] = [None]
        quiet = bytearray()
        sources, targets = array("L"), array("L")

        def broken(claim: str, at: int, last: tuple[Told, ...] = ()) -> Result:
            told = list(last)
            while (step := how[at]) is not None:
                at = step[0]
                told.append(step[1])
            told.reverse()
            story = tuple(line(time, *one) for time, one in enumerate(told, 1))
            return Result(world.name, len(order), steps_count, (Violation(world.name, claim, story),))

        at = steps_count = 0
        while at < len(order):
            state = order[at]
            view = View(state, all(n == len(s) for n, s in zip(state.scripts, world.scripts, strict=True)), self.thaw)
            for claim, holds in world.invariants.items():
                if not holds(view):
                    return broken(claim, at)
            quiet.append(view.told and world.quiet(view))
            steps = self.successors(state)
            while True:
                try:
                    after, told, sound = next(steps)
                except StopIteration:
                    break
                except (IllegalStep, AssertionError) as error:
                    return broken(f"{STEPS_LEGAL}: {str(error).splitlines()[0]}", at)
                known = ids.get(after)
                if known is None:
                    known = ids[after] = len(order)
                    order.append(after)
                    how.append((at, told))
                steps_count += 1
                if sound:
                    sources.append(at)
                    targets.append(known)
            at += 1
            if len(order) > world.states_max:
                return broken(f"{BOUNDED}: it has more than {world.states_max} states", at - 1)
        lonely = _cannot_reach(quiet, sources, targets)
        if lonely is not None:
            return broken(ENDS, lonely)
        return Result(world.name, len(order), steps_count, ())


def _pair(item: tuple[tuple[str, str], Any]) -> tuple[str, str]:
    return item[0]


def _cannot_reach(goal: bytearray, sources: array[int], targets: array[int]) -> int | None:
    """The first state, in order of discovery, from which no goal can be reached."""
    before: list[list[int]] = [[] for _ in goal]
    for source, target in zip(sources, targets, strict=True):
        before[target].append(source)
    reach = bytearray(goal)
    todo = [at for at, is_goal in enumerate(goal) if is_goal]
    while todo:
        for source in before[todo.pop()]:
            if not reach[source]:
                reach[source] = 1
                todo.append(source)
    lonely = reach.find(0)
    return None if lonely < 0 else lonely


def run(world: World) -> Result:
    """Explores one world, whole or up to its first violation."""
    return _Explorer(world).run()
