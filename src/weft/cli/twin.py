"""`weft twin`: what would happen?"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.output import (
    FAILED,
    FIRST_TIME,
    QUIET_S,
    WRONG_INPUT,
    File,
    Ideal,
    Json,
    Rows,
    State,
    console,
    fail,
    note,
    number,
    print_json,
    print_table,
    read,
    say,
    warn,
    warnings_of,
)
from weft.cli.placing import placed
from weft.cli.tables import KEPT, advice_lines, change_lines, promise_lines, shared_lines

if TYPE_CHECKING:
    from weft.bodies.twin import Result
    from weft.model import Deployment

SHOWN = ("mean", "p50", "p95", "p99", "max")


def twin(
    file: File,
    seconds: Annotated[float, typer.Option(min=0.000001, help="How many seconds of virtual time.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Same seed, same story.")] = 0,
    plot: Annotated[Path | None, typer.Option(metavar="PICTURE", help="Draw latencies and utilisations here.")] = None,
    warmup: Annotated[float, typer.Option(min=0.0, metavar="S", help="Seconds that do not count.")] = 0.0,
    latency: Annotated[
        str,
        typer.Option(
            metavar="FROM", help="Count from the record that let a result be emitted, or the youngest `contributing`."
        ),
    ] = "emitted",
    ideal: Ideal = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="As a run that starts over, whatever runs by now.")] = False,
    state: State = None,
    json: Json = False,
) -> None:
    """Simulate a deployment: latencies, promises, utilisations and moves, in virtual time.

    As Spark would run it, from the start of the fragments on, with the placement that `weft plan` shows and `weft run`
    uses. With --ideal by the pure queueing model, with the same placement.

    \b
    Example:  weft twin examples/meters/deployment.yaml --seconds 600 --seed 1 --plot meters.png
    """
    from weft.bodies import twin as body
    from weft.plan import NoPlacement
    from weft.plan.dataflow.ordering import hold_notes
    from weft.protocol.control import looks_every_s

    report, deployment = read(file)
    found = placed(file, deployment, state, fresh=fresh)
    costs = found.model_costs(ideal)
    if costs is not None and looks_every_s(deployment) is not None:
        note("by the ideal model: `advise` and `relief` are about capacities, which on one machine do not count")
        costs = None
    show = _Progress()
    try:
        result = body.run(
            found.deployment, found.placement, seconds, seed, warmup_s=warmup, latency=latency, progress=show,
            costs=costs,
        )  # fmt: skip
    except (NoPlacement, ValueError, body.CannotRun) as error:
        fail(f"{file}: {error}", WRONG_INPUT)
    finally:
        show.end()
    if plot is not None:
        _draw(result, found.deployment, plot)
    assumed = [*warnings_of(report), *result.warnings]
    result.warnings[:0] = [*warnings_of(report), *found.taken]
    document = result.as_json() | {"placement": result.placement, "placed_by": found.placed_by}
    document["model"] = "ideal" if costs is None else "micro-batch"
    if costs is not None:
        document |= found.as_json() | {"notes": hold_notes(found.deployment)}
    if json:
        print_json(document)
    else:
        warn(assumed, found.taken)
        _print(document, result.seconds)
        _print_placement("placement at the start", result.placement)
        if "placement_at_end" in document:
            _print_placement("placement at the end", result.placement_at_end)
        say(f"placed by {document['placed_by']}")
        if "batch_costs" in document:
            said = document["batch_costs"]["from"]
            say(f"as Spark would run it, all sites on this machine; costs of batches {said}")
            for line in document["notes"]:
                say(line)


def _draw(result: Result, deployment: Deployment, plot: Path) -> None:
    """The picture, where there is something to show in it."""
    from weft.bodies import twin as body

    if not any(one["records_in"] for one in result.queries.values()):
        note(f"{plot} is not drawn: no record came")
        return
    promised = {one.name: one.promise.latency_ms for one in deployment.queries if one.promise.latency_ms is not None}
    try:
        body.draw(result, str(plot), promised)
    except (OSError, ValueError) as error:
        fail(f"{plot}: {error}", FAILED)


def _print_placement(title: str, placement: dict[str, dict[str, list[str]]]) -> None:
    rows: Rows = [
        (f"{query}.{operator}", ", ".join(sites))
        for query, homes in placement.items()
        for operator, sites in homes.items()
    ]
    print_table(title, ("operator", "site"), rows)


class _Progress:
    """Silent for two seconds, then a bar on a terminal and a line now and then elsewhere."""

    def __init__(self) -> None:
        self._began = self._said = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._first = threading.Timer(QUIET_S, note, [f"preparing; {FIRST_TIME}"])
        self._first.daemon = True
        self._first.start()

    def __call__(self, at_s: float, of_s: float) -> None:
        self._first.cancel()
        now = time.monotonic()
        if now - self._began < QUIET_S:
            return
        if sys.stderr.isatty():
            if self._bar is None:
                from rich.progress import Progress

                self._bar = Progress(console=console(sys.stderr), transient=True)
                self._task = self._bar.add_task("virtual seconds", total=of_s)
                self._bar.start()
            self._bar.update(self._task, completed=at_s)
        elif now - self._said > QUIET_S:
            self._said = now
            note(f"{at_s:g} of {of_s:g} s")

    def end(self) -> None:
        """Takes the bar away."""
        self._first.cancel()
        if self._bar is not None:
            self._bar.stop()


def _print(found: dict[str, Any], seconds: float) -> None:
    queries: Rows = [
        (name, number(one["records_in"]), number(one["records_out"]), number(one["dropped"]),
         *(number((one["latency_ms"] or {}).get(key), 3) for key in SHOWN),
         KEPT[one["promise_kept"]])
        for name, one in found["queries"].items()
    ]  # fmt: skip
    head: tuple[str, ...] = ("query", "in", "out", "dropped", *(f"{key} ms" for key in SHOWN), "promise")
    if any("after_start_ms" in one for one in found["queries"].values()):
        head += ("after the start: p50 ms", "p95 ms")
        later = [one["after_start_ms"] or {} for one in found["queries"].values()]
        both = zip(queries, later, strict=True)
        queries = [(*row, *(number(one.get(key), 1) for key in ("p50", "p95"))) for row, one in both]
    print_table(f"{seconds:g} virtual seconds in {found['wall_s']:.3g} s, {found['events']:,} events", head, queries)
    for line in promise_lines(found):
        say(f"  {line}")
    if not any(one["records_in"] for one in found["queries"].values()):
        say("  no record came: sources need `arrivals`, or longer than these seconds")
    sites: Rows = [
        (name, f"{one['utilisation']:.4f}", number(one["queue_max"])) for name, one in found["sites"].items()
    ]
    print_table("sites", ("site", "utilisation", "longest queue"), sites)
    if found["moves"]:
        moves: Rows = [
            (f"{one['query']}.{one['operator']}", one["from"], one["to"], f"{one['at_s']:g}", number(one["pause_ms"]),
             one["reason"])
            for one in found["moves"]
        ]  # fmt: skip
        print_table("moves", ("operator", "from", "to", "at s", "pause ms", "reason"), moves)
    for line in [*change_lines(found), *shared_lines(found)]:
        say(line)
    for look in found.get("advice", []):
        for line in advice_lines(look):
            say(line)
