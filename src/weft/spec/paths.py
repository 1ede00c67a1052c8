"""Is the data there, and do sinks keep clear of it and of one another?"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

from weft.model import Deployment, Source
from weft.spec.problems import Problems, brief

_FILES = ("csv", "json", "parquet", "replay")
GENERATOR = "generate.py"
"""What makes the data of an example, beside its deployment file."""
_LOOKED_AT_MAX = 100


def check_paths(deployment: Deployment, problems: Problems) -> None:
    """Reports source paths that hold nothing and sink folders that would harm or be harmed."""
    for index, source in enumerate(deployment.sources):
        message = _source_problem(source, deployment.folder)
        if message is not None:
            problems.error(f"sources[{index}].path", message)
    taken: dict[str, str] = {}
    for path, field in _sinks(deployment, problems):
        if path in taken:
            problems.error(field, f"is also the folder of {taken[path]}; give each sink its own")
        taken.setdefault(path, field.removesuffix(".path"))
        message = _sink_problem(path, deployment)
        if message is not None:
            problems.error(field, message)


def _sinks(deployment: Deployment, problems: Problems) -> Iterator[tuple[str, str]]:
    for at, query in enumerate(deployment.queries):
        for index, sink in enumerate(query.sinks):
            field = f"queries[{at}].sink" + (f"[{index}]" if len(query.sinks) > 1 else "")
            if sink.format == "console":
                if sink.path is not None:
                    problems.error(f"{field}.path", "a console sink has no path; leave it out")
            elif sink.path is None:
                problems.error(f"{field}.path", f"is missing: a {sink.format} sink needs the folder it writes")
            elif _is_local(sink.path) and "\0" not in sink.path:
                yield _absolute(sink.path, deployment.folder), f"{field}.path"


def _source_problem(source: Source, folder: str) -> str | None:
    if source.format not in _FILES:
        return None if source.path is None else f"a {source.format} source has no path; leave it out"
    if source.path is None:
        return f"is missing: a {source.format} source needs a file, a folder or a glob"
    if source.format == "replay" and not re.search(r"\.(csv|json|parquet)/?$", source.path):
        return f"must end in .csv, .json or .parquet, so that replay knows how to read it, found `{brief(source.path)}`"
    if not _is_local(source.path) or "\0" in source.path:
        return None
    pattern = _absolute(source.path, folder)
    matched = [Path(pattern)] if os.path.lexists(pattern) else []
    matched = matched or [Path(hit) for hit in islice(_hits(pattern), _LOOKED_AT_MAX)]
    if not matched:
        remedy = f"; {GENERATOR} there makes example data" if Path(folder, GENERATOR).is_file() else ""
        return f"no file or folder matches `{brief(source.path)}` in {Path(folder).resolve()}{remedy}"
    for hit in matched:
        wanted = os.R_OK | (os.X_OK if hit.is_dir() else 0)
        if not os.access(hit, wanted):
            return f"`{brief(hit)}` may not be read; check its permissions"
    return None


def _hits(pattern: str) -> Iterator[str]:
    try:
        for one in _unbraced(pattern):
            yield from glob.iglob(one)
    except (OSError, ValueError, re.error):
        return


def _unbraced(pattern: str) -> list[str]:
    """A glob with `{a,b}`, which Spark knows and Python does not, as several without."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None or pattern.count("{") > 4:
        return [pattern]
    inner = [pattern[: match.start()] + word + pattern[match.end():] for word in match[1].split(",")]
    return [one for part in inner for one in _unbraced(part)]


def _sink_problem(path: str, deployment: Deployment) -> str | None:
    home = os.path.abspath(deployment.folder)
    if _holds(path, home):
        return "holds the deployment file itself, and starting over would empty it; give the sink its own folder"
    if os.path.isfile(path):
        return f"`{brief(path)}` is a file; a sink needs a folder"
    for source in deployment.sources:
        if source.path is None or source.format not in _FILES or not _is_local(source.path) or "\0" in source.path:
            continue
        read = _absolute(source.path, deployment.folder)
        fixed = read if not glob.has_magic(read) else re.split(r"[*?\[]", read)[0].rpartition("/")[0]
        if _holds(path, fixed):
            return f"holds what the source `{source.name}` reads, and starting over would empty it; use another folder"
        if _holds(read, path) or (glob.has_magic(read) and any(fnmatch(one, read) for one in _upwards(path))):
            return f"lies in what the source `{source.name}` reads, so the query would read itself; use another folder"
    return None


def _upwards(path: str) -> Iterator[str]:
    yield path
    yield from (str(parent) for parent in Path(path).parents)


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_local(path: str) -> bool:
    return "://" not in path and not path.startswith("dbfs:")


def _absolute(path: str, folder: str) -> str:
    return os.path.abspath(os.path.join(folder, path))
