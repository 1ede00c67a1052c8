"""Worlds for scaling: small queries whose instances grow and shrink at the same time, in every order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec

from weft.bodies.explorer.world import Choice, View, World
from weft.bodies.explorer.worlds import strange
from weft.bodies.explorer.worlds.scaling_claims import STEPS, unmeant
from weft.protocol import Effect, Input
from weft.protocol.exclusion import Refuse
from weft.protocol.published.scaling import InstanceAsPublished
from weft.protocol.scaling import (
    Activated,
    CoreInstance,
    Create,
    Drain,
    Drained,
    Ended,
    Grow,
    Instance,
    Place,
    Shrink,
)
from weft.protocol.scaling.any_instance import ACTIVE, WAITING
from weft.protocol.scaling.instance import DRAINING, ENDED, GROWING, LEAVING, SENDS, TAKES

WISHES: dict[str, Input] = {"g": Grow(1), "2": Grow(2), "s": Shrink()}

LOST = "no record is sent to one that takes no more"
EARLY = "no record reaches one that is not active yet"
APART = "no neighbouring operators scale at the same time"
KNOWN = "when nothing is under way, every operator has instances, which know their neighbours and nobody else"
REFUSED = "no message is refused"
OWN = "when nothing is under way, a core knows what it made and has not ended"

Graph = dict[str, tuple[str, ...]]
CHAIN2: Graph = {"a": ("b",), "b": ()}
CHAIN3: Graph = {"a": ("b",), "b": ("c",), "c": ()}
FORK_JOIN: Graph = {"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ()}


class Farm(msgspec.Struct, frozen=True):
    """What each instance will still be told, which were made, which drain; `fault` is what was wrong first."""

    wishes: tuple[tuple[str, str], ...]
    made: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    """Those of them that began to work."""
    draining: tuple[str, ...] = ()
    refused: bool = False

    def perform(self, site: str, effect: Effect) -> Farm:
        """The farm after an effect."""
        match effect:
            case Create(instance):
                return self.but(made=tuple(sorted({*self.made, instance})))
            case Activated():
                return self.but(active=tuple(sorted({*self.active, site})))
            case Drain():
                return self.but(draining=tuple(sorted({*self.draining, site})))
            case Ended():
                return self.but(draining=tuple(one for one in self.draining if one != site))
            case Refuse():
                return self.but(refused=True)
        return self

    def choices(self) -> Iterator[Choice]:
        """The next wish of each, and drains that are done."""
        for at, (name, wishes) in enumerate(self.wishes):
            if wishes:
                rest = (*self.wishes[:at], (name, wishes[1:]), *self.wishes[at + 1 :])
                yield Choice(name, WISHES[wishes[0]], self.but(wishes=rest))
        for name in self.draining:
            yield Choice(name, Drained(), self)

    def crash(self, site: str) -> Farm:
        """Instances do not crash (Decentral §3.2.1)."""
        raise AssertionError(f"{site} does not crash")

    def but(self, **changes: Any) -> Farm:
        """The same farm, changed."""
        return msgspec.structs.replace(self, **changes)


def world(
    graph: Graph,
    sizes: dict[str, int],
    wishes: dict[str, str],
    label: str,
    instance: Any = Instance,
    double: int = 0,
    unmeant_too: bool = False,
) -> World:
    """Operators joined by a graph, with so many instances each, the first the keeper; and what these are told.

    With `unmeant_too`, every instance hears in every state what cannot be meant.
    """
    first = {f"{operator}{at}": operator for operator, size in sizes.items() for at in range(1, size + 1)}
    places = {
        name: Place(name, tuple(sorted(one for one, downs in graph.items() if name in downs)), downs)
        for name, downs in graph.items()
    }
    born = {
        f"{name}.{at}": name[0]
        for name, told in wishes.items()
        for at in range(1, sum({"g": 1, "2": 2, "s": 0}[one] for one in told) + 1)
    }
    names = tuple(sorted((*first, *born)))

    def of(operators: tuple[str, ...]) -> dict[str, str]:
        return {name: operator for name, operator in first.items() if operator in operators}

    def machines() -> dict[str, Any]:
        made = {
            name: instance(name, places[o], of(places[o].upstream), of(places[o].downstream), name.endswith("1"))
            for name, o in first.items()
        }
        return made | {name: instance(name, places[operator]) for name, operator in born.items()}

    def state(view: View) -> dict[str, Any]:
        return {name: view.machine(name) for name in names}

    def lost(one: str, other: str) -> Any:
        return lambda view: (
            view.machine(one).state not in SENDS
            or other not in view.machine(one).downs
            or view.machine(other).state in TAKES
        )

    def early(one: str, other: str) -> Any:
        return lambda view: (
            view.machine(one).state not in SENDS
            or other not in view.machine(one).downs
            or view.machine(other).state != WAITING
        )

    def known(view: View) -> bool:
        if view.busy:
            return True
        alive = {name: one for name, one in state(view).items() if one.state == ACTIVE}
        kept = {one.place.operator for one in alive.values()} == set(graph)

        def of(operators: tuple[str, ...]) -> set[str]:
            return {name for name, one in alive.items() if one.place.operator in operators}

        return kept and all(
            set(one.ups) == of(one.place.upstream) and set(one.downs) == of(one.place.downstream)
            for one in alive.values()
        )

    def quiet(view: View) -> bool:
        made = view.ground.made
        done = (ACTIVE, ENDED)
        return (
            not view.busy
            and made == view.ground.active
            and all(
                one.state in done or (one.state == WAITING and name in born and name not in made)
                for name, one in state(view).items()
            )
            and all(heeded(view, name, told[0]) for name, told in wishes.items() if name in first)
        )

    def heeded(view: View, name: str, wish: str) -> bool:
        """Whether the first wish of one that was active from the start came true."""
        if wish == "s":
            return name.endswith("1") or view.machine(name).state == ENDED
        return {f"{name}.{at}" for at in range(1, 3 if wish == "2" else 2)} <= {*view.ground.made}

    published = instance is InstanceAsPublished
    ways = [(one, other) for one in names for other in names if other[0] in graph[one[0]]]
    claims = {f"{LOST}: {one} to {other}": lost(one, other) for one, other in ways}
    claims[KNOWN] = known
    if not double:
        claims[REFUSED] = lambda view: not view.ground.refused
    if unmeant_too:
        claims |= strange.refusing(machines, names, unmeant, Refuse)
    if published:
        claims |= {f"{EARLY}: {one} to {other}": early(one, other) for one, other in ways}
    return World(
        label,
        machines,
        Farm(tuple(sorted(wishes.items()))),
        (),
        claims,
        quiet,
        states_max=50_000_000,
        ends=True,
        collect=published,
        double=double,
        steps={} if published else STEPS,
    )


def pairs(
    graph: Graph, sizes: dict[str, int], wishes: tuple[str, ...], instance: Any = Instance, unmeant_too: bool = False
) -> list[World]:
    """All pairs of wishes of the last instances of two neighbouring operators."""
    found = []
    for up, downs in graph.items():
        for down in downs:
            one, other = f"{up}{sizes[up]}", f"{down}{sizes[down]}"
            for first, second in product(wishes, wishes):
                label = f"{_name(graph)} {one} {_told(first)}, {other} {_told(second)}"
                told = {one: first, other: second}
                found.append(world(graph, sizes, told, label, instance, unmeant_too=unmeant_too))
    return found


def core_world(
    graph: Graph, cores: dict[str, int], wishes: dict[str, str], label: str, core: Any, instance: Any
) -> World:
    """As `world`, but all first instances are cores, which take the exclusion before they scale."""
    plain = world(graph, cores, wishes, label, instance)
    names = list(plain.machines())
    first = {f"{operator}{at}": operator for operator, size in cores.items() for at in range(1, size + 1)}
    ranks = {operator: at for at, operator in enumerate(graph)}

    def machines() -> dict[str, Any]:
        made: dict[str, Any] = plain.machines()
        for name in first:
            one = made[name]
            made[name] = core(name, one.place, one.ups, one.downs, {**one.ups, **one.downs}, ranks)
        return made

    def scales(view: View, name: str) -> bool:
        """Whether instances come or go by a core."""
        own = [view.machine(one).state for one in names if one.startswith(f"{name}.")]
        return view.machine(name).state == GROWING or LEAVING in own or DRAINING in own

    def apart(one: str, other: str) -> Any:
        return lambda view: not (scales(view, one) and scales(view, other))

    def quiet(view: View) -> bool:
        return plain.quiet(view) and not any(view.machine(name).wish for name in first)

    def owns(name: str) -> Any:
        """When nothing is under way, a core knows what it made and has not ended, in that order."""
        born = [one for one in names if one.startswith(f"{name}.")]

        def own(view: View) -> bool:
            alive = [one for one in born if view.machine(one).state == ACTIVE]
            return view.busy or view.machine(name).children == alive

        return own

    neighbours = [(one, other) for one in first for other in first if other[0] in graph[one[0]]]
    claims = {f"{APART}: {one}, {other}": apart(one, other) for one, other in neighbours}
    claims |= {f"{OWN}: {name}": owns(name) for name in first}
    claims |= strange.refusing(machines, names, unmeant, Refuse)
    return plain._replace(machines=machines, invariants={**plain.invariants, **claims}, quiet=quiet)


def cores(core: Any = CoreInstance, instance: Any = Instance) -> tuple[World, ...]:
    """Cores of neighbouring operators that grow and shrink."""
    one, ones = {"a": 1, "b": 1}, dict.fromkeys("abc", 1)
    some: tuple[tuple[Graph, dict[str, int], dict[str, str], str], ...] = (
        (CHAIN2, one, {"a1": "gs", "b1": "gs"}, "cores a1, b1 grow then shrink"),
        (CHAIN2, {"a": 2, "b": 1}, {"a1": "g", "a2": "g", "b1": "g"}, "cores a1, a2, b1 grow"),
        (CHAIN2, one, {"a1": "2s", "b1": "gg"}, "cores a1 by two then shrinks, b1 twice"),
        (CHAIN2, one, {"a1": "2ss", "b1": "s"}, "cores a1 by two then shrinks twice, b1 shrinks"),
        (CHAIN3, ones, {"a1": "g", "b1": "g", "c1": "g"}, "cores of a chain of three grow"),
    )
    return tuple(core_world(*each, core, instance) for each in some)


def _told(wishes: str) -> str:
    return " then ".join({"g": "grows", "2": "grows by two", "s": "shrinks"}[one] for one in wishes)


def _name(graph: Graph) -> str:
    return {2: "chain of two", 3: "chain of three", 4: "fork and join"}[len(graph)]


def at_once(graph: Graph, sizes: dict[str, int], wishes: tuple[str, ...], instance: Any = Instance) -> list[World]:
    """The last instances of all operators are told something at the same time, in every combination."""
    last = [f"{operator}{size}" for operator, size in sizes.items()]
    found = []
    for told in product(wishes, repeat=len(last)):
        label = f"{_name(graph)} at once: " + ", ".join(_told(one) for one in told)
        found.append(world(graph, sizes, dict(zip(last, told, strict=True)), label, instance))
    return found


def brisk(instance: Any = Instance) -> tuple[World, ...]:
    """Worlds seen through in seconds, which together see what the larger ones do."""
    two = dict.fromkeys("ab", 2)
    return (
        *pairs(CHAIN2, two, ("g", "s", "2"), instance, unmeant_too=True),
        world(CHAIN2, two, {"a2": "gs", "b2": "s"}, "chain of two, a2 grows then shrinks, b2 shrinks", instance),
        world(CHAIN2, two, {"a2": "s", "b2": "gg"}, "chain of two, a2 shrinks, b2 grows then grows", instance),
        *at_once(CHAIN3, {"a": 1, "b": 2, "c": 1}, ("g", "s"), instance)[1:4],
        *pairs(FORK_JOIN, {"a": 2, "b": 1, "c": 1, "d": 1}, ("g", "s"), instance)[2:4],
        world(CHAIN2, two, {"a2": "g", "b2": "s"}, "chain of two, a2 grows, b2 shrinks, a message twice", instance, 1),
        world(CHAIN2, two, {"b2": "gs"}, "chain of two, b2 grows then shrinks, a message twice", instance, 1),
        world(CHAIN2, two, {"a2": "g", "a2.1": "s"}, "chain of two, a2 grows, a2.1 ends, a message twice", instance, 1),
    )


def worlds(as_published: bool = False, long: bool = False, instance: Any = None) -> tuple[World, ...]:
    """The worlds of scaling."""
    made = instance or (InstanceAsPublished if as_published else Instance)
    two, three = dict.fromkeys("ab", 2), dict.fromkeys("abc", 2)
    diamond = {"a": 2, "b": 2, "c": 2, "d": 2}
    if as_published:
        return (
            *pairs(CHAIN2, two, ("g", "s"), made),
            world(CHAIN2, two, {"b2": "gs"}, "chain of two, b2 grows then shrinks", made),
            world(CHAIN2, {"a": 1, "b": 1}, {"b1": "gg"}, "chain of two, b1 grows then grows", made),
            world(CHAIN2, two, {"a2": "g", "b2": "s", "a2.1": "g"}, "chain of two, a2, a2.1 grow, b2 shrinks", made),
            *pairs(FORK_JOIN, diamond, ("g", "s"), made)[:4],
        )
    return (
        *pairs(CHAIN2, two, ("g", "s", "gg", "gs", "2"), made),
        *pairs(CHAIN3, three, ("g", "s"), made),
        *at_once(CHAIN3, {"a": 1, "b": 2, "c": 1}, ("g", "s"), made),
        *pairs(FORK_JOIN, diamond, ("g", "s"), made),
        *cores(),
        *(at_once(CHAIN3, three, ("g", "s"), made) if long else ()),
        *(pairs(CHAIN3, three, ("gg", "gs"), made) if long else ()),
        *(at_once(FORK_JOIN, dict.fromkeys("abcd", 1), ("g",), made) if long else ()),
        *(pairs(FORK_JOIN, diamond, ("gs", "gg"), made) if long else ()),
    )


def crowds() -> tuple[World, ...]:
    """Worlds too large to be explored whole, to be wandered through; messages come twice now and then."""
    wishes = ("gs", "2s", "gg", "s", "g2")
    found = []
    for name, graph in (("chain", CHAIN3), ("fork and join", FORK_JOIN)):
        sizes = dict.fromkeys(graph, 4)
        for turn in range(3):
            told = {
                f"{operator}{at}": wishes[(turn + at + place) % len(wishes)]
                for place, operator in enumerate(graph) for at in range(2, 5)
            }  # fmt: skip
            found.append(world(graph, sizes, told, f"{name}, many at once, {turn + 1}", double=4))
    return tuple(found)
