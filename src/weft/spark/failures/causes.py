"""Why did it fail? One sentence that a user can act on, and whether starting again would only repeat it.

Spark and Python tell a failure in a hundred lines, of which one matters. Every rule below knows one kind of trouble by
its words, wherever in the chain of causes they stand; the first that answers is right. The whole text goes to a log.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weft.model import Source
from weft.spark.failures.malformed import file_in, malformed, source_of
from weft.spark.failures.statefiles import broken_file
from weft.spark.failures.tracebacks import Link, is_inside, links, local_path, marked_sql, plain, raised, shown, whole

LOG = "errors.log"
LOG_BYTES_MAX = 2_000_000
ROOM_BYTES = 16 * 2**20
JAVA_GONE = (
    "Spark's Java process has gone (killed, or out of memory); nothing committed is lost, "
    "the same command goes on from there"
)
NO_JAVA = "Spark could not start; it needs Java 17 or later: set JAVA_HOME, or put `java` on the PATH"
GOES_ON = "and the same command goes on"

_OURS = re.compile(r"\bweft\.[\w.]+\.(?:Damaged|BadOperator|CannotRun): (.*)")
_FULL = re.compile(r"No space left on device|Disk quota exceeded|There is not enough space on the disk")
_DENIED = re.compile(
    r"Permission denied|Read-only file system|Operation not permitted|AccessDeniedException|AccessControlException"
    r"|Mkdirs failed to create"
)
_STATE = re.compile(
    r"CANNOT_LOAD_STATE_STORE|MALFORMED_LOG_FILE|Failed to read log file|Stream is corrupted|ChecksumException"
    r"|CHECKSUM_VERIFICATION_FAILED|STREAM_FAILED.*EOFException", re.DOTALL,
)  # fmt: skip
_NO_PARQUET = re.compile(r"is not a Parquet file|[Mm]agic bytes not found|CANNOT_READ_FILE_FOOTER")
_CUT_OFF = re.compile(r"EOFException: Unexpected end of input stream|unexpected end of (?:file|stream)")
_READING = re.compile(r"while reading file \S+\. +(?!SQLSTATE)(.*)")
_NO_JAVA = re.compile(r"JAVA_GATEWAY_EXITED|No such file or directory: '[^']*(?:java|spark-submit|spark-class)'")
_GONE = re.compile(r"Answer from Java side is empty|Py4JNetworkError|Error while (?:sending|receiving)")
_MEMORY = re.compile(r"OutOfMemoryError: ([^\n]*)")
_CHECKPOINT = re.compile(r"checkpointLocation=([^,\]\s]+)")
_OF_STATE = re.compile(r"file:(/\S+?/checkpoint-\d+/\S+?)(?=[\s,]|\.\s|\.$|: )")
_PATHS = (
    re.compile(r"(?:rows to|create|writing|file) (file:/[^\s,\]]+?)(?=\.?[\s,\]]|\.?$)", re.MULTILINE),
    re.compile(r"(/[^\s:'\"()]+) \((?:Permission denied|Read-only file system|No space left on device)\)"),
    re.compile(r"(?:Permission denied|Read-only file system|No space left on device|not permitted): '([^']+)'"),
    re.compile(r"(?:AccessDeniedException): (/\S+)"),
    re.compile(r"checkpointLocation=([^,\]\s]+)"),
)
# Data that an expression cannot take, statements that Spark refuses, things that it does not support.
_USERS_STATES = ("21", "22", "42", "0A")
_SQLSTATE = re.compile(r"SQLSTATE: (\w{2})\w{3}")
_PERMANENT = re.compile(
    r"FAILFAST|CANNOT_PARSE|CAST_INVALID_INPUT|ANALYSIS|UNRESOLVED|DATA_TYPE_MISMATCH"
    r"|^(?:ModuleNotFound|Import|Syntax|Indentation)Error\b", re.MULTILINE,
)  # fmt: skip
_PASSING = re.compile(r"Connection|Timeout|TimedOut|BrokenPipe|Temporar|Unavailable|URLError|Interrupted")
_CARRIERS = re.compile(
    r"An error occurred while calling o\d|Exception thrown in awaitResult|Job aborted|Query .*terminated with exception"
    r"|An exception was raised by the Python Proxy|Task failed while|Encountered error while reading|Traceback \(most"
    r"|An exception was thrown from the Python worker|An error occurred during loading state"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """What to tell a user, and whether starting again would only repeat it."""

    text: str
    permanent: bool


def cause_of(
    error: BaseException, folder: str = "", sources: Sequence[Source] = (), places: Sequence[str] = ()
) -> Cause:
    """Why something failed; `folder` is where the deployment and its user's code lie, `places` what is written to."""
    return cause_in(whole(error), folder, sources, places)


