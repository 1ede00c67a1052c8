"""`weft profile`: how much can an operator take?"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.guard import show_trace
from weft.cli.output import (
    FAILED,
    WRONG_INPUT,
    File,
    Json,
    counted,
    fail,
    note,
    number,
    print_json,
    print_table,
    read,
    say,
)

if TYPE_CHECKING:
    from weft.model import Deployment


def profile(
    file: File,
    operators: Annotated[
        list[str] | None, typer.Argument(metavar="[QUERY.OPERATOR]...", help="Which ones; all where none is named.")
    ] = None,
    rate_max: Annotated[float, typer.Option(metavar="R", help="The greatest rate tried, in records per second.")] = 1e5,
    step: Annotated[float, typer.Option(metavar="S", help="How long each rate is held, in seconds.")] = 4.0,
    json: Json = False,
) -> None:
    """Find out how much operators can take: each runs alone on Spark, its rate doubled until its output falls behind.

    The pace it then keeps is its capacity on this machine, the writing of its results included. Cost per record and
    selectivity are measured along the way. Nothing of the deployment's own state or sinks is touched.

    \b
    Example:  weft profile examples/meters/deployment.yaml north.suspicious_1 --rate-max 50000
    """
    if not 1 <= rate_max < math.inf:
        fail(f"--rate-max must be at least 1, found {rate_max:g}", WRONG_INPUT)
    if not 1 <= step < math.inf:
        fail(f"--step must be at least 1 second, found {step:g}", WRONG_INPUT)
    from weft.plan.dataflow.sharing import as_written

    deployment = as_written(read(file)[1])
    wanted = _wanted(deployment, operators or [])
    from weft.bodies.live.failing import RunFailed
    from weft.bodies.live.profile import profile as measure
    from weft.bodies.live.profile import rising
    from weft.cli.streams import Streams
    from weft.spark.failures.causes import cause_of
    from weft.spark.fragments.operators import BadOperator
    from weft.spark.storage.temporary import claim

    longest_s = len(wanted) * len(rising(rate_max)) * step
    note(f"{counted(len(wanted), 'operator')}, {longest_s / 60:.0f} min at most, and what Spark takes to start")
    with Streams(json) as streams, tempfile.TemporaryDirectory(prefix="weft-profile-", dir=claim()) as folder:
        streams.hush(Path(folder) / "spark.log")

        def tell(line: str) -> None:
            print(line, file=streams.err)

        try:
            found = measure(deployment, wanted, rate_max, step, Path(folder), tell)
        except (BadOperator, RunFailed) as error:
            failure: Exception | None = error
            problem = str(error)
        except Exception as error:
            failure = error
            problem = cause_of(error, deployment.folder, deployment.sources).text
        else:
            failure = None
    if failure is not None:
        show_trace(failure)
        fail(f"{file}: {problem}", FAILED)
    if json:
        print_json({"operators": found})
    else:
        _print(found)


def _wanted(deployment: Deployment, names: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [(query.name, operator.name) for query in deployment.queries for operator in query.operators]
    there = {".".join(pair): pair for pair in pairs}
    unknown = [name for name in names if name not in there]
    if unknown:
        fail(f"there is no operator {unknown[0]}; there are: {', '.join(there)}", WRONG_INPUT)
    return tuple(there[name] for name in names or there)


def _print(found: dict[str, dict[str, Any]]) -> None:
    rows = []
    for name, one in found.items():
        if "error" in one:
            rows.append((name, one["error"], "", "", ""))
            continue
        capacity = one["capacity_per_s"]
        done = max((step["done_per_s"] for step in one["steps"]), default=0.0)
        reached = f"at least {done:,.0f}" if capacity is None else f"{capacity:,.0f}"
        measured = (number(one["cost_ms"], 4), number(one["selectivity"], 4))
        # Within a step some of what is offered may still be under way: no more was kept up with than was done.
        rows.append((name, reached, f"{min(one['follows_up_to_per_s'], done):,.0f}", *measured))
    print_table("capacities", ("operator", "records/s", "kept up with", "cost ms", "selectivity"), rows)
    for name, one in found.items():
        known = [f"{key}: {one[key]:.4g}" for key in ("cost_ms", "selectivity") if one.get(key) is not None]
        if known:
            say(f"  for `weft plan`, at {name} in the file: {', '.join(known)}")
