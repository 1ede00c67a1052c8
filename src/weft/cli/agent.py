"""`weft agent`: run one site of a deployment, in a process of its own."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.output import FAILED, WRONG_INPUT, File, State, fail, note, read

if TYPE_CHECKING:
    from weft.bodies.live.processes.agent import AgentProcess

LOOK_S = 0.2


def agent(
    file: File,
    site: Annotated[str, typer.Option(metavar="S", help="The site to run.")],
    state: State = None,
    takes_queries: Annotated[
        bool, typer.Option("--takes-queries", help="Also run queries that the desk lets come (`weft add`).")
    ] = False,
) -> None:
    """Run one site of a deployment: its Spark, and what the desk asks of it; `weft run --processes` starts all of them.

    It may start before the desk, goes on without it, and ends with the run, with `weft stop`, or by Ctrl-C. Where the
    desk runs with --apart, this machine needs the file, its site's key, and what its site reads, and nothing else.

    \b
    Example:  weft agent examples/meters/deployment.yaml --site gw-1
    """
    _, deployment = read(file, data=False)  # those of other sites' sources need not be here
    names = [one.name for one in deployment.sites]
    if site not in names:
        fail(f"--site: there is no `{site}`; there are: {', '.join(names)}", WRONG_INPUT)
    from weft.bodies.live.processes.agent import AgentProcess
    from weft.bodies.live.state import CannotRun, state_folder
    from weft.bodies.live.valid import valid
    from weft.spark.storage.private import private_files

    private_files()
    made = AgentProcess(valid(deployment, data=False), site, state_folder(file, state), takes_queries=takes_queries)
    try:
        status = _carried(made)
    except CannotRun as error:
        fail(f"{file}: {error}", WRONG_INPUT)
    if made.reason:
        note(f"{file}: site {site}: {made.reason}")
    raise typer.Exit(FAILED if status else 0)


def _carried(made: AgentProcess) -> int:
    """Drive an agent in a thread of its own: Spark takes Ctrl-C for itself where it is started in the main thread."""
    ended: list[int | BaseException] = []

    def carry() -> None:
        try:
            ended.append(made.go())
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=carry, name="agent", daemon=True)
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, lambda *_: made.stop())
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)
    [found] = ended
    if isinstance(found, BaseException):
        raise found
    return found
