"""How does it speak? One JSON document or plain text on stdout, everything else on stderr, three exit codes."""

from __future__ import annotations

import errno
import json
import re
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from weft.model import Deployment
    from weft.spec import Problem, Report

FAILED = 1
WRONG_INPUT = 2
WIDTH_PIPED = 200
# Work that ends sooner is not talked about.
QUIET_S = 2.0
FIRST_TIME = "what is compiled on the first run is kept"


def _possible(folder: Path | None) -> Path | None:
    """A folder whose name the system can take; the rest is looked at by whoever uses it."""
    try:
        if folder is not None:
            folder.stat()
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise typer.BadParameter(f"{str(folder)[:80]}: {error.strerror}; give another folder") from None
    except ValueError as error:
        raise typer.BadParameter(f"{str(folder)[:80]!r}: {error}; give another folder") from None
    return folder


Rows = Sequence[tuple[str, ...]]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The deployment file (YAML).", show_default=False)]
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        callback=_possible,
        help="Where the run keeps its state; `.weft` beside FILE unless given.",
    ),
]
Ideal = Annotated[
    bool, typer.Option("--ideal", help="By the pure queueing model of the documents, not by Spark's micro-batches.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")]


def print_json(value: Any) -> None:
    """The one JSON document of a command."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """A line for the reader of the result."""
    typer.echo(text)


def note(text: str) -> None:
    """A line that is not the result: progress, warnings."""
    typer.echo(text, err=True)


@contextmanager
def patience(text: str) -> Iterator[None]:
    """Says what takes so long, where it does."""
    timer = threading.Timer(QUIET_S, note, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def fail(text: str, code: int = FAILED) -> NoReturn:
    """Say what went wrong on stderr, and leave."""
    note(text)
    raise typer.Exit(code)


def command(word: str, file: Path, state: Path | None = None, *more: str) -> str:
    """A command as the user would type it next, in marks; a state folder that was given is given again."""
    given = [] if state is None else ["--state", str(state)]
    return f"`{shlex.join(['weft', word, str(file), *given, *more])}`"


def console(file: TextIO | None = None) -> Console:
    """Where tables are printed: coloured and as wide as the terminal, plain and wide where piped."""
    from rich.console import Console

    target = file or sys.stdout
    plain = not target.isatty()
    return Console(
        file=target, highlight=False, soft_wrap=False, no_color=plain or None, width=WIDTH_PIPED if plain else None
    )


def print_table(title: str, head: tuple[str, ...], rows: Rows) -> None:
    """A table on stdout: drawn on a terminal, aligned columns of plain text where piped."""
    if sys.stdout.isatty():
        console().print(rich_table(title, head, rows))
        return
    say(plain_table(title, head, rows))


def rich_table(title: str, head: tuple[str, ...], rows: Rows) -> Any:
    """A table for a terminal; numbers stand to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(head):
        numbers = bool(rows) and all(_is_number(row[at]) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def plain_table(title: str, head: tuple[str, ...], rows: Rows) -> str:
    """A table as aligned plain text."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.replace(",", "").replace(".", "", 1).replace(" %", "").lstrip("-").isdigit()


def number(value: float | None, digits: int = 1) -> str:
    """A number for people; `-` where there is none."""
    if value is None:
        return "-"
    return f"{value:,.{digits}f}" if isinstance(value, float) else f"{value:,}"


def counted(count: int, word: str) -> str:
    """`1 query`, `2 queries`."""
    plural = word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeiou" else word + "s"
    return f"{count} {word if count == 1 else plural}"


MEASURED = " as the last run measured"


def warn(warnings: Iterable[str], taken: Sequence[str]) -> None:
    """Tell warnings, and what was taken from the last run, which is none."""
    for line in together(warnings):
        note(f"warning: {line}")
    for line in _measured(taken):
        note(line)


def _measured(taken: Sequence[str]) -> list[str]:
    """What was taken from the last run, costs and selectivities of all operators on one line."""
    of_operators = [line.removeprefix("operator ").removesuffix(MEASURED) for line in taken if line.endswith(MEASURED)]
    rest = [line for line in taken if not line.endswith(MEASURED)]
    return [*([f"as the last run measured: {'; '.join(of_operators)}"] if of_operators else []), *rest]


def together(warnings: Iterable[str]) -> list[str]:
    """Warnings with those that say the same of several things made one: `operators a.x, a.y: ...`."""
    said: dict[tuple[str, str], list[str]] = {}
    for warning in warnings:
        found = re.fullmatch(r"(operator|source) (\S+): (.*)", warning)
        said.setdefault((found[1], found[3]) if found else ("", warning), []).append(found[2] if found else "")
    return [
        text if not kind else f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names)}: {text}"
        for (kind, text), names in said.items()
    ]


def read(file: Path, data: bool = True) -> tuple[Report, Deployment]:
    """The deployment of a file, ordering and sharing written out; where it has errors, all on stderr and exit 2.

    Without `data` the files that its sources read need not be here.
    """
    from weft.plan.dataflow.ordering import with_ordering
    from weft.plan.dataflow.sharing import with_sharing
    from weft.spec import check

    report = check(file, data)
    if report.deployment is None:
        for problem in report.errors:
            note(problem.at(report.file))
        fail(f"{report.file}: {counted(len(report.errors), 'error')}", WRONG_INPUT)
    return report, with_sharing(with_ordering(report.deployment))


def as_measured(file: Path, deployment: Deployment, state: Path | None = None) -> tuple[Deployment, list[str]]:
    """The deployment with what its last run measured where it declares nothing, and a line for each thing taken."""
    from weft.bodies.live.last_run import last_measured
    from weft.bodies.live.state import state_folder
    from weft.plan.observing.measured import with_measured

    known, taken = with_measured(deployment, last_measured(state_folder(file, state)))
    return known, list(taken)


def by_series(file: Path, deployment: Deployment, state: Path | None = None) -> tuple[Deployment, list[str]]:
    """What to plan by where `control.place.series` asks for it: sources as the last run measured them over time."""
    return as_flowed(file, deployment, state) if deployment.control.place.series else (deployment, [])


def as_flowed(file: Path, deployment: Deployment, state: Path | None = None) -> tuple[Deployment, list[str]]:
    """The deployment with sources as the last run measured them over time, where it did, and what was taken."""
    from weft.bodies.live.rates import kept_rates
    from weft.bodies.live.state import State as Kept
    from weft.bodies.live.state import state_folder
    from weft.plan.observing.measured import with_series

    known, taken = with_series(deployment, kept_rates(Kept(state_folder(file, state))))
    return known, list(taken)


def warnings_of(report: Report) -> list[str]:
    """The warnings of a file as lines."""
    return [problem.at(report.file) for problem in report.warnings]


def as_json(problem: Problem) -> dict[str, Any]:
    """A problem as the commands print it."""
    return {"line": problem.line, "field": problem.field, "message": problem.message}
