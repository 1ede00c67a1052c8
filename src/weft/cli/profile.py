"""`weft profile`: how much can an operator take?"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.output import FAILED, WRONG_INPUT, File, Json, fail, number, print_json, print_table, read

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
    Example:  weft profile examples/meters/deployment.yaml suspicious.valid --rate-max 50000
    """
    if not 1 <= rate_max < math.inf:
        fail(f"--rate-max must be at least 1, found {rate_max:g}", WRONG_INPUT)
    if not 1 <= step < math.inf:
        fail(f"--step must be at least 1 second, found {step:g}", WRONG_INPUT)
    _, deployment = read(file)
    wanted = _wanted(deployment, operators or [])
    from weft.bodies.live.profile import profile as measure
    from weft.cli.streams import Streams
    from weft.spark.operators import BadOperator

    with Streams(json) as streams, tempfile.TemporaryDirectory(prefix="weft-profile-") as folder:
        streams.hush(Path(folder) / "spark.log")

        def tell(line: str) -> None:
            print(line, file=streams.err)

        try:
            found = measure(deployment, wanted, rate_max, step, Path(folder), tell)
        except BadOperator as error:
            problem = f"{file}: {error}"
        except Exception as error:
            problem = f"{file}: {type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
        else:
            problem = ""
    if problem:
        fail(problem, FAILED)
    if json:
        print_json({"operators": found})
    else:
        _print(found, rate_max)


def _wanted(deployment: Deployment, names: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [(query.name, operator.name) for query in deployment.queries for operator in query.operators]
    there = {".".join(pair): pair for pair in pairs}
    unknown = [name for name in names if name not in there]
    if unknown:
        fail(f"there is no operator {unknown[0]}; there are: {', '.join(there)}", WRONG_INPUT)
    return tuple(there[name] for name in names or there)


def _print(found: dict[str, dict[str, Any]], rate_max: float) -> None:
    rows = []
    for name, one in found.items():
        if "error" in one:
            rows.append((name, one["error"], "", "", ""))
            continue
        capacity = one["capacity_per_s"]
        reached = f"over {rate_max:,.0f}" if capacity is None else f"{capacity:,.0f}"
        measured = (number(one["cost_ms"], 4), number(one["selectivity"], 4))
        rows.append((name, reached, number(one["follows_up_to_per_s"]), *measured))
    print_table("capacities", ("operator", "records/s", "follows up to", "cost ms", "selectivity"), rows)
