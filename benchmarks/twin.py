"""How fast is the twin? Against SimPy's process-per-record model and a bare compiled loop, CPU time in one run.

    python -m benchmarks.twin [--old PATH] [--short] [--json]

Sites in a mesh with chains of filters over them, cost U(1, 5) ms, selectivity U(0.8, 1), Poisson arrivals, delays
U(1, 500) ms, queues of 100. Every side has as many turns, the same warm-up and each is first as often; ratios are taken
within a round. The loop is timed alone, as SimPy's and the bare one are; beside it stands `run()` as a user calls it,
with all that it does besides: laying out, warnings, quantiles, series, tables. SimPy's model keeps a list of latencies
and nothing else.

With --old another checkout of Weft stands in SimPy's place: both versions by turns, each turn in a process of its own,
CPU time of the version here over the other's, and whether both counted the same events and results.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numba import njit

from benchmarks._bench import ROOT, Found, Setting, asked_setting, finish, line, parser_of, ratios, spread, turns
from weft.bodies.twin.loop import columns
from weft.bodies.twin.loop.chance import exponential, key_of, uniform
from weft.bodies.twin.run import run
from weft.model import Cost, Deployment, Link, Operator, Placement, Poisson, Query, Queue, Sink, Site, Source

LENGTH = 10
GAP_MS = 70.0


def chains(sites_n: int, chains_n: int, seed: int = 7) -> tuple[Deployment, Placement]:
    """Chains of filters on a full mesh of sites, placed at random."""
    rng = Random(seed)
    sites = tuple(Site(f"s{i}") for i in range(sites_n))
    links = tuple(
        Link(a.name, b.name, delay_ms=rng.uniform(1, 500), oneway=True) for a in sites for b in sites if a is not b
    )
    sources, queries, homes = [], [], {}
    for chain in range(chains_n):
        source = Source(f"in{chain}", rng.choice(sites).name, "rate", (), arrivals=Poisson(1000.0 / GAP_MS))
        operators = []
        for k in range(LENGTH):
            name = f"o{k}"
            cost = Cost("constant", (rng.uniform(1, 5),))
            reads = operators[-1].name if operators else source.name
            passes = rng.uniform(0.8, 1)
            operators.append(
                Operator(name, (reads,), sql="SELECT 1", cost_ms=cost, selectivity=passes, queue=Queue(100))
            )
            homes[f"q{chain}.{name}"] = rng.choice(sites).name
        sources.append(source)
        queries.append(Query(f"q{chain}", tuple(operators), (Sink(operators[-1].name, "console"),)))
    return Deployment(sites, tuple(sources), tuple(queries), links), Placement(homes)


class Plain:
    """The same problem as plain arrays: what SimPy and the bare loop are given."""

    def __init__(self, deployment: Deployment, placement: Placement) -> None:
        from weft.plan.network.paths import Paths

        at = {site.name: i for i, site in enumerate(deployment.sites)}
        paths = Paths(deployment)
        n = len(deployment.sites)
        self.sites = n
        self.delay_ms = np.zeros((n, n))
        for a, i in at.items():
            for b, j in at.items():
                path = paths.between(a, b)
                assert path is not None
                self.delay_ms[i, j] = path.delay_ms
        self.start = np.array([at[source.site] for source in deployment.sources])
        homes = placement.homes
        self.home = np.array([[at[homes[f"{q.name}.{o.name}"]] for o in q.operators] for q in deployment.queries])
        self.cost_ms = np.array([[o.cost_ms.mean_ms for o in q.operators if o.cost_ms] for q in deployment.queries])
        self.selectivity = np.array([[o.selectivity for o in q.operators] for q in deployment.queries])


def simpy_run(plain: Plain, seconds: float, seed: int) -> tuple[int, float]:
    """Records out and their mean latency in ms, one SimPy process per record."""
    import simpy

    rng = Random(seed)
    env = simpy.Environment()
    servers = [simpy.Resource(env) for _ in range(plain.sites)]
    waiting = [[0] * LENGTH for _ in plain.home]
    delay, home, cost, selectivity = (
        plain.delay_ms.tolist(), plain.home.tolist(), plain.cost_ms.tolist(), plain.selectivity.tolist()
    )  # fmt: skip
    latencies: list[float] = []

    def record(chain: int) -> Any:
        birth, here = env.now, int(plain.start[chain])
        for k in range(LENGTH):
            there = home[chain][k]
            if there != here:
                yield env.timeout(delay[here][there])
            here = there
            server = servers[there]
            if server.count and waiting[chain][k] >= 100:
                return
            waiting[chain][k] += 1
            with server.request() as turn:
                yield turn
                waiting[chain][k] -= 1
                yield env.timeout(cost[chain][k])
            if rng.random() >= selectivity[chain][k]:
                return
        latencies.append(env.now - birth)

    def source(chain: int) -> Any:
        while True:
            yield env.timeout(rng.expovariate(1.0 / GAP_MS))
            env.process(record(chain))

    for chain in range(len(home)):
        env.process(source(chain))
    env.run(until=seconds * 1000)
    return len(latencies), sum(latencies) / max(1, len(latencies))


@njit(cache=True)
def bare_run(  # noqa: PLR0912, PLR0915
    delay: Any, start: Any, home: Any, cost: Any, selectivity: Any, keys: Any, until: int, slots: int, width: int
) -> Any:
    """The least a loop must do: one event per visit (FCFS gives the end at arrival), a wheel, chance, a sum."""
    chains_n, length = home.shape
    size = 1 << 16
    when = np.empty(size, np.int64)
    birth = np.empty(size, np.int64)
    place = np.empty(size, np.int32)
    following = np.arange(1, size + 1).astype(np.int32)
    wheel = np.full(slots, -1, np.int32)
    near = np.empty(size, np.int32)
    free_at = np.zeros(delay.shape[0], np.int64)
    begun = np.zeros(chains_n * length, np.int64)
    born = np.zeros(chains_n, np.int64)
    free, near_n, cursor, out, total = chains_n, 0, -1, 0, 0
    for chain in range(chains_n):
        when[chain] = int(exponential(keys[chain], 0) * 70e6)
        slot = when[chain] >> width
        following[chain] = wheel[slot % slots]
        wheel[slot % slots] = chain
    while True:
        while near_n == 0:
            cursor += 1
            if cursor << width >= until:
                return out, total
            r = wheel[cursor & (slots - 1)]
            kept = -1
            while r >= 0:
                after = following[r]
                if when[r] >> width == cursor:
                    i = near_n
                    while i > 0 and when[near[i - 1]] < when[r]:
                        near[i] = near[i - 1]
                        i -= 1
                    near[i] = r
                    near_n += 1
                else:
                    following[r] = kept
                    kept = r
                r = after
            wheel[cursor & (slots - 1)] = kept
        near_n -= 1
        e = near[near_n]
        now = when[e]
        if now >= until:
            return out, total
        if e < chains_n:
            chain = e
            born[chain] += 1
            r = free
            free = following[r]
            birth[r] = now
            place[r] = chain * length
            when[r] = now + delay[start[chain], home[chain, 0]]
            when[e] = now + int(exponential(keys[chain], born[chain]) * 70e6)
            for k in (np.int64(r), np.int64(e)):
                slot = when[k] >> width
                if slot <= cursor:
                    i = near_n
                    while i > 0 and when[near[i - 1]] < when[k]:
                        near[i] = near[i - 1]
                        i -= 1
                    near[i] = k
                    near_n += 1
                else:
                    following[k] = wheel[slot & (slots - 1)]
                    wheel[slot & (slots - 1)] = k
            continue
        p = place[e]
        chain, k = p // length, p % length
        here = home[chain, k]
        end = max(now, free_at[here]) + cost[chain, k]
        free_at[here] = end
        begun[p] += 1
        if uniform(keys[chains_n + p], begun[p]) >= selectivity[chain, k]:
            following[e] = free
            free = e
            continue
        if k + 1 == length:
            if end < until:
                out += 1
                total += end - birth[e]
            following[e] = free
            free = e
            continue
        place[e] = p + 1
        when[e] = end + delay[here, home[chain, k + 1]]
        slot = when[e] >> width
        if slot <= cursor:
            i = near_n
            while i > 0 and when[near[i - 1]] < when[e]:
                near[i] = near[i - 1]
                i -= 1
            near[i] = e
            near_n += 1
        else:
            following[e] = wheel[slot & (slots - 1)]
            wheel[slot & (slots - 1)] = e


def bare(plain: Plain, seconds: float, seed: int) -> tuple[int, float]:
    """Records out and their mean latency in ms, by the bare loop."""
    keys = np.array([key_of(seed, str(n)) for n in range(plain.home.shape[0] + plain.home.size)], np.uint64)
    ns = lambda values: np.round(values * 1e6).astype(np.int64)  # noqa: E731
    visits_per_s = plain.home.size * 1000 / GAP_MS
    width = int(1e9 / visits_per_s).bit_length() - 1
    out, total = bare_run(
        ns(plain.delay_ms), plain.start, plain.home, ns(plain.cost_ms), plain.selectivity, keys, int(seconds * 1e9),
        1 << 16 if visits_per_s > 10_000 else 1 << 13, width,
    )  # fmt: skip
    return out, total / max(1, out) / 1e6


def prepared_loop(deployment: Deployment, placement: Placement, seconds: float, seed: int) -> Callable[[], Any]:
    """The twin's loop alone; what it runs on is laid out outside the time counted."""
    from weft.bodies.twin.run import prepared

    plane = prepared(deployment, placement, seconds, seed)
    return lambda: plane.advance(int(seconds * 1e9))


