"""Is the data there, and do sinks keep clear of it, of one another and of the state?"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

from weft.model import Deployment, Query, Sink, Source, late_outlets
from weft.model.formats import SOURCES
from weft.spec.others import has_states, held_of_others, in_rooms_of_others, is_state, sources_nearby
from weft.spec.problems import Problems, brief

GENERATOR = "generate.py"
"""What makes the data of an example, beside its deployment file."""
_LOOKED_AT_MAX = 100
_NAME_BYTES_MAX = 255  # of a file or folder, on every system that is in use
_ENDINGS = tuple(name for name, facts in SOURCES.items() if facts.seen_by_name)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/|(file|dbfs|hdfs|s3[an]?|gs):")


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that a sink takes: where it really lies, who says so, and what is hidden beside it."""

    path: str
    hidden: str
    field: str

    @property
    def sink(self) -> str:
        """The sink, as messages call it."""
        return self.field.removesuffix(".path").removesuffix(".to")


def check_paths(deployment: Deployment, problems: Problems, data: bool = True) -> None:
    """Reports source paths that hold nothing, and folders of sinks and state that would harm or be harmed.

    Without `data` nothing is said of what is not there: this is not the machine that reads it.
    """
    state = _check_store(deployment, problems)
    for index, source in enumerate(deployment.sources):
        message = _source_problem(source, deployment.folder, data) or _state_problem(source, deployment.folder, state)
        if message is not None:
            problems.error(f"sources[{index}].path", message)
    taken: list[_Folder] = []
    for folder in _sinks(deployment, problems):
        message = _clash(folder, taken) or _sink_problem(folder, deployment, state) or _sink_at_others(folder, state)
        if message is not None:
            problems.error(folder.field, message)
        taken.append(folder)


def beside_state(deployment: Deployment, state: str) -> list[str]:
    """What stands against keeping state in a folder that the file does not name, each with its field."""
    read = [(f"sources[{at}].path", _state_problem(one, deployment.folder, state))
            for at, one in enumerate(deployment.sources)]  # fmt: skip
    kept = [(folder.field, _sink_in_state(folder, state)) for folder in _sinks(deployment, Problems())]
    at_others = _state_at_others(state, _real(deployment.store.path, deployment.folder))
    if at_others is not None:
        return [f"the state folder {state} {at_others}"]
    by_name = any(source.facts.seen_by_name for source in deployment.sources)
    if by_name and pattern_in(state):
        return [f"Spark takes `{pattern_in(state)}` in the state folder {state} for a pattern; rename it"]
    return [f"{field}: {message}" for field, message in (*read, *kept) if message is not None]


def absolute(path: str, folder: str) -> str:
    """A path of the deployment file, `~` written out; relative ones start at its folder."""
    return os.path.abspath(os.path.join(folder, os.path.expanduser(path)))


def _check_store(deployment: Deployment, problems: Problems) -> str:
    """Reports a store that is no folder to keep state in; where it really lies, nothing where that is wrong."""
    path = deployment.store.path
    if "\0" in path:
        return ""
    field = "store.path" if "store.path" in problems.lines else "store"
    if _SCHEME.match(path):
        problems.error(field, f"`{brief(path)}` is not a folder of this machine; give one, as .weft")
        return ""
    state = _real(path, deployment.folder)
    if _holds(state, os.path.realpath(deployment.folder)):
        problems.error(field, "holds the deployment file itself; give the state its own folder, as .weft")
        return ""
    if os.path.isfile(state):
        problems.error(field, f"`{brief(state)}` is a file; state needs a folder")
        return ""
    at_others = _state_at_others(state, state)
    if at_others is not None:
        problems.error(field, at_others)
    return state


def _state_at_others(state: str, store: str) -> str | None:
    """What stands against a new state where it would lie in a sink, a source or the state of another run."""
    if is_state(state) or (state == store and has_states(store)):
        return None  # it is there already
    message = in_rooms_of_others(state, store)
    if message is not None:
        return message
    for read, other in sources_nearby(state, store):
        if _is_read(read, state):
            return f"lies in {read}, which another run reads (its state is {other}); use another folder"
    return None


def _sink_at_others(folder: _Folder, state: str) -> str | None:
    """What stands against a sink within the sink or state of another run, or around it.

    Whose the folder itself is, a run asks.
    """
    above = os.path.dirname(folder.path)
    if is_state(above) and not _holds(state, above):
        return f"lies in {above}, the state folder of a run, which starting over empties; use another folder"
    return in_rooms_of_others(above) or held_of_others(folder.path)