def cause_in(text: str, folder: str = "", sources: Sequence[Source] = (), places: Sequence[str] = ()) -> Cause:
    """As `cause_of`, from the text that `whole` gives."""
    ours = _OURS.findall(text)
    if ours:
        return Cause(ours[-1].strip(), True)
    if _FULL.search(text):
        return Cause(_full(text, [*places, *([folder] if folder else [])]), True)
    record = malformed(text, folder, sources)
    if record:
        return Cause(record, True)
    by_user = _of_the_user(text, folder)
    if by_user:
        return by_user
    if _NO_JAVA.search(text):
        return Cause(NO_JAVA, True)
    if _GONE.search(text):
        return Cause(JAVA_GONE, False)
    memory = _MEMORY.search(text)
    if memory:
        return Cause(f"Spark ran out of memory ({plain(memory[1])}); WEFT_DRIVER_MEMORY=4g gives it more", False)
    if _DENIED.search(text):
        return Cause(_denied(text, folder), True)
    unreadable = _unreadable(text, folder, sources)
    if unreadable:
        return unreadable
    return _anything(text)


def keep(logs: Path, who: str, cause: Cause, error: BaseException) -> None:
    """Write the whole story of a failure to a log, its sentence last; a disk that takes nothing keeps nothing."""
    with suppress(OSError):
        logs.mkdir(parents=True, exist_ok=True)
        path = logs / LOG
        if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
            os.replace(path, path.with_suffix(".log.1"))
        with open(path, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"{whole(error).rstrip()}\n{time.strftime('%H:%M:%S')} {who}: {cause.text}\n")


def _full(text: str, places: Sequence[str]) -> str:
    """Of all places that are told, or that are written to, the one whose disk has the least room."""
    paths = [os.path.abspath(one) for one in (*_paths(text), *places, tempfile.gettempdir())]
    path = min(paths, key=lambda one: _free_bytes(_existing(one)))
    disk = _existing(path)
    while not os.path.ismount(disk):
        disk = os.path.dirname(disk)
    word = "Disk quota exceeded" if "quota" in text else "No space left on device"
    if _free_bytes(disk) > ROOM_BYTES:  # a quota, or somebody has made room since
        return f"{word} for {paths[0]}; free some space, {GOES_ON}"
    return f"{word}: the disk at {disk} is full, and {path} is on it; free some space, {GOES_ON}"


def _denied(text: str, folder: str) -> str:
    path = next(iter(_paths(text)), folder) or "a file"
    there = _existing(path)
    read_only = "Read-only file system" in text or (os.statvfs(there).f_flag & os.ST_RDONLY)
    if read_only:
        return f"{path} cannot be written: its disk is read-only; make it writable, {GOES_ON}"
    if "Mkdirs failed" in text and _free_bytes(there) == 0:
        return _full(text, [folder] if folder else [])
    if not os.path.isdir(there) and there != path:
        return f"{path} cannot be made: {there} is a file; take it away, {GOES_ON}"
    verb = "opened" if os.path.isfile(path) else "written"
    return f"{path} cannot be {verb}: permission denied; give this user the right to, {GOES_ON}"


