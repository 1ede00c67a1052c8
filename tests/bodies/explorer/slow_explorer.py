"""The explorer written out plainly: every state as it is, every step taken by a machine; to compare counts with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from weft.bodies.explorer import View, World
from weft.protocol import CancelTimer, Effect, IllegalStep, Input, Received, Send, SetTimer, TimerFired


class State(NamedTuple):
    """One moment of a world."""

    machines: tuple[bytes, ...]
    flight: tuple[Any, ...]
    timers: tuple[tuple[str, str], ...]
    ground: Any
    scripts: tuple[int, ...]
    early: int = 0
    lost: int = 0
    overtaken: int = 0
    crashed: int = 0
    doubled: int = 0
    torn: int = 0


class Slow:
    """One exploration; gives how many states and steps there are, and whether anything is wrong."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.names = sorted(world.machines())

    def machine(self, state: State, name: str) -> Any:
        machine = self.world.machines()[name]
        machine.restore(state.machines[self.names.index(name)])
        return machine

    def told(self, state: State, site: str, input: Input) -> Iterator[State]:
        """The state after a step, and those after a crash in the midst of it."""
        machine = self.machine(state, site)
        effects = machine.handle(input)
        yield self.done(state, site, machine, effects)
        if state.crashed < self.world.crash and state.torn < self.world.torn and site in self.world.mortal:
            lasting = [not isinstance(effect, SetTimer | CancelTimer) for effect in effects]
            for cut in range(1, len(effects)):
                if lasting[cut - 1] and any(lasting[cut:]):
                    part = self.done(state, site, machine, effects[:cut])
                    yield self.crashed(part, site)._replace(torn=state.torn + 1)

    def done(self, state: State, site: str, machine: Any, effects: list[Effect]) -> State:
        flight, timers, ground = dict(state.flight), set(state.timers), state.ground
        for effect in effects:
            if isinstance(effect, Send):
                flight[site, effect.to] = (*flight.get((site, effect.to), ()), effect.message)
            elif isinstance(effect, SetTimer):
                timers.add((site, effect.name))
            elif isinstance(effect, CancelTimer):
                timers.discard((site, effect.name))
            else:
                ground = ground.perform(site, effect)
        at = self.names.index(site)
        machines = (*state.machines[:at], machine.snapshot(), *state.machines[at + 1 :])
        return state._replace(
            machines=machines, flight=tuple(sorted(flight.items(), key=lambda one: one[0])),
            timers=tuple(sorted(timers)), ground=ground,
        )  # fmt: skip

    def arrivals(self, state: State) -> Iterator[State]:
        for pair, messages in state.flight:
            for at, message in enumerate(messages):
                rest = {**dict(state.flight), pair: messages[:at] + messages[at + 1 :]}
                without = state._replace(flight=tuple(sorted((p, m) for p, m in rest.items() if m)))
                heard = Received(pair[0], message)
                if at == 0 and state.lost < self.world.lose:
                    yield without._replace(lost=state.lost + 1)
                if at == 0 and state.doubled < self.world.double:
                    yield from self.told(state._replace(doubled=state.doubled + 1), pair[1], heard)
                if at == 0:
                    yield from self.told(without, pair[1], heard)
                elif state.overtaken < self.world.overtake:
                    yield from self.told(without._replace(overtaken=state.overtaken + 1), pair[1], heard)

    def successors(self, state: State) -> Iterator[State]:
        world = self.world
        busy = bool(state.flight)
        yield from self.arrivals(state)
        for choice in state.ground.choices():
            busy |= choice.due
            after = state._replace(ground=choice.after)
            yield from self.told(after, choice.site, choice.fact) if choice.heard else (after,)
        for which, script in enumerate(world.scripts):
            done = state.scripts[which]
            if done < len(script):
                scripts = (*state.scripts[:which], done + 1, *state.scripts[which + 1 :])
                yield from self.told(state._replace(scripts=scripts), *script[done])
        if not busy or state.early < world.early:
            for site, name in state.timers:
                others = tuple(one for one in state.timers if one != (site, name))
                yield from self.told(state._replace(timers=others, early=state.early + busy), site, TimerFired(name))
        if state.crashed < world.crash and world.reborn:
            yield from (self.crashed(state, site) for site in world.mortal)

    def crashed(self, state: State, site: str) -> State:
        assert self.world.reborn is not None
        ground = state.ground.crash(site)
        at = self.names.index(site)
        machines = (*state.machines[:at], self.world.reborn(site, ground).snapshot(), *state.machines[at + 1 :])
        begun = [0 if s and s[0][0] == site else n for n, s in zip(state.scripts, self.world.scripts, strict=True)]
        timers = tuple(one for one in state.timers if one[0] != site)
        return state._replace(
            machines=machines, timers=timers, ground=ground, scripts=tuple(begun), crashed=state.crashed + 1
        )

    def holds(self, state: State) -> bool:
        def look(what: str, which: Any) -> Any:
            match what:
                case "machine":
                    return self.machine(state, which)
                case "mark":
                    assert self.world.mark is not None
                    return self.world.mark(self.machine(state, which))
                case "busy":
                    return bool(state.flight) or any(choice.due for choice in state.ground.choices())
                case "told":
                    return all(n == len(s) for n, s in zip(state.scripts, self.world.scripts, strict=True))
                case "faults":
                    return state[5:]
            return getattr(state, what)

        return all(claim(View(look)) for claim in self.world.invariants.values())

    def run(self) -> tuple[int, int, bool]:
        """States, steps, and whether all claims hold in all of them."""
        machines = self.world.machines()
        first = State(
            tuple(machines[name].snapshot() for name in self.names), (), (), self.world.ground,
            (0,) * len(self.world.scripts),
        )  # fmt: skip
        seen, todo, steps = {first}, [first], 0
        while todo:
            state = todo.pop()
            if not self.holds(state):
                return len(seen), steps, False
            try:
                for after in self.successors(state):
                    steps += 1
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
            except IllegalStep:
                return len(seen), steps, False
        return len(seen), steps, True
