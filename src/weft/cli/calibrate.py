"""`weft calibrate`: what do micro-batches cost on this machine?"""

from __future__ import annotations

from weft.cli.output import FAILED, Json, Rows, fail, note, number, print_json, print_table, say


def calibrate(json: Json = False) -> None:
    """Measure on Spark what micro-batches cost on this machine; takes about two minutes.

    `weft plan` and `weft twin` count with it. The figures are kept in the user's cache. What else keeps the machine
    busy meanwhile counts as the machine.

    \b
    Example:  weft calibrate
    """
    from weft.bodies.live.calibrating import calibrate as measured
    from weft.bodies.live.calibration import keep
    from weft.bodies.live.failing import RunFailed
    from weft.bodies.live.state import CannotRun
    from weft.cli.streams import Streams

    note("starting Spark; then about a minute of made-up records")
    try:
        with Streams(json):
            costs = measured(note)
    except (RunFailed, CannotRun, ValueError) as error:
        fail(f"nothing was measured: {error}", FAILED)
    file = keep(costs)
    if json:
        print_json({"costs": costs.as_json(), "file": str(file)})
        return
    rows: Rows = [
        ("a batch without state", f"{number(costs.stateless_ms)} ms"),
        ("a batch that aggregates", f"{number(costs.stateful_ms)} ms"),
        ("a batch that drops what came before", f"{number(costs.distinct_ms)} ms"),
        ("a batch that joins", f"{number(costs.join_ms)} ms"),
        ("each further output", f"{number(costs.output_ms)} ms"),
        ("a sink of csv or json, more than of Parquet", f"{number(costs.text_ms)} ms"),
        ("a Python function", f"{number(costs.python_ms)} ms"),
        ("a record, read or through an operator", f"{number(costs.record_ms, 4)} ms"),
        (f"each further batch at the same time, beyond {number(costs.room)}", f"{costs.crowd:.0%} longer"),
        ("until a commit is seen", f"{number(costs.look_ms)} ms"),
        ("of a batch, after its results are committed", f"{number(costs.after_ms)} ms"),
        ("a first batch, more than later ones", f"{number(costs.first_ms)} ms"),
        ("of that, left with each further one", f"{costs.cooling:.0%}"),
        ("spread of durations", f"{costs.spread:.0%}"),
    ]
    print_table(f"what micro-batches cost here ({costs.setting})", ("what", "cost"), rows)
    say(f"kept in {file}: `weft plan` and `weft twin` use it from now on")
