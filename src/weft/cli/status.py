"""`weft status`: how is a run doing, asked from another terminal?"""

from __future__ import annotations

import time
from typing import Any

from weft.cli.finding import held
from weft.cli.held import Held
from weft.cli.output import File, Json, State, print_json, print_table, say
from weft.cli.tables import (
    COST_UNKNOWN,
    DIRECTORY_HEAD,
    FRAGMENT_HEAD,
    MOVE_HEAD,
    OPERATOR_HEAD,
    QUERY_HEAD,
    SITE_HEAD,
    advice_lines,
    change_lines,
    directory_rows,
    doubled_lines,
    fragment_rows,
    left_out,
    move_rows,
    operator_rows,
    promise_lines,
    query_rows,
    shared_lines,
    site_rows,
)


def status(file: File, state: State = None, json: Json = False) -> None:
    """Show what a running deployment does, or how the last run ended; Spark is not needed.

    \b
    Example:  weft status examples/meters/deployment.yaml
    """
    found = held(file, state)
    last = found.status()
    told = last or {}
    alive, phase = found.alive(), found.phase(last)
    if json:
        about = {"alive": alive, "phase": phase, "pid": found.pid(), "state": found.shown}
        print_json({**told, **about, **({"agents": agents} if (agents := found.agents()) and not alive else {})})
        return
    say(_headline(found, told, alive, phase))
    if "queries" in told:
        say("")
        print_table("queries", QUERY_HEAD, query_rows(told))
        for line in [*left_out(told), *promise_lines(told), *doubled_lines(told)]:
            say(f"  {line}")
        say("")
        print_table("what runs where" if alive else "what ran where", FRAGMENT_HEAD, fragment_rows(told))
        more = (("operators", OPERATOR_HEAD, operator_rows(told)), ("sites", SITE_HEAD, site_rows(told)),
                ("directory", DIRECTORY_HEAD, directory_rows(told)), ("moves", MOVE_HEAD, move_rows(told)))  # fmt: skip
        for title, head, rows in more:
            if rows:
                say("")
                print_table(title, head, rows)
                if title == "operators" and any(row[-1] == "-" for row in rows):
                    say(f"  {COST_UNKNOWN}")
        for line in [*change_lines(told), *shared_lines(told), *advice_lines(told.get("advice"))]:
            say(line)
        for name, why in told.get("down", {}).items():
            say(f"down: {name}: {why}")


def _headline(found: Held, told: dict[str, Any], alive: bool, phase: str) -> str:
    age = f", as of {max(0.0, time.time() - told['at']):.0f} s ago" if "at" in told else ""
    if alive:
        return f"{found.file}: {phase} (process {found.pid()}){age}"
    if phase == "never ran":
        return f"{found.file}: nothing ever ran in {found.shown}; start it with {found.command('run')}"
    agents = found.agents()
    if agents:
        running = ", ".join(f"{site} in process {pid}" for site, pid in agents.items())
        again = found.command("run", "--processes")
        return f"{found.file}: no desk, but sites run on: {running}; {again} goes on, {found.command('stop')} ends them"
    why = f": {told['reason']}" if phase == "failed" and "reason" in told else ""
    return f"{found.file}: nothing runs; the last run {phase}{age}{why}"