def _paths(text: str) -> list[str]:
    found = [match[1] for pattern in _PATHS for match in pattern.finditer(text)]
    return list(dict.fromkeys(local_path(path).partition("/_temporary")[0] for path in found))


def _existing(path: str) -> str:
    there = os.path.abspath(path)
    while not os.path.exists(there):
        there = os.path.dirname(there)
    return there


def _free_bytes(path: str) -> int:
    room = os.statvfs(path)
    return room.f_bavail * room.f_frsize


def _of_the_user(text: str, folder: str) -> Cause | None:
    """What a line of the user's own Python has raised, or brought Spark to refuse."""
    found = raised(text)
    if found is None:
        return None
    frames = [frame for frame in found.frames if frame.is_of_a_user(folder)]
    inside = [frame for frame in frames if is_inside(frame.file, folder)]
    if not frames or found.kind.startswith("py4j."):
        return None
    message = plain(found.message)
    said = f"{found.name}: {message}" if message else found.name
    return Cause(f"{said} ({(inside or frames)[-1].shown(folder)})", not _PASSING.search(found.name))


def _unreadable(text: str, folder: str, sources: Sequence[Source]) -> Cause | None:
    """A file of the user's, or of the state, that cannot be read as what it should be."""
    file = file_in(text)
    source = source_of(file, folder, sources) if file else None
    if file is not None and source is not None:
        name, of = shown(file, folder), f"of source {source.name}"
        if "FILE_NOT_EXIST" in text:
            return Cause(f"{name} {of} was there when it was listed, and is gone; put it back, {GOES_ON}", False)
        if _NO_PARQUET.search(text):
            says = "is no parquet file, or not all of one; put a whole one in its place"
            return Cause(f"{name} {of} {says}, {GOES_ON}", True)
        if _CUT_OFF.search(text):
            return Cause(f"{name} {of} is cut off: it ends in the midst; mend it, {GOES_ON}", True)
        why, anything = _READING.search(text), _anything(text)
        said = (plain(why[1]) if why else "") or anything.text
        return Cause(f"{name} {of}: {said}", anything.permanent)
    is_state = bool(_STATE.search(text))
    if not (is_state or _NO_PARQUET.search(text)) or "InterruptedException" in text:
        return None
    named = _OF_STATE.search(text)
    checkpoint = _CHECKPOINT.search(text)
    path = local_path(named[1]) if named else file
    if path is None and checkpoint and is_state:
        path = broken_file(checkpoint[1]) or checkpoint[1]
    if path is None:
        return Cause(f"what the state holds cannot be read ({_anything(text).text}); `--fresh` starts over", True)
    what = "is gone" if not os.path.exists(path) else "holds a damaged file" if os.path.isdir(path) else "is damaged"
    return Cause(f"{path} {what}; put it back from a copy, or `--fresh` starts over", True)


def _anything(text: str) -> Cause:
    """The innermost cause that says anything, in a line."""
    by_python = raised(text)
    chain: list[Link] = [*([by_python] if by_python else []), *links(text)]
    if not chain:
        kind, _, message = text.strip().partition("\n")[0].partition(": ")
        chain = [Link(kind, message)]
    said = [link for link in chain if link.message and not _CARRIERS.search(link.message)]
    words = said[-1] if said else next((link for link in reversed(chain) if link.name), chain[-1])
    message = plain(words.message)
    permanent = bool(_PERMANENT.search(text)) or any(state in _USERS_STATES for state in _SQLSTATE.findall(text))
    if not message or _CARRIERS.search(message):
        return Cause(words.name if words.name.isidentifier() else "Spark failed and gave no reason", permanent)
    sql = marked_sql(text)
    place = f" (in `{sql}`)" if sql else ""
    by_spark = words.message.startswith("[") or words.kind.startswith("org.apache.spark")
    return Cause(f"{message if by_spark else f'{words.name}: {message}'}{place}", permanent)
