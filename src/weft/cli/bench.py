"""`weft bench`: the benchmarks of a checkout, as ratios against peers in one run."""

from __future__ import annotations

import json as json_
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.output import FAILED, WRONG_INPUT, Json, fail, note, print_json

ROOT = Path(__file__).resolve().parents[3]


def names() -> list[str]:
    """The benchmarks there are."""
    return sorted(path.stem for path in ROOT.glob("benchmarks/*.py") if not path.stem.startswith("_"))


def bench(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help=f"One of {', '.join(names())}; all unless given.")
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="A form of seconds, to see that they work.")] = False,
    json: Json = False,
) -> None:
    """Run the benchmarks, which are part of a checkout of the project and not of the installed package.

    Each has its setting in benchmarks/settings, prints every round, and appends what it found to results/bench.

    \b
    Example:  weft bench overhead
    """
    there = names()
    if not there:
        fail(f"no benchmarks in {ROOT}: they come with a checkout, set up by `make setup`", WRONG_INPUT)
    if name is not None and name not in there:
        fail(f"no benchmark is called `{name}`; there are: {', '.join(there)}", WRONG_INPUT)
    results: dict[str, Any] = {}
    failed = []
    for one in [name] if name else there:
        note(f"bench {one}")
        options = [*(["--short"] if short else []), *(["--json"] if json else [])]
        command = [sys.executable, "-m", f"benchmarks.{one}", *options]
        done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE if json else None, text=True)
        if done.returncode:
            failed.append(one)
        elif json:
            results[one] = json_.loads(done.stdout)
    if json:
        print_json(results)
    if failed:
        fail(f"failed: {', '.join(failed)}", FAILED)
