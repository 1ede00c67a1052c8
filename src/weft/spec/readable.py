"""Will Spark read users' files as they are? What it gets wrong without a word is told of before anything starts.

Folders within a source's folder, and names that begin with `_`, are passed over. Columns of csv are taken by their
places, whatever a header says, and bytes in it that are not UTF-8 are lost. Of several files in one batch, those beside
one whose path holds a character of patterns are read once more for each such path (Spark 4.3,
`DataSource.checkAndGlobPathIfNecessary`).
"""

from __future__ import annotations

import codecs
import csv
import glob
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from weft.model import Deployment, Source
from weft.spec.paths import absolute, pattern_in, unbraced
from weft.spec.problems import Problems, brief

FILES_MAX, LISTED_MAX, BYTES_MAX = 20, 1000, 1 << 16
SAID = ("encoding", "charset")
_PACKED = (".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy", ".deflate")


def check_readable(deployment: Deployment, problems: Problems) -> None:
    """Warns of what Spark would pass over, read twice, or take for something else."""
    for index, source in enumerate(deployment.sources):
        if source.path is None or not source.facts.has_path or "\0" in source.path:
            continue
        files = list(islice(_files(absolute(source.path, deployment.folder)), LISTED_MAX))
        if not files and os.path.isdir(absolute(source.path, deployment.folder)):
            problems.warn(
                f"sources[{index}].path", f"`{brief(source.path)}` holds no files yet: nothing is read until some come"
            )
        _check_passed_over(source, f"sources[{index}]", deployment.folder, problems)
        _check_names(source, files, f"sources[{index}].path", deployment.folder, problems)
        if _is_text(source):
            _check_header(source, files[:FILES_MAX], f"sources[{index}].path", deployment.folder, problems)
        if _is_text(source) and not any(key.lower() in SAID for key in source.options):
            _check_encoding(files[:FILES_MAX], f"sources[{index}].path", deployment.folder, problems)


def _check_passed_over(source: Source, field: str, folder: str, problems: Problems) -> None:
    """Warns of a folder of which Spark takes no notice: in folders within it, or under names that are hidden to it."""
    path = absolute(source.path or "", folder)
    if not os.path.isdir(path) or any(key.lower() == "recursivefilelookup" for key in source.options):
        return
    ending = f".{source.format}" if source.facts.seen_by_name else os.path.splitext(path.rstrip("/"))[1]
    try:
        with os.scandir(path) as listed:
            entries = sorted(islice(listed, LISTED_MAX), key=lambda one: one.name)
        inner = [one for one in entries if one.is_dir() and "=" not in one.name and not one.name.startswith((".", "_"))]
        held = next((one.name for one in inner if any(Path(one.path).glob(f"*{ending}"))), None)
    except OSError:
        return
    hidden = next((one.name for one in entries if one.name.startswith("_") and one.name.endswith(ending)), None)
    if held is not None:
        says = f"files in `{brief(held)}` within it are not read; `options: {{recursiveFileLookup: true}}` reads them"
        problems.warn(f"{field}.path", says)
    if hidden is not None:
        problems.warn(f"{field}.path", f"`{brief(hidden)}` is not read: Spark passes over names that begin with `_`")


def _check_names(source: Source, files: list[str], field: str, folder: str, problems: Problems) -> None:
    if not source.facts.seen_by_name:
        return
    unseen = next((file for file in files if not _is_utf8(file)), None)
    if unseen is not None:
        name = os.path.relpath(unseen, folder or ".").encode("utf-8", "backslashreplace").decode()
        problems.warn(field, f"{brief(name)}: its name is not UTF-8, and Java does not find such a file; rename it")
    if len(files) < 2:
        return
    odd = next((file for file in files if pattern_in(os.path.basename(file))), None)
    if odd is not None:
        name, held = brief(os.path.relpath(odd, folder or ".")), pattern_in(os.path.basename(odd))
        problems.warn(field, f"{name}: `{held}` in a name makes Spark read files beside it twice; rename it")


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_encoding(files: list[str], field: str, folder: str, problems: Problems) -> None:
    for file in files:
        found = None if file.endswith(_PACKED) else _not_utf8(file)
        if found is not None:
            line, byte = found
            problems.warn(
                field,
                f"{brief(os.path.relpath(file, folder or '.'))}, line {line}: byte 0x{byte:02x} is not UTF-8, and such "
                "characters are lost; say how the files are written, as `options: {encoding: ISO-8859-1}`",
            )
            return


def _check_header(source: Source, files: list[str], field: str, folder: str, problems: Problems) -> None:
    """Warns of a header whose columns stand in another order than the schema's: Spark goes by their places."""
    options = {key.lower(): value for key, value in source.options.items()}
    comma = options.get("sep") or options.get("delimiter") or ","
    if str(options.get("header", "")).lower() != "true" or len(comma) != 1:
        return
    columns = [column.name.lower() for column in source.schema]
    for file in files:
        names = [] if file.endswith(_PACKED) else _header(file, comma)
        odd = next((name for at, name in enumerate(names) if name in columns and columns.index(name) != at), None)
        if odd is not None:
            places = f"column {names.index(odd) + 1} of the file and {columns.index(odd) + 1} of the schema"
            name = brief(os.path.relpath(file, folder or "."))
            problems.warn(field, f"{name}: `{odd}` is {places}; Spark goes by places, not by names: use the same order")
            return


def _header(file: str, comma: str) -> list[str]:
    try:
        with open(file, encoding="utf-8-sig", errors="replace", newline="") as handle:
            line = handle.readline(BYTES_MAX)
    except OSError:
        return []
    return [name.strip().lower() for name in next(csv.reader([line], delimiter=comma), [])]


def _is_text(source: Source) -> bool:
    return source.format == "csv" or (source.facts.recorded and (source.path or "").rstrip("/").endswith(".csv"))


def _files(pattern: str) -> Iterator[str]:
    """The files that a path, a folder or a glob stands for, as Spark lists them."""
    try:
        names = [pattern] if os.path.lexists(pattern) else [hit for one in unbraced(pattern) for hit in glob.iglob(one)]
        for name in names:
            for path in _within(name) if os.path.isdir(name) else [name]:
                if os.path.isfile(path) and not os.path.basename(path).startswith((".", "_")):
                    yield path
    except (OSError, ValueError, re.error):
        return  # what cannot be read is told by others


def _within(folder: str) -> list[str]:
    with os.scandir(folder) as listed:
        return sorted(entry.path for entry in islice(listed, LISTED_MAX))


def _not_utf8(file: str) -> tuple[int, int] | None:
    """The line and the byte at which the beginning of a file is no UTF-8, None where all of it is."""
    try:
        with open(file, "rb") as handle:
            content = handle.read(BYTES_MAX)
    except OSError:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)  # a character may be cut at the end
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1, content[error.start]
    return None