def _sinks(deployment: Deployment, problems: Problems) -> Iterator[_Folder]:
    for query, sink, field in _written(deployment):
        if not sink.facts.has_path:
            if sink.path is not None:
                problems.error(field, f"a {sink.format} sink has no path; leave it out")
        elif sink.path is None:
            problems.error(field, f"is missing: a {sink.format} sink needs the folder it writes")
        elif _SCHEME.match(sink.path):
            problems.error(field, f"{_elsewhere(sink.path, 'folder')}; give one, as out/{query.name}")
        elif "\0" not in sink.path:
            real = _real(sink.path, deployment.folder)
            if sink.mode == "update" and pattern_in(real):
                problems.error(field, f"Spark takes `{pattern_in(real)}` in `{brief(real)}` for a pattern; rename it")
            above, name = os.path.split(real)
            yield _Folder(real, os.path.join(above, f".{name}.weft"), field)


def _written(deployment: Deployment) -> Iterator[tuple[Query, Sink, str]]:
    """Every sink with its query and the field of its folder, those of late records among them."""
    for at, query in enumerate(deployment.queries):
        for index, sink in enumerate(query.sinks):
            yield query, sink, f"queries[{at}].sink" + (f"[{index}]" if len(query.sinks) > 1 else "") + ".path"
        for index, operator in enumerate(query.operators):
            for outlet in late_outlets(query, operator):
                if outlet.sink is not None:
                    yield query, outlet.sink, f"queries[{at}].operators[{index}].late.to"


def _elsewhere(path: str, what: str) -> str:
    hint = " (leave `file:` out)" if path.startswith("file:") else ""
    return f"`{brief(path)}` is not a {what} of this machine{hint}"


def pattern_in(path: str) -> str:
    """The first character of a path that Spark takes for part of a pattern; empty where there is none."""
    return next((character for character in path if character in "[]{}*?\\"), "")


def _clash(folder: _Folder, taken: list[_Folder]) -> str | None:
    """What is wrong with a sink's folder beside those of the sinks before it."""
    for other in taken:
        if folder.path == other.path:
            return f"is also the folder of {other.sink}; give each sink its own"
        if _holds(other.path, folder.path):
            return f"lies in the folder of {other.sink}, whose readers would find both; give each sink its own"
        if _holds(folder.path, other.path):
            return f"holds the folder of {other.sink}, and readers would find both; give each sink its own"
        for one, its in ((folder.path, other.hidden), (other.path, folder.hidden)):
            if _holds(its, one):
                of = other.sink if its == other.hidden else "this sink"
                return f"`{brief(one)}` lies where {of} keeps what is on its way; give each sink its own folder"
    return None


def _source_problem(source: Source, folder: str, data: bool) -> str | None:
    if not source.facts.has_path:
        return None if source.path is None else f"a {source.format} source has no path; leave it out"
    if source.path is None:
        return f"is missing: a {source.format} source needs a file, a folder or a glob"
    if _SCHEME.match(source.path):
        return f"{_elsewhere(source.path, 'file or folder')}; give the path of one"
    if source.facts.recorded and not re.search(rf"\.({'|'.join(_ENDINGS)})/?$", source.path):
        endings = f".{', .'.join(_ENDINGS[:-1])} or .{_ENDINGS[-1]}"
        says = f"must end in {endings}, so that {source.format} knows how to read it"
        return f"{says}, found `{brief(source.path)}`"
    if "\0" in source.path:
        return None
    pattern = absolute(source.path, folder)
    matched = [Path(pattern)] if os.path.lexists(pattern) else []
    matched = matched or [Path(hit) for hit in islice(_hits(pattern), _LOOKED_AT_MAX)]
    if not matched:
        return _nothing_matches(source, source.path, folder) if data else None
    if os.path.lexists(pattern):
        if os.path.basename(pattern).startswith(("_", ".")) and not os.path.isdir(pattern):
            return f"Spark passes over files whose names begin with `{os.path.basename(pattern)[0]}`; rename it"
        named = pattern if source.facts.recorded or os.path.isdir(pattern) else os.path.dirname(pattern)
        if pattern_in(named):
            return f"Spark takes `{pattern_in(named)}` in `{brief(named)}` for a pattern, and finds nothing; rename it"
    for hit in matched:
        wanted = os.R_OK | (os.X_OK if hit.is_dir() else 0)
        if not os.access(hit, wanted):
            name = brief(os.path.relpath(hit, folder or "."))
            leads = os.path.exists(hit)
            why = "may not be read; check its permissions" if leads else "is a link that leads nowhere; take it away"
            return f"`{name}` {why}"
    return None


