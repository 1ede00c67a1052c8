"""Which record could not be read? The user's file, its line, the column, and how to go on without it."""

from __future__ import annotations

import bz2
import csv
import glob
import gzip
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weft.model import Source
from weft.spark.failures.tracebacks import local_path, shown

SHOWN_MAX = 80
INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "INTEGER": 32, "BIGINT": 64}
SEARCHED_MAX = 256 * 2**20  # characters; a record beyond them is told without its line

_FILE = re.compile(r"while reading file (\S+)\.(?=\s|$)")
_RECORD = re.compile(r"record parsing: (.*?)\.\s*\nParse Mode", re.DOTALL)
_FIELD = re.compile(r"Cannot parse the value '(?P<value>.*?)' of the field `(?P<column>.*?)`")
_SHORT = re.compile(r"\[MALFORMED_CSV_RECORD\] Malformed CSV record: (.*?) SQLSTATE", re.DOTALL)
_VALUES = (
    re.compile(r'For input string: "(.*?)"'),
    re.compile(r"Text '(.*?)' could not be parsed"),
    re.compile(r"The value '(.*?)' of the type"),
)


@dataclass(frozen=True, slots=True)
class _Found:
    """A line of a file that is to blame."""

    number: int
    text: str
    what: str = ""


def file_in(text: str) -> str | None:
    """The file that Spark was reading when it failed."""
    found = _FILE.search(text)
    return local_path(found[1]) if found else None


def source_of(file: str, folder: str, sources: Sequence[Source]) -> Source | None:
    """The source that a file belongs to."""
    for source in sources:
        if source.path is not None:
            path = os.path.join(os.path.abspath(folder), os.path.expanduser(source.path))
            if file == path or file.startswith(os.path.join(path, "")) or file in glob.glob(path):
                return source
    return None


def malformed(text: str, folder: str, sources: Sequence[Source]) -> str | None:
    """The sentence for a record that does not fit its schema, None where the text tells of none."""
    record = _RECORD.search(text)
    file = file_in(text)
    if record is None or "MALFORMED_RECORD_IN_PARSING" not in text or file is None:
        return None
    source = source_of(file, folder, sources)
    found = _find(text, record[1], file, source)
    where = f"{shown(file, folder)}, line {found.number}" if found else shown(file, folder)
    what = (found.what if found else "") or _what(text, source) or "this record does not fit the schema"
    name = source.name if source else "of this file"
    return (
        f"{where}: {what}: {_cut(found.text if found else record[1])}; "
        f"`bad_records: skip` on source {name} leaves such records out and counts them"
    )


def _what(text: str, source: Source | None) -> str:
    field = _FIELD.search(text)
    if field:
        return _no_such(field["value"], field["column"], source)
    value = _value_in(text)
    return "" if value is None else f"`{_cut(value)}` fits no column of its schema"


def _no_such(value: str, column: str, source: Source | None) -> str:
    types = {one.name: one.type for one in source.schema} if source else {}
    kind = f" is no {types[column]}" if column in types else " does not fit"
    return f"column {column}: `{_cut(value)}`{kind}"


def _value_in(text: str) -> str | None:
    found = [match[1] for pattern in _VALUES for match in pattern.finditer(text)]
    return found[-1] if found else None


def _find(text: str, record: str, file: str, source: Source | None) -> _Found | None:
    try:
        if record.lstrip().startswith("{") or ".json" in os.path.basename(file):
            return _in_json(text, record, file, source)
        return _in_csv(text, record, file, source)
    except (OSError, EOFError, csv.Error):
        return None


def _in_json(text: str, record: str, file: str, source: Source | None) -> _Found | None:
    whole = record if record.lstrip().startswith("{") else None
    for number, line in _lines(file):
        if whole is not None and line.strip() == whole.strip():
            return _Found(number, line, _what(text, source))
        if whole is not None or not line.strip():
            continue
        try:
            fields = json.loads(line)
        except ValueError:
            return _Found(number, line, "this is no JSON object on one line")
        for column, value in fields.items() if isinstance(fields, dict) else ():
            if str(value) == _value_in(text):
                return _Found(number, line, _no_such(str(value), column, source))
    return None if whole is not None else _unlike_schema(file, source)


