"""`weft order`: put a recorded stream in order, as the operator would live."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.output import WRONG_INPUT, Json, fail, print_json, say

if TYPE_CHECKING:
    from weft.lab.recorded import Moments, Ordered, Recording

FLAG = "late"


def order(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="The stream, a record a line, in order of arrival.")],
    time: Annotated[str, typer.Option("--time", metavar="COLUMN", help="The column that says when a record happened.")],
    margin: Annotated[
        float | None,
        typer.Option("--lambda", metavar="L", help="Margin of the hold, in standard deviations; 0.5 unless given."),
    ] = None,
    late_max: Annotated[
        float | None, typer.Option("--late-max", metavar="X", help="The share that may stay late (0.1 = 10 %).")
    ] = None,
    speculate: Annotated[
        float, typer.Option(metavar="P", help="Part of the hold not waited for; who then comes late is a revision.")
    ] = 0.0,
    out: Annotated[Path | None, typer.Option("--out", metavar="F", help="Write the ordered stream here.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="F", help="Draw delays and hold over time.")] = None,
    json: Json = False,
) -> None:
    """Put a recorded stream in order; how long records are held back is learned on the way, as the operator does live.

    The output has the input's columns and `late`: true for records that came when a later one was already out.

    \b
    Example:  weft order dns.csv --time ts --late-max 0.1 --out ordered.csv
    """
    from weft.lab import recorded
    from weft.model import Order
    from weft.protocol.ordering import Ordering

    if margin is not None and late_max is not None:
        fail("give --lambda or --late-max, not both", WRONG_INPUT)
    if margin is not None and not (math.isfinite(margin) and margin >= 0):
        fail(f"--lambda must be a number of at least 0, found {margin:g}", WRONG_INPUT)
    if late_max is not None and not 0 <= late_max <= 1:
        fail(f"--late-max must be a share between 0 and 1 (0.1 = 10 %), found {late_max:g}", WRONG_INPUT)
    if not 0 <= speculate <= 1:
        fail(f"--speculate must be between 0 and 1, found {speculate:g}", WRONG_INPUT)
    if out is not None and out.exists() and file.exists() and out.samefile(file):
        fail(f"--out {out}: is the input itself", WRONG_INPUT)
    try:
        recording = recorded.read(file)
        moments = recording.moments(time)
    except recorded.BadRecording as error:
        fail(f"{file}: {error}", WRONG_INPUT)
    if out is not None and FLAG in recording.columns:
        fail(f"{file}: has a column `{FLAG}` already; rename it", WRONG_INPUT)
    unit = Ordering(Order(0.5 if margin is None else margin, late_max, speculate=speculate), real=moments.real)
    ordered = recorded.put_in_order(unit, moments)
    if out is not None:
        _write(out, recording, ordered, speculate > 0)
    if plot is not None:
        from weft.cli.order_plot import draw

        draw(plot, moments, ordered, file.name)
    found = summary(moments, ordered, recorded.late_in(moments))
    if speculate:
        revisions = int(ordered.revision.sum())
        found["revisions"] = {"records": revisions, "share": round(revisions / max(1, found["records"]), 6)}
    if json:
        print_json(found)
        return
    hold, wait = found["hold"], found["wait"]
    say(f"{found['records']:,} records: {found['late_in']:,} came late, {found['late_out']:,} stay late")
    if speculate:
        say(f"{found['revisions']['records']:,} revisions, {found['revisions']['share']:.1%} of all records")
    measure = "in seconds" if moments.dates else f"in the unit of `{time}`"
    say(f"hold {hold['max']:g} at most, {hold['final']:g} after the last record; wait {wait['mean']:g} mean, "
        f"{wait['p99']:g} p99; all {measure}")  # fmt: skip


def summary(moments: Moments, ordered: Ordered, late_in: int) -> dict[str, Any]:
    """The contract's figures, in the column's unit (seconds where the column holds dates)."""
    import numpy as np

    waits, holds = ordered.waits(), ordered.holds

    def in_unit(value: float) -> float:
        return round(float(value) / moments.scale, 9)

    return {
        "records": len(moments.times),
        "late_in": late_in,
        "late_out": int(ordered.late.sum()),
        "hold": {"final": in_unit(ordered.hold_final), "max": in_unit(holds.max() if len(holds) else 0.0)},
        "wait": {
            "mean": in_unit(waits.mean() if len(waits) else 0.0),
            "p99": in_unit(np.quantile(waits, 0.99) if len(waits) else 0.0),
        },
    }


def _write(path: Path, recording: Recording, ordered: Ordered, revisions: bool) -> None:
    flags = (ordered.late, ordered.revision) if revisions else (ordered.late,)
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*recording.columns, FLAG, "revision"][: len(recording.columns) + len(flags)])
            for number, *said in zip(ordered.numbers.tolist(), *(one.tolist() for one in flags), strict=True):
                writer.writerow([*recording.rows[number], *("true" if one else "false" for one in said)])
    except OSError as error:
        fail(f"--out {path}: {error.strerror or error}", WRONG_INPUT)