def cpu_s(work: Callable[[], Any]) -> float:
    """CPU seconds of one turn."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measure(setting: Setting) -> Found:
    """All figures, all sides in each round."""
    seconds, longer = setting["seconds"], setting["longer"]
    deployment, placement = chains(setting["sites"], setting["chains"])
    big = chains(setting["sites"] * setting["larger"], setting["chains"] * setting["larger"])
    plain = Plain(deployment, placement)
    # A change of speed that changes nothing: every service ends in an event of its own, so that it can be interrupted.
    nothing = ((seconds / 2, "s0", 1.0),)
    sides: dict[str, Callable[[], Callable[[], Any]]] = {
        "simpy": lambda: lambda: simpy_run(plain, seconds, 1),
        "bare": lambda: lambda: bare(plain, seconds, 1),
        "loop": lambda: prepared_loop(deployment, placement, seconds, 1),
        "run": lambda: lambda: run(deployment, placement, seconds=seconds, seed=1),
        "run, longer": lambda: lambda: run(deployment, placement, seconds=longer * seconds, seed=1),
        "run, interruptible": lambda: lambda: run(deployment, placement, seconds=seconds, seed=1, capacities=nothing),
        "loop, larger": lambda: prepared_loop(*big, seconds, 1),
    }
    held: dict[str, list[float]] = {name: [] for name in sides}
    for _, name, counts in turns(list(sides), setting["rounds"], setting["warm_rounds"]):
        took_s = cpu_s(sides[name]())
        held[name] += [took_s] if counts else []
    result = run(deployment, placement, seconds=seconds, seed=1)
    out = sum(one["records_out"] for one in result.queries.values())
    mean_ms = sum(one["latency_ms"]["mean"] * one["records_out"] for one in result.queries.values()) / max(1, out)
    visits = sum(row["arrived"] for row in result.operator_rows)
    simpy_out, simpy_ms = simpy_run(plain, seconds, 1)
    bare_out, bare_ms = bare(plain, seconds, 1)
    return {
        "cpu_ms": {name: spread([1000 * one for one in times]) for name, times in held.items()},
        "times_simpy": ratios(held["simpy"], held["loop"], 1),
        "times_simpy_run": ratios(held["simpy"], held["run"], 1),
        "times_simpy_run_longer": ratios([longer * one for one in held["simpy"]], held["run, longer"], 1),
        "times_bare": ratios(held["loop"], held["bare"]),
        "larger_costs": ratios(held["loop, larger"], held["loop"], 2),
        "ns_per_visit": spread([1e9 * one / visits for one in held["loop"]], 1),
        "visits": visits,
        "events": result.events,
        "bytes_per_record_in_flight": 8 * (columns.RECORD_SIZE + 1),
        "in_flight_max": result.in_flight_max,
        "records_out": {"simpy": simpy_out, "bare": bare_out, "twin": out},
        "latency_ms_mean": {"simpy": simpy_ms, "bare": bare_ms, "twin": mean_ms},
    }


def show(setting: Setting, found: Found) -> None:
    """The figures for people, with all rounds."""
    for name, held in found["cpu_ms"].items():
        print(line(name, held, "CPU ms"))
    print(line("SimPy over the loop", found["times_simpy"]), setting.aim("times_simpy.median"))
    print(line("SimPy over run()", found["times_simpy_run"]), setting.aim("times_simpy_run.median"))
    print(line(f"SimPy over run(), {setting['longer']} times as long", found["times_simpy_run_longer"]))
    print(line("loop over the bare loop", found["times_bare"]), setting.aim("times_bare.median"))
    print(line(f"{setting['larger']} times larger costs", found["larger_costs"]))
    print(line("loop", found["ns_per_visit"], "ns a visit"))
    for name in ("visits", "events", "bytes_per_record_in_flight", "in_flight_max", "records_out", "latency_ms_mean"):
        print(f"{name:<34} {found[name]}")


def against(old: Path, setting: Setting) -> Found:
    """CPU time of this version and of another one, by turns."""
    asked = {key: setting[key] for key in ("sites", "chains", "seconds", "longer", "repeats")}
    checkouts = {"old": old, "new": ROOT}
    held: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for _, name, counts in turns(list(checkouts), setting["rounds"], setting["warm_rounds"]):
        environment = {**os.environ, "PYTHONPATH": str(checkouts[name] / "src")}
        command = [sys.executable, str(ROOT / "benchmarks" / "_twin_turn.py"), json.dumps(asked)]
        told = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=600).stdout
        held[name] += [json.loads(told)] if counts else []
    parts = [name for name in held["new"][0] if name not in ("events", "out")]
    return {
        "old": old.name,
        "same": all(held["old"][0][key] == one[key] for one in held["new"] for key in ("events", "out")),
        "cpu_ms": {f"{part}, {name}": spread([one[part] for one in held[name]]) for part in parts for name in held},
        "ratio": {part: ratios(*([one[part] for one in held[name]] for name in ("new", "old"))) for part in parts},
    }


def show_against(setting: Setting, found: Found) -> None:
    """Both versions for people, with all rounds."""
    del setting
    for name, one in found["cpu_ms"].items():
        print(line(name, one, "CPU ms"))
    for name, one in found["ratio"].items():
        print(line(f"{name}, new over old", one))
    print("events and results are the same" if found["same"] else "events or results DIFFER")


def main(words: list[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--old", type=Path, help="another checkout of Weft: a folder with src/weft")
    asked = parser.parse_args(words)
    setting = asked_setting("twin", asked)
    if asked.old is None:
        finish(setting, asked, measure, show)
        return
    if not (asked.old / "src" / "weft").is_dir():
        parser.error(f"{asked.old} holds no src/weft")
    finish(setting, asked, lambda chosen: against(asked.old.resolve(), chosen), show_against)


if __name__ == "__main__":
    main()