def _unlike_schema(file: str, source: Source | None) -> _Found | None:
    """The first line of JSON that cannot be a record: where Spark tells only what it could read of it."""
    types = {one.name: (one.type or "").partition("(")[0].upper() for one in source.schema} if source else {}
    for number, line in _lines(file):
        if "\ufffd" in line:
            return _Found(number, line, "this is not UTF-8")
        if not line.strip():
            continue
        held = json.loads(line)
        records = held if isinstance(held, list) else [held]
        if not all(isinstance(record, dict) for record in records):
            return _Found(number, line, "this is no JSON object on one line")
        for column, value in ((one, record[one]) for record in records for one in record if one in types):
            if value is not None and not _fits(value, types[column]):
                return _Found(number, line, _no_such(json.dumps(value), column, source))
    return None


def _fits(value: Any, type_: str) -> bool:
    """False where a value of JSON is surely none of a type."""
    if type_ in INTEGER_BITS:
        limit = 2 ** (INTEGER_BITS[type_] - 1)
        return type(value) is int and -limit <= value < limit
    if type_ in ("DOUBLE", "FLOAT", "DECIMAL"):
        return type(value) in (int, float) or value in ("NaN", "Infinity", "-Infinity")
    if type_ == "BOOLEAN":
        return isinstance(value, bool)
    return True


def _in_csv(text: str, record: str, file: str, source: Source | None) -> _Found | None:
    options = {key.lower(): value for key, value in source.options.items()} if source else {}
    comma = options.get("sep") or options.get("delimiter") or ","
    first = 2 if str(options.get("header", "")).lower() == "true" else 1
    short, value = _SHORT.search(text), _value_in(text)
    # What Spark could read of the record: of several lines with the bad value, the one that has most of it.
    read = [part for part in record.strip("[]").split(",") if part != "null"]
    best: tuple[int, _Found] | None = None
    for number, line in _lines(file):
        if number < first:
            continue
        if short is not None:
            if line == short[1]:
                return _Found(number, line, _fields(line, comma, source))
            continue
        if value is None or value not in line:
            continue
        fields = [field.strip() for field in _split(line, comma)]
        if value.strip() in fields:
            score = sum(part in fields for part in read)
            if best is None or score > best[0]:
                best = score, _Found(number, line, _column(fields, value, source))
            if score == len(read):
                break
    return best[1] if best else None


def _fields(line: str, comma: str, source: Source | None) -> str:
    wanted = f"the schema has {len(source.schema)}" if source else "the schema has others"
    return f"columns here {len(_split(line, comma))}, {wanted}"


def _column(fields: list[str], value: str, source: Source | None) -> str:
    at = fields.index(value.strip())
    columns = source.schema if source else ()
    if columns and fields == [one.name for one in columns]:
        return "these are the names of the columns, no record (`options: {header: true}` says so)"
    return _no_such(value, columns[at].name, source) if at < len(columns) else f"`{_cut(value)}` does not fit"


def _split(line: str, comma: str) -> list[str]:
    return next(csv.reader([line], delimiter=comma), []) if len(comma) == 1 else line.split(comma)


def _lines(file: str) -> Iterator[tuple[int, str]]:
    """The first lines of a file, numbered from 1."""
    packed: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    opening = packed.get(os.path.splitext(file)[1], open)
    searched = 0
    with opening(file, "rt", encoding="utf-8", errors="replace", newline="\n") as handle:
        for number, line in enumerate(handle, 1):
            searched += len(line)
            if searched > SEARCHED_MAX:
                return
            yield number, line.rstrip("\r\n")


def _cut(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= SHOWN_MAX else one_line[: SHOWN_MAX - 3] + "..."
