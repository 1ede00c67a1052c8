"""How did sources flow in the past? Their rates over time, finely for the last while and more coarsely before.

A history holds a bounded number of spans. Where it is full, those of the older half are joined two by two: so the span
of the oldest grows with the age of the history, and its size does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SPANS_MAX = 1_024
NUMBERS_MAX = 20_000
SPANS_MIN = 32


@dataclass(frozen=True, slots=True)
class Span:
    """Mean rates from one moment to another (seconds of the wall clock); `measured_s` leaves out what nobody saw."""

    start_s: float
    end_s: float
    measured_s: float
    rates_per_s: Mapping[str, float] = field(default_factory=dict)


History = tuple[Span, ...]
"""Spans in the order of time."""


def spans_max(sources: int) -> int:
    """How many spans a history of so many sources holds."""
    return max(SPANS_MIN, min(SPANS_MAX, NUMBERS_MAX // max(1, sources)))


def added(history: History, span: Span) -> History:
    """The history with one span more, joined where it is full."""
    whole = (*history, span)
    if len(whole) <= spans_max(len(span.rates_per_s)):
        return whole
    half = len(whole) // 4 * 2
    older = whole[:half]
    pairs = zip(older[::2], older[1::2], strict=True)
    return (*(_joined(one, other) for one, other in pairs), *whole[half:])


def _joined(one: Span, other: Span) -> Span:
    """Both as one span; a source that only one of them knows keeps its rate from there."""
    measured_s = one.measured_s + other.measured_s
    rates = {**one.rates_per_s, **other.rates_per_s}
    for name in one.rates_per_s.keys() & other.rates_per_s.keys():
        records = one.rates_per_s[name] * one.measured_s + other.rates_per_s[name] * other.measured_s
        rates[name] = records / measured_s if measured_s > 0 else other.rates_per_s[name]
    return Span(one.start_s, other.end_s, measured_s, rates)
