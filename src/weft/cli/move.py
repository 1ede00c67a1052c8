"""`weft move`: let an operator of a running deployment change its site, from another terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.asking import ANSWER_S_MAX, ask
from weft.cli.finding import held
from weft.cli.output import WRONG_INPUT, File, Json, State, fail, print_json, say


def move(
    file: File,
    operator: Annotated[str, typer.Argument(help="QUERY.OPERATOR", metavar="QUERY.OPERATOR")],
    site: Annotated[str, typer.Argument(help="Where it is to run.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(help="Further operators with their sites, in the same change.", metavar="[OPERATOR SITE]..."),
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="S", min=0, help="How long to wait for the answer.")] = ANSWER_S_MAX,
    state: State = None,
    json: Json = False,
) -> None:
    """Move operators of a running deployment to other sites, in one change; no record is lost or doubled.

    A move that cannot be (tree rule, unknown site, no link, no room by planned load) changes nothing and says why.

    \b
    Example:  weft move examples/meters/deployment.yaml north.neighbourhoods utility
    """
    words = [operator, site, *(more or ())]
    if len(words) % 2:
        fail(f"{words[-1]}: where to? Each operator is followed by its site", WRONG_INPUT)
    homes = dict(zip(words[::2], words[1::2], strict=True))
    for named in homes:
        query, dot, name = named.partition(".")
        if not dot or not name:
            fail(f"{named}: an operator is named QUERY.OPERATOR, as north.neighbourhoods", WRONG_INPUT)
    query, _, name = operator.partition(".")
    found = held(file, state)
    if not found.alive():
        fail(f"{file}: nothing runs there, so nothing can move; start it with {found.command('run')}", WRONG_INPUT)
    request = {"query": query, "operator": name, "to": site, "homes": homes}
    answer = ask(found, file, request, timeout, ("state", "why", "from", "to", "pause_ms"))
    if json:
        print_json(answer)
    if answer["state"] == "refused":
        if json:
            raise typer.Exit(WRONG_INPUT)
        what = f"{operator} was" if len(homes) == 1 else f"{', '.join(homes)} were"
        fail(f"{file}: {what} not moved{f' to {site}' if len(homes) == 1 else ''}: {answer['why']}", WRONG_INPUT)
    if not json:
        for named, moved in zip(homes, answer.get("moves") or [answer], strict=False):
            if moved["from"] == moved["to"]:
                say(f"{named} is at {moved['to']} already")
            else:
                say(f"{named} moved from {moved['from']} to {moved['to']}{_pause(moved['pause_ms'])}")


def _pause(pause_ms: float | None) -> str:
    return "; no record has come since" if pause_ms is None else f", with a pause of {pause_ms:.0f} ms"
