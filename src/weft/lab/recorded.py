"""What is in a recorded stream? The rows of a CSV file in their order of arrival, and the event times of a column."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from weft.protocol.ordering import Left, Ordering
from weft.protocol.ordering.fields import Bools, Floats, Ints, Times

NOTHING = frozenset({"", "-", "null", "none", "nan", "na", "n/a", "nat", "(empty)"})
WHOLE = re.compile(r"[+-]?\d+")
DECIMAL = re.compile(r"[+-]?\d*\.?\d+|[+-]?\d+\.")
WHOLE_MAX = 2**62
DECIMALS_MAX = 12


class BadRecording(ValueError):
    """A file that cannot be read as a recorded stream; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Event times as numbers, which of them are known, and how many of those numbers make one of the column's unit."""

    times: Times
    known: Bools
    scale: float
    dates: bool = False

    @property
    def real(self) -> bool:
        """Whether the numbers are real ones, not whole ticks."""
        return self.times.dtype == np.float64


@dataclass(frozen=True, slots=True)
class Recording:
    """A CSV file: its columns, its rows in order of arrival, and the line each starts on."""

    columns: list[str]
    rows: list[list[str]]
    lines: list[int]

    def moments(self, column: str) -> Moments:
        """The event times that a column holds: whole numbers, decimals, or dates with a time of day."""
        if column not in self.columns:
            raise BadRecording(f"there is no column `{column}`; there are: {', '.join(self.columns)}")
        at = self.columns.index(column)
        texts = [row[at].strip() for row in self.rows]
        known = np.array([text.lower() not in NOTHING for text in texts], np.bool_)
        given = [text for text, is_known in zip(texts, known, strict=True) if is_known]
        if not given:
            return Moments(np.zeros(len(texts), np.int64), known, 1.0)
        for parse in (_decimals, _reals, _dates):
            parsed = parse(given)
            if parsed is not None:
                values, scale = parsed
                times = np.zeros(len(texts), values.dtype)
                times[known] = values
                return Moments(times, known, scale, parse is _dates)
        places = np.flatnonzero(known).tolist()
        odd = next((n for n in places if not _is_like(given[0], texts[n])), places[0])
        says = "is no time; a number is one, or a date as 2024-01-31 23:59:59, and all must be of one kind"
        raise BadRecording(f"line {self.lines[odd]}: `{texts[odd]}` in column `{column}` {says}")


def read(path: Path) -> Recording:
    """Read a CSV file with a heading; BadRecording says what is wrong with it."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            columns = next(reader, None)
            if not columns:
                raise BadRecording("is empty; its first line must name the columns")
            rows, lines = [], []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(columns):
                    says = f"line {reader.line_num}: has {len(row)} fields where the heading has {len(columns)}"
                    raise BadRecording(says)
                rows.append(row)
                lines.append(reader.line_num)
    except UnicodeDecodeError as error:
        raise BadRecording(f"is not text in UTF-8 ({error.reason} at byte {error.start})") from error
    except csv.Error as error:
        raise BadRecording(f"is not CSV: {error}") from error
    except OSError as error:
        raise BadRecording(error.strerror or str(error)) from error
    return Recording(columns, rows, lines)


def _decimals(texts: list[str]) -> tuple[Times, float] | None:
    """Decimals as whole ticks of their last digit, so that no difference of two is rounded."""
    if not all(DECIMAL.fullmatch(text) for text in texts):
        return None
    places = max((len(text) - text.index(".") - 1 if "." in text else 0) for text in texts)
    if places > DECIMALS_MAX:
        return None
    ticks = []
    for text in texts:
        whole, _, rest = text.partition(".")
        ticks.append(int((whole if whole not in ("", "+", "-") else whole + "0") + rest.ljust(places, "0")))
    if max(map(abs, ticks)) >= WHOLE_MAX:
        return None
    return np.array(ticks, np.int64), 10.0**places


def _reals(texts: list[str]) -> tuple[Times, float] | None:
    try:
        return np.array([float(text) for text in texts]), 1.0
    except ValueError:
        return None


def _dates(texts: list[str]) -> tuple[Times, float] | None:
    """Dates as microseconds; one without a zone is in UTC."""
    ticks = []
    for text in texts:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        past = moment - datetime(1970, 1, 1, tzinfo=UTC)
        ticks.append((past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds)
    return np.array(ticks, np.int64), 1e6


def _is_like(first: str, text: str) -> bool:
    """Whether two texts are of one kind of time."""
    return any(parse([first]) is not None and parse([text]) is not None for parse in (_decimals, _reals, _dates))


@dataclass(frozen=True, slots=True)
class Ordered:
    """What ordering made of a stream: who left when, and the delays and holds by record of arrival."""

    numbers: Ints
    late: Bools
    revision: Bools
    wait: Floats
    delays: Floats
    holds: Floats
    hold_final: float

    def waits(self) -> Floats:
        """What the records that are not flagged waited."""
        return self.wait[~self.late & ~self.revision]


def put_in_order(unit: Ordering, moments: Moments) -> Ordered:
    """All records of a stream through an ordering unit, one at a time as live, to the end."""
    parts: list[Left] = [unit.take(moments.times, moments.known), unit.end()]
    return Ordered(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.late for part in parts]),
        np.concatenate([part.revision for part in parts]),
        np.concatenate([part.wait for part in parts]),
        parts[0].delays,
        parts[0].holds,
        unit.hold,
    )


def late_in(moments: Moments) -> int:
    """Records that are out of order as they arrive, those without a time included."""
    times = moments.times[moments.known]
    behind = int((times < np.maximum.accumulate(times)).sum()) if len(times) else 0
    return behind + int((~moments.known).sum())
