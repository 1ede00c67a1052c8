"""`weft lab`: do we get the published numbers?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.output import FAILED, WRONG_INPUT, Json, Rows, fail, note, print_json, print_table, say


def lab(
    row: Annotated[str | None, typer.Argument(metavar="[ROW]", help="A row; without one, all are listed.")] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Where results and plots are kept.")] = Path("results"),
    page: Annotated[bool, typer.Option("--page", help="Write the page of all results, README.md, and end.")] = False,
    json: Json = False,
) -> None:
    """Reproduce a published result: table and plot, met (exit 0) or not met (exit 1).

    \b
    Example:  weft lab P-lab2
    """
    from weft.lab import PLANNED, ROWS, save
    from weft.lab import page as page_of

    if page:
        results.mkdir(parents=True, exist_ok=True)
        (results / "README.md").write_text(page_of(results, PLANNED), encoding="utf-8")
        say(str(results / "README.md"))
        return
    if row is None:
        if json:
            print_json([{"row": name, "title": what, "built": name in ROWS} for name, what in PLANNED.items()])
            return
        rows: Rows = [(name, what, "yes" if name in ROWS else "not measured") for name, what in PLANNED.items()]
        print_table("lab rows", ("row", "what is reproduced", "built"), rows)
        return
    if row not in ROWS:
        why = "is not built yet" if row in PLANNED else "is no row of the catalogue"
        fail(f"{row} {why}; there are: {', '.join(ROWS)}", WRONG_INPUT)
    found = ROWS[row]
    outcome = found.measure(lambda text: note(f"{row}: {text}"))
    path = save(found, outcome, results)
    (results / "README.md").write_text(page_of(results, PLANNED), encoding="utf-8")
    if json:
        print_json(found.as_json(outcome))
    else:
        for claim, held in outcome.claims.items():
            say(f"{'held' if held else 'NOT HELD'}: {claim}")
        for miss in () if outcome.met else found.misses:
            say(f"why: {miss}")
        for choice in found.choices:
            say(f"chosen: {choice}")
        for less in found.shrunk:
            say(f"less than published: {less}")
        say(f"{row} is {'met' if outcome.met else 'not met'}; {path}")
    if not outcome.met:
        raise typer.Exit(FAILED)
