"""`weft plan`: what would run where, why, and what may its queries expect?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.output import (
    WRONG_INPUT,
    File,
    Ideal,
    Json,
    Rows,
    State,
    fail,
    number,
    print_json,
    print_table,
    read,
    say,
    warn,
    warnings_of,
)
from weft.cli.placing import ground, placed
from weft.cli.plan_add import plan_with, print_compared
from weft.cli.planned import planned_json, with_policy
from weft.cli.tables import shared_lines

if TYPE_CHECKING:
    from weft.model import Deployment, Placement


def plan(
    file: File,
    policy: Annotated[str | None, typer.Option(help="Another planner than the file names.")] = None,
    seed: Annotated[int, typer.Option(help="For planners that take chances: same seed, same placement.")] = 0,
    compare: Annotated[bool, typer.Option("--compare", help="All planners side by side, and the twin's word.")] = False,
    seconds: Annotated[float, typer.Option(help="How long the twin runs each for --compare; 0 leaves it out.")] = 30.0,
    plot: Annotated[Path | None, typer.Option(help="Draw sites, links and operators into this file.")] = None,
    replicas: Annotated[int, typer.Option(help="Also place backups, so many replicas of each operator in all.")] = 1,
    ideal: Ideal = False,
    add: Annotated[
        Path | None,
        typer.Option(metavar="QUERY.yaml", help="As if these queries came: what is shared, promises before and after."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="As a run that starts over, whatever runs by now.")] = False,
    state: State = None,
    json: Json = False,
) -> None:
    """Show where each operator would run and why, and what its queries may expect; nothing is started.

    \b
    Example:  weft plan examples/meters/deployment.yaml --policy near
              weft plan examples/meters/deployment.yaml --add examples/meters/peaks.yaml
    """
    from weft.plan import NoPlacement
    from weft.plan.dataflow.ordering import hold_notes
    from weft.plan.dataflow.real_time import real_time, real_time_notes

    if compare and plot is not None:
        fail("--plot draws one placement, --compare has many: draw one with --policy P --plot F", WRONG_INPUT)
    if add is not None and (compare or plot is not None or replicas != 1):
        fail("--add shows one plan beside another: leave out --compare, --plot and --replicas", WRONG_INPUT)
    report, deployment = read(file)
    if policy is not None:
        deployment = with_policy(deployment, policy)
    if compare:
        from weft.cli.compare import compare as side_by_side

        side_by_side(ground(file, deployment, state), seed, seconds, warnings_of(report), json, ideal)
        return
    found = placed(file, deployment, state, seed=seed, fresh=fresh or policy is not None)
    deployment, placement = found.deployment, found.placement
    if plot is not None:
        from weft.cli.picture import draw

        draw(deployment, placement, plot)
    if add is None:
        planned = planned_json(deployment, placement, found.model_costs(ideal))
    else:
        planned, deployment = plan_with(file, report, found, add, state, fresh or policy is not None, seed, ideal)
    planned |= found.as_json()
    assumed = [*warnings_of(report), *planned["warnings"]]
    planned["warnings"] = [*warnings_of(report), *found.taken, *planned["warnings"]]
    planned["real_time"] = list(real_time(deployment))
    planned["notes"] = [*real_time_notes(deployment), *hold_notes(deployment)]
    if replicas != 1:
        try:
            planned["replicas"] = _replicated(deployment, placement, replicas, seed)
        except NoPlacement as error:
            fail(f"{file}: {error}", WRONG_INPUT)
    if json:
        print_json(planned)
    else:
        warn(assumed, found.taken)
        _print(deployment, planned)
        print_compared(planned)
        for told in planned["notes"]:
            say(told)


def _replicated(deployment: Deployment, placement: Placement, degree: int, seed: int) -> dict[str, Any]:
    """Where backups would stand, and how likely each query is then up."""
    from random import Random

    from weft.plan.judging.availability import availability_of
    from weft.plan.policies.replicas import with_backups

    found = with_backups(deployment, placement, degree)
    up = {query.name: availability_of(deployment, query, found, Random(seed)) for query in deployment.queries}
    return {"degree": degree, "placement": found.as_json(), "availability": up}


def _print(deployment: Deployment, planned: dict[str, Any]) -> None:
    from weft.plan.dataflow.rates import ideal_rates

    load_ms = ideal_rates(deployment).load_ms
    for query in deployment.queries:
        homes = planned["placement"][query.name]
        loads = {name: load_ms.get(f"{query.name}.{name}", 0.0) for name in homes}
        rows: Rows = [
            (name, ", ".join(sites), f"{number(loads[name])} ms/s", planned["reasons"][query.name][name])
            for name, sites in homes.items()
        ]
        print_table(f"query {query.name}", ("operator", "site", "load", "reason"), rows)
        said = planned["projected"][query.name]
        latency = _latency(said)
        verdict = "admitted" if said["admitted"] else "not admitted"
        say(f"  latency {latency}, availability {said['availability']:.4g}: {verdict}, {said['reason']}")
        say("")
    pieces: Rows = [
        (piece["id"], piece["site"], ", ".join(piece["operators"]) or "(relay)", piece["stateful"] or "-",
         ", ".join(piece["reads"]), ", ".join(piece["writes"]))
        for piece in planned["fragments"]
    ]  # fmt: skip
    for line in shared_lines(planned):
        say(line)
    print_table("fragments", ("fragment", "site", "operators", "stateful", "reads", "writes"), pieces)
    if "replicas" in planned:
        _print_replicas(planned["replicas"])
    parts, objective = planned["potential"], planned["objective"]
    say("")
    say(f"placed by {planned['placed_by']}")
    if planned["model"] == "micro-batch":
        costs_from = planned["batch_costs"]["from"]
        say(f"latencies on Spark, after the start, all sites on this machine; costs of batches {costs_from}")
    of_latency = objective["name"] == "latency"
    value = "without bound" if objective["value"] is None else f"{objective['value']:,.2f}{' ms' if of_latency else ''}"
    says = "mean latency of all results" if of_latency else "potential"
    say(f"objective {objective['name']}, {says}: {value}")
    for name, found in planned["terms"].items():
        say(f"term {name}: {number(found, 4)} x {deployment.control.place.terms[name]:g}")
    hops = planned["hops"]
    if objective["name"] == "latency" and hops["hop_ms"] and hops["latency_ms"] is not None:
        of_hop = f"{hops['hop_ms']:g} ms for each stream between sites"
        say(f"as placement counts it, without batches but with {of_hop}: {hops['latency_ms']:,.2f} ms")
    if not of_latency:
        say(
            f"potential: load {parts['load']:.4g}, correlation {parts['correlation']:.4g}, "
            f"network {parts['network']:.4g} ms, total {parts['total']:.4g} (weighted)"
        )


def _latency(said: dict[str, Any]) -> str:
    """A projected latency in words."""
    if said["latency_ms"] is None:
        return "without bound"
    if said["p50_ms"] is None:
        return f"{number(said['mean_ms'])} ms over all results, {number(said['latency_ms'])} ms the slowest way"
    return f"p50 {number(said['p50_ms'])} ms, p95 {number(said['p95_ms'])} ms"


def _print_replicas(replicas: dict[str, Any]) -> None:
    rows: Rows = [
        (f"{query}.{name}", sites[0], ", ".join(sites[1:]))
        for query, homes in replicas["placement"].items()
        for name, sites in homes.items()
    ]
    say("")
    print_table("replicas", ("operator", "primary", "backups"), rows)
    for query, up in replicas["availability"].items():
        say(f"  query {query} is up with probability {up:.6g}")
