"""`weft explain`: why does a fragment run where it runs, and what did Spark make of it?"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from weft.cli.decided import show_decisions
from weft.cli.finding import held
from weft.cli.held import Held
from weft.cli.output import WRONG_INPUT, File, Json, Rows, State, fail, print_json, print_table, read, say
from weft.cli.placing import in_force as plan_in_force
from weft.cli.tables import shared_lines

if TYPE_CHECKING:
    from weft.bodies.live import journal
    from weft.model import Deployment, Placement


def explain(
    file: File,
    fragment: Annotated[
        str | None, typer.Argument(metavar="[FRAGMENT]", help="A fragment (or query.operator), to see its Spark plan.")
    ] = None,
    decisions: Annotated[
        bool, typer.Option("--decisions", help="What rules wished, what became of it, and the numbers behind it.")
    ] = False,
    state: State = None,
    json: Json = False,
) -> None:
    """Show why operators are where they are, and the Spark plan of a fragment that has run.

    With --decisions, what rules decided while it ran: asked for, advised or declined, and by which numbers.

    \b
    Example:  weft explain examples/meters/deployment.yaml north.neighbourhoods
    """
    from weft.bodies.live.sharing import with_beside
    from weft.plan.dataflow.shared_streams import shared_streams

    found = held(file, state, needed=False)
    _, deployment = read(file, found.here)
    if decisions:
        show_decisions(found, json)
        return
    in_force = plan_in_force(found.files("plan.json"))
    deployment = deployment if in_force is None else with_beside(deployment, in_force)
    pieces = _pieces(deployment, found)
    if fragment is not None:
        pieces = [_wanted(pieces, fragment)]
        pieces[0]["plan"] = _spark_plan(found, pieces[0]["id"], pieces[0]["site"])
    if json:
        print_json({"fragments": pieces, "shared": shared_streams(deployment)})
    elif fragment is None:
        _print_all(pieces)
        for line in shared_lines({"shared": shared_streams(deployment)}):
            say(line)
    else:
        _print_one(found, pieces[0])


def _pieces(deployment: Deployment, found: Held) -> list[dict[str, Any]]:
    """The fragments of the plan in force, as the journal has it, else those that a run would have; with reasons."""
    from weft.bodies.live.calibration import known_costs
    from weft.plan import NoPlacement, counting_hops, place

    try:
        planned = place(counting_hops(deployment, known_costs()[0].hop_ms))
    except NoPlacement as error:
        fail(f"{found.file}: {error}", WRONG_INPUT)
    in_force = plan_in_force(found.files("plan.json"))
    if in_force is None:
        from weft.cli.planned import fragments, reasons

        why = reasons(planned)
        pieces = fragments(deployment, planned)
        return [{**one, "ran": False, "reasons": _why_of(one["operators"], why, one["id"])} for one in pieces]
    pieces = []
    for fragment in in_force.fragments:
        streams = dict(zip(fragment.operators, fragment.streams, strict=True))
        pieces.append(
            {
                "id": fragment.id, "site": fragment.site, "operators": list(fragment.operators),
                "stateful": fragment.stateful, "reads": list(fragment.inputs),
                "writes": [*fragment.outputs, *(f"sink {name}" for name in fragment.sinks)], "ran": True,
                "plan_number": in_force.number,
                "reasons": {name: _why(stream, in_force, planned) for name, stream in streams.items()},
            }
        )  # fmt: skip
    return pieces


def _why_of(operators: list[str], why: dict[str, dict[str, str]], fragment: str) -> dict[str, str]:
    """The reasons of a fragment's operators."""
    own = fragment.partition(".")[0]
    streams = {name: (name if "." in name else f"{own}.{name}").split(".", 1) for name in operators}
    return {name: why[query][operator] for name, (query, operator) in streams.items()}


def _why(stream: str, in_force: journal.Held, planned: Placement) -> str:
    """Why an operator is where it is, and where the file as it is now would put it, where that differs."""
    reason = in_force.placement.reasons.get(stream) or "placed there by the run"
    would = planned.homes.get(stream)
    if would in (None, in_force.placement.homes.get(stream)):
        return reason
    return f"{reason}; the file as it is now would put it on {would}"


def _wanted(pieces: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for piece in pieces:
        query = piece["id"].split(".", 1)[0]
        if name == piece["id"] or name in [f"{query}.{operator}" for operator in piece["operators"]]:
            return piece
    fail(f"no fragment is called `{name}`; there are: {', '.join(piece['id'] for piece in pieces)}", WRONG_INPUT)


def _spark_plan(found: Held, fragment: str, site: str) -> str | None:
    # Where streams are mirrored a site has rooms of its own.
    names = [f"{rooms}fragments/{fragment}/plan.txt" for rooms in ("", f"sites/{quote(site, safe='')}/")]
    folder = found.files(*names)
    for name in names:
        with suppress(OSError):
            return (folder / name).read_text(encoding="utf-8", errors="replace")
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
