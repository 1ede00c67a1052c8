"""`weft keys`: who may speak for which site? An authority of the deployment's own, and a key for each process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.output import WRONG_INPUT, File, Json, counted, fail, print_json, read, say

DAYS = 365


def keys(
    file: File,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder; by default the file's `keys`, else `keys` beside the file."),
    ] = None,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=3650, help="For how many days they hold.")] = DAYS,
    json: Json = False,
) -> None:
    """Make the keys with which the processes of a deployment know one another; nothing is overwritten.

    Sites that came since get theirs from the same authority. A run on one machine needs none of this: it makes its own.

    \b
    Example:  weft keys examples/meters/deployment.yaml --out keys
    """
    from weft.bodies.live.wire.authority import AUTHORITY, KeysThere, make_keys
    from weft.spec import absolute

    _, deployment = read(file)
    folder = out or Path(absolute(deployment.keys or "keys", str(file.parent)))
    try:
        made = make_keys(folder, [site.name for site in deployment.sites], days)
    except KeysThere as error:
        fail(str(error), WRONG_INPUT)
    except OSError as error:
        fail(f"{folder} cannot be written: {error.strerror}; choose another with --out", WRONG_INPUT)
    until = made.until.strftime("%Y-%m-%d %H:%M UTC")
    if json:
        print_json({"folder": str(folder), "made": list(made.new), "kept": list(made.kept), "valid_until": until})
        return
    say(f"{folder}: {counted(len(made.new), 'key')} made, valid until {until}: {', '.join(made.new)}")
    if made.kept:
        say(f"kept as they were: {', '.join(made.kept)}")
    say(
        f"each machine needs {AUTHORITY}.pem, the .pem and the .key of its own site, and no other key; one from which "
        f"`weft status` and others ask, {AUTHORITY}.pem and the pair `command`; "
        f"keep {AUTHORITY}.key where only you can read it: whoever has it can speak for any site"
    )
