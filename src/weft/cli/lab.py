"""`weft lab`: do we get the published numbers?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.output import FAILED, WRONG_INPUT, Json, Rows, fail, note, print_json, print_table, say


def lab(
    row: Annotated[str | None, typer.Argument(metavar="[ROW]", help="A row; without one, all are listed.")] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Where results and plots are kept.")] = Path("results"),
    page: Annotated[bool, typer.Option("--page", help="Write the page of all results, README.md, and end.")] = False,
    listed: Annotated[
        bool,
        typer.Option(
            "--list", help="Say all of ROW, or of every row, and measure nothing: published, last result, choices."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Reproduce a published result: table and plot, met (exit 0) or not met (exit 1).

    Without ROW all are listed, each with whether its last result in DIR met what was published.

    \b
    Example:  weft lab P-lab2
              weft lab P-lab2 --list
    """
    from weft.lab import ALL, PLANNED, ROWS, save
    from weft.lab import page as page_of

    if page:
        results.mkdir(parents=True, exist_ok=True)
        (results / "README.md").write_text(page_of(results, ALL, PLANNED), encoding="utf-8")
        say(str(results / "README.md"))
        return
    if row is not None and row not in PLANNED:
        fail(f"{row} is no row of the catalogue; there are: {', '.join(PLANNED)}", WRONG_INPUT)
    if row is None or listed:
        _list(PLANNED if row is None else (row,), results, listed, json)
        return
    if row not in ROWS:
        fail(f"{row} is not measured: `weft lab {row} --list` says why; there are: {', '.join(ROWS)}", WRONG_INPUT)
    found = ROWS[row]
    outcome = found.measure(lambda text: note(f"{row}: {text}"))
    path = save(found, outcome, results)
    (results / "README.md").write_text(page_of(results, ALL, PLANNED), encoding="utf-8")
    if json:
        print_json(found.as_json(outcome))
    else:
        _say_all(row, results)
        say(f"{row} is {'met' if outcome.met else 'not met'}; {path}")
    if not outcome.met:
        raise typer.Exit(FAILED)


def _list(names: Iterable[str], results: Path, all_of_it: bool, json: bool) -> None:
    """The rows with their verdicts, or all there is to say of each."""
    from weft.lab import ALL, PLANNED, ROWS, result_in, told, verdict

    if json:
        plain = []
        for name in names:
            held = result_in(results, name)
            one = {
                "row": name,
                "title": PLANNED[name],
                "built": name in ROWS,
                "met": None if held is None else held["met"],
            }
            if all_of_it:
                published, measured = ALL[name].published, None if held is None else held["measured"]
                one |= {"source": ALL[name].source, "published": published, "measured": measured}
                one["said"] = [{"what": label, "text": text} for label, text in told(ALL[name], held)]
            plain.append(one)
        print_json(plain)
        return
    if all_of_it:
        for name in names:
            say(f"{name}: {PLANNED[name]}")
            _say_all(name, results)
            say("")
        return
    rows: Rows = [(name, PLANNED[name], verdict(ALL[name], result_in(results, name))) for name in names]
    print_table("lab rows", ("row", "what is reproduced", "met"), rows)
    say(f"met: by the last result in {results}; `weft lab --list` says what was published, measured and left out")


def _say_all(name: str, results: Path) -> None:
    """A row's source, its published figures beside the last ones of ours, and what is to be known of them."""
    from weft.lab import ALL, brief, result_in, told

    row, found = ALL[name], result_in(results, name)
    say(f"source: {row.source}")
    say(f"published: {brief(row.published)}")
    say(f"measured: {'not in ' + str(results) if found is None else brief(found['measured'])}")
    for label, text in told(row, found):
        say(f"{label.upper() if label == 'did not hold' else label}: {text}")
