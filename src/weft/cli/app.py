"""Which commands are there? Each lives in a file of its own and is hung in here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from weft import __version__
from weft.cli import (
    add,
    agent,
    apply,
    bench,
    calibrate,
    check,
    explain,
    explore,
    kafka,
    keys,
    lab,
    logs,
    move,
    order,
    plan,
    profile,
    run,
    status,
    stop,
    twin,
)
from weft.cli.guard import DEBUG, Guarded

app = typer.Typer(
    name="weft",
    cls=Guarded,
    help="Continuous queries over many sites on Apache Spark, placed and measured by what they were promised.",
    epilog="Exit status: 0 done, 1 failed or a violation found, 2 wrong input. "
    "What steers a run (`control:` of a file) is explained in docs/control.md, every key of a file by `weft schema`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Boxes and colours are for people: what is piped stays plain.
    rich_markup_mode="rich" if sys.stdout.isatty() and sys.stderr.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"weft {__version__}")
        raise typer.Exit


@app.callback()
def weft(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Show where an error came from; may stand anywhere on the line.")
    ] = False,
) -> None:
    """Continuous queries over many sites on Apache Spark, placed and measured by what they were promised."""
    del version, debug  # the one is answered, the other taken away, before anything else is read


COMMANDS = (
    (check.check, "Validate a deployment file."),
    (check.schema, "Print the JSON Schema of deployment files."),
    (plan.plan, "Show what would run where, and why."),
    (twin.twin, "Simulate a deployment in virtual time."),
    (run.run, "Run a deployment on Spark."),
    (agent.agent, "Run one site in a process of its own."),
    (profile.profile, "Find out how much operators can take."),
    (calibrate.calibrate, "Measure what micro-batches cost here."),
    (status.status, "Show how a run is doing."),
    (logs.logs, "Show what sites heard and did."),
    (explain.explain, "Show why operators are where they are."),
    (move.move, "Let an operator of a run change its site."),
    (add.add, "Let queries come to a run."),
    (add.remove, "Let a query of a run go."),
    (apply.apply, "Bring what runs to what the file says now."),
    (stop.stop, "Stop a run in order."),
    (keys.keys, "Make the keys of a deployment's processes."),
    (order.order, "Put a recorded stream in order."),
    (explore.explore, "Check a protocol over every order of arrivals."),
    (kafka.kafka, "Start or end a Kafka broker for trials."),
    (lab.lab, "Reproduce a published result."),
    (bench.bench, "Run the benchmarks."),
)
for command, short in COMMANDS:
    app.command(short_help=short)(command)
