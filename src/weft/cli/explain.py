"""`weft explain`: why does a fragment run where it runs, and what did Spark make of it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.held import Held, held
from weft.cli.output import WRONG_INPUT, File, Json, Rows, State, fail, print_json, print_table, read, say

if TYPE_CHECKING:
    from weft.model import Deployment


def explain(
    file: File,
    fragment: Annotated[
        str | None, typer.Argument(metavar="[FRAGMENT]", help="A fragment (or query.operator), to see its Spark plan.")
    ] = None,
    state: State = None,
    json: Json = False,
) -> None:
    """Show why operators are where they are, and the Spark plan of a fragment that has run.

    \b
    Example:  weft explain examples/meters/deployment.yaml north.neighbourhoods
    """
    _, deployment = read(file)
    found = held(file, state)
    pieces = _pieces(deployment, found)
    if fragment is not None:
        pieces = [_wanted(pieces, fragment)]
        pieces[0]["plan"] = _spark_plan(found, pieces[0]["id"])
    if json:
        print_json({"fragments": pieces})
    elif fragment is None:
        _print_all(pieces)
    else:
        _print_one(found, pieces[0])


def _pieces(deployment: Deployment, found: Held) -> list[dict[str, Any]]:
    """The fragments of the run, else those that a run would have, each with the reasons for its place."""
    from weft.cli.plan import fragments, reasons
    from weft.plan import NoPlacement, counting_hops, place

    try:
        placement = place(counting_hops(deployment))
    except NoPlacement as error:
        fail(f"{found.file}: {error}", WRONG_INPUT)
    why = reasons(placement)
    told = found.status() or {}
    ran = [{"id": name, **one} for name, one in told.get("fragments", {}).items()]
    keys = ("id", "site", "operators", "stateful", "reads", "writes")
    pieces: list[dict[str, Any]] = [{key: one.get(key) for key in keys} for one in ran]
    pieces = pieces or fragments(deployment, placement)
    planned = {(query, name): sites for query, homes in placement.as_json().items() for name, sites in homes.items()}
    for piece in pieces:
        query = piece["id"].split(".", 1)[0]
        piece["ran"] = bool(ran)
        piece["reasons"] = {
            name: why[query][name]
            if planned.get((query, name)) == [piece["site"]]
            else f"{_brought(told, query, name)}; the file as it is now would put it on {_listed(planned, query, name)}"
            for name in piece["operators"]
        }
    return pieces


def _brought(told: dict[str, Any], query: str, name: str) -> str:
    """How the run came to put an operator where it is."""
    moves = [
        one for one in told.get("moves", [])
        if (one.get("query"), one.get("operator")) == (query, name) and "state" not in one
    ]  # fmt: skip
    if not moves:
        return "placed there by the run"
    asked = {"scenario": "the scenario", "asked for": "`weft move`"}.get(moves[-1]["reason"], moves[-1]["reason"])
    return f"moved there by {asked}"


def _listed(planned: dict[tuple[str, str], list[str]], query: str, name: str) -> str:
    return ", ".join(planned.get((query, name), ["no site"]))


def _wanted(pieces: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for piece in pieces:
        query = piece["id"].split(".", 1)[0]
        if name == piece["id"] or name in [f"{query}.{operator}" for operator in piece["operators"]]:
            return piece
    fail(f"no fragment is called `{name}`; there are: {', '.join(piece['id'] for piece in pieces)}", WRONG_INPUT)


def _spark_plan(found: Held, fragment: str) -> str | None:
    try:
        return (found.folder / "fragments" / fragment / "plan.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _print_all(pieces: list[dict[str, Any]]) -> None:
    rows: Rows = [
        (piece["site"], piece["id"], name, why)
        for piece in pieces
        for name, why in (piece["reasons"] or {"(relay)": _relay(piece)}).items()
    ]
    title = "what runs where, and why" if pieces and pieces[0]["ran"] else "what would run where, and why"
    print_table(title, ("site", "fragment", "operator", "reason"), rows)


def _relay(piece: dict[str, Any]) -> str:
    return f"carries {', '.join(piece['reads'])} to where it is needed"


def _print_one(found: Held, piece: dict[str, Any]) -> None:
    say(f"fragment {piece['id']} on {piece['site']}")
    for name, why in (piece["reasons"] or {"(relay)": _relay(piece)}).items():
        say(f"  {name}{' (stateful)' if name == piece['stateful'] else ''}: {why}")
    say(f"  reads {', '.join(piece['reads'])}; writes {', '.join(piece['writes'])}")
    say("")
    if piece["plan"] is None:
        say(f"no Spark plan: the fragment has not run a batch yet; {found.command('run')} makes one")
    else:
        say(piece["plan"].rstrip())
