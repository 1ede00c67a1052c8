"""`weft logs`: what did machines hear and do, and what did Spark say?"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from weft.cli.finding import held
from weft.cli.held import Held
from weft.cli.output import WRONG_INPUT, File, State, fail, note, say

FOLLOW_EVERY_S = 0.25


def logs(
    file: File,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many of the last lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines until the run ends.")] = False,
    site: Annotated[str | None, typer.Option(metavar="S", help="Only what this site heard and did.")] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Spark's own messages instead of the story.")] = False,
    state: State = None,
) -> None:
    """Show the story of a run: every input a site's machine took and what it did, one line each.

    \b
    Example:  weft logs examples/meters/deployment.yaml --follow --site district-north
    """
    found = held(file, state)
    # What Spark said when a run failed comes last: it is what one looks for.
    of_all = [f"logs/{name}" for name in ("console.log", "spark.log", "errors.log")]
    of_site = f"logs/sites/{'' if site is None else quote(site, safe='') + '/'}"
    of_sites = [name for name in found.logs() if name.startswith(of_site)] if spark else []
    if spark and site is not None and not of_sites:
        says = "only a site with a process of its own has messages of Spark's; leave --spark or --site out"
        fail(f"--site: {says}", WRONG_INPUT)
    names = (of_sites if site is not None else [*of_sites, *of_all]) if spark else ["story.log"]
    folder = found.files(*names)
    there = [name for name in names if (folder / name).is_file()]
    if not there:
        fail(f"{file}: no log in {found.shown} yet; {found.command('run')} writes one")
    if site is not None and not spark:
        _refuse_unknown(found, folder / there[0], site)
    last: deque[str] = deque(maxlen=lines)
    for name in there:
        last.extend(_shown(folder / name, None if spark else site))
    for line in last:
        say(line)
    if follow:
        with suppress(KeyboardInterrupt):
            _follow(found, there, None if spark else site)


def _refuse_unknown(found: Held, story: Path, site: str) -> None:
    """Exit 2 for a site that is neither in the file nor in the story."""
    from weft.spec import check

    deployment = check(found.file, found.here).deployment
    with open(story, encoding="utf-8", errors="replace") as handle:
        there = {name for line in handle if not line.startswith("#") and (name := _site_of(line.rstrip()))}
    sites = [one.name for one in deployment.sites] if deployment else []
    known = [*sites, *sorted(there.difference(sites))]
    if site not in known:
        fail(f"--site: there is no `{site}`; there are: {', '.join(known) or 'none yet'}", WRONG_INPUT)


def _shown(path: Path, site: str | None) -> Iterator[str]:
    with open(path, encoding="utf-8", errors="replace") as handle:
        yield from _readable(handle, site)


def _readable(handle: Iterable[str], site: str | None) -> Iterator[str]:
    for line in handle:
        text = line.rstrip("\n")
        if site is None or _site_of(text) == site:
            yield _with_clock(text)


def _site_of(line: str) -> str | None:
    """The site a story line belongs to; remarks name it in second place too."""
    words = line.split(" ", 2)
    return words[1].strip('"') if len(words) > 1 else None


def _with_clock(line: str) -> str:
    """A story line with the time of day (UTC) in place of milliseconds."""
    first, _, rest = line.partition(" ")
    try:
        moment = datetime.fromtimestamp(float(first) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return line
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d} {rest}"


def _follow(found: Held, names: list[str], site: str | None) -> None:
    places = {name: found.end(name) for name in names}
    begun = dict.fromkeys(names, b"")
    while True:
        runs = found.runs()
        for name, more in found.since(places).items():
            places[name] += len(more)
            *whole, begun[name] = (begun[name] + more).split(b"\n")
            for line in _readable((one.decode(errors="replace") for one in whole), site):
                say(line)
        if not runs:
            note("the run has ended")
            return
        found.rest(FOLLOW_EVERY_S)
