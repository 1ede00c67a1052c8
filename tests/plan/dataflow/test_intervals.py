"""Intervals as Spark writes them."""

from __future__ import annotations

import pytest

from weft.plan.dataflow.intervals import interval_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("10 minutes", 600_000), ("1 hour 30 minutes", 5_400_000), ("INTERVAL 2 SECONDS", 2000), ("1.5 seconds", 1500),
        ("1 week", 604_800_000), ("250 milliseconds", 250), ("0 seconds", 0), ("2000 microseconds", 2),
        (" 1   day ", 86_400_000),
    ],
)  # fmt: skip
def test_an_interval_is_so_many_milliseconds(text: str, ms: int) -> None:
    assert interval_ms(text) == ms


@pytest.mark.parametrize("text", ["", "interval", "10", "minutes", "-5 minutes", "1 month", "1e3 seconds", "5 s"])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no interval"):
        interval_ms(text)