def _nothing_matches(source: Source, path: str, folder: str) -> str:
    remedy = f"; {GENERATOR} there makes example data" if Path(folder, GENERATOR).is_file() else ""
    holder = os.path.dirname(path)
    if not remedy and source.facts.seen_by_name and os.path.isdir(absolute(holder, folder)):
        remedy = f"; to start before data come, name the folder: `path: {brief(holder or '.')}`"
    return f"no file or folder matches `{brief(path)}` in {Path(folder).resolve()}{remedy}"


def _state_problem(source: Source, folder: str, state: str) -> str | None:
    """Whether a source would read what a run keeps for itself."""
    if source.path is None or not source.facts.has_path or "\0" in source.path or not state:
        return None
    if _is_read(_real(source.path, folder), state):
        return f"reads the state folder {brief(state)}, which changes all the time; use another `path` or `store`"
    return None


def _is_read(read: str, state: str) -> bool:
    """True if what a source reads holds a state, or lies in it."""
    below = os.path.relpath(state, read).split(os.sep) if _holds(read, state) else []
    # Spark passes over what begins with `.` or `_`, unless it is named itself.
    seen = bool(below) and not any(name.startswith((".", "_")) and name != "." for name in below)
    return seen or _holds(state, _fixed(read)) or (
        glob.has_magic(read) and any(fnmatch(one, read) for one in _upwards(state))
    )  # fmt: skip


def _hits(pattern: str) -> Iterator[str]:
    try:
        for one in unbraced(pattern):
            yield from glob.iglob(one)
    except (OSError, ValueError, re.error):
        return


def unbraced(pattern: str) -> list[str]:
    """A glob with `{a,b}`, which Spark knows and Python does not, as several without."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None or pattern.count("{") > 4:
        return [pattern]
    inner = [pattern[: match.start()] + word + pattern[match.end() :] for word in match[1].split(",")]
    return [one for part in inner for one in unbraced(part)]


def _sink_problem(folder: _Folder, deployment: Deployment, state: str) -> str | None:
    path = folder.path
    if _holds(path, os.path.realpath(deployment.folder)):
        return "holds the deployment file itself, and starting over would empty it; give the sink its own folder"
    if len(os.fsencode(os.path.basename(folder.hidden))) > _NAME_BYTES_MAX:
        return "has too long a name: what is on its way lies beside it, in a folder of six more letters; shorten it"
    if os.path.lexists(path) and not os.path.isdir(path):
        return f"`{brief(path)}` is {'a file' if os.path.isfile(path) else 'no folder'}; a sink needs a folder"
    message = _sink_in_state(folder, state)
    if message is not None:
        return message
    for source in deployment.sources:
        if source.path is None or not source.facts.has_path or _SCHEME.match(source.path) or "\0" in source.path:
            continue
        read = _real(source.path, deployment.folder)
        if _holds(path, _fixed(read)):
            return f"holds what the source `{source.name}` reads, and starting over would empty it; use another folder"
        if _holds(read, path) or (glob.has_magic(read) and any(fnmatch(one, read) for one in _upwards(path))):
            return f"lies in what the source `{source.name}` reads, so the query would read itself; use another folder"
    return None


def _sink_in_state(folder: _Folder, state: str) -> str | None:
    """Whether results, or what is on its way to them, and state would lie in one another."""
    if state and _holds(state, folder.path):
        return f"lies in the state folder {brief(state)}, which starting over empties; use another folder"
    if state and _holds(folder.path, state):
        return f"holds the state folder {brief(state)}; give the sink its own folder"
    if state and _holds(folder.hidden, state):
        return f"what is on its way to it lies in {brief(folder.hidden)}, and so would the state; use another folder"
    return None


def _fixed(read: str) -> str:
    """The folder before the first wildcard of a glob; anything else as it is."""
    return read if not glob.has_magic(read) else re.split(r"[*?\[]", read)[0].rpartition("/")[0]


def _upwards(path: str) -> Iterator[str]:
    yield path
    yield from (str(parent) for parent in Path(path).parents)


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _real(path: str, folder: str) -> str:
    """Where a path really lies, however it is spelled; what is not there yet is taken as written."""
    return os.path.realpath(absolute(path, folder))
