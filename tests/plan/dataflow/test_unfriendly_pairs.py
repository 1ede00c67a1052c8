"""Pairs of queries as somebody writes them who wants sharing to fail: other words for the same, and almost the same.

They stand in `pairs.txt`. What both only pick or compute of the same records is `other`: one may be read through the
other, and it is not the same.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.plan.plan_builders import deployment, op, query
from weft.model import Column, Control, Share, Source, dataflow
from weft.plan.dataflow.meanings import meanings
from weft.plan.dataflow.sharing import with_sharing

READ = {
    "s": "ts TIMESTAMP, k STRING, n INT, l BIGINT, v DOUBLE, b BOOLEAN, d DATE, c DECIMAL(10,2), "
    "p STRUCT<a: INT; x: STRING>, a ARRAY<INT>",
    "o": "ts TIMESTAMP, k STRING, price DOUBLE",
}


def pairs() -> list[tuple[str, str, str]]:
    """Of which kind, and both statements."""
    found, kind = [], ""
    for block in (Path(__file__).parent / "pairs.txt").read_text().strip().split("\n\n"):
        if block.startswith("# "):
            kind = block[2:]
        else:
            first, second = block.splitlines()
            found.append((kind, first, second))
    return found


def columns(text: str) -> tuple[Column, ...]:
    held = (one.split(" ", 1) for one in re.split(r", (?![^(]*\))", text))
    return tuple(Column(name, type_.replace(";", ",")) for name, type_ in held)


SOURCES = [Source(name, "x", "rate", columns(text), event_time="ts") for name, text in READ.items()]


def found(first: str, second: str) -> str:
    """What is found of two queries."""

    def one(name: str, sql: str) -> object:
        reads = [source for source in READ if re.search(rf"(FROM|JOIN|,)\s+\(?`?{source}\b", sql, re.IGNORECASE)]
        return query(op("made", *reads, sql=sql), name=name)

    control = Control(share=Share(contain=True))
    given = deployment(["x"], SOURCES, one("q", first), one("r", second), control=control)  # type: ignore[arg-type]
    if meanings(given)["q.made"].key == meanings(given)["r.made"].key:
        return "same"
    return "contained" if dataflow(with_sharing(given)).node("r.made").inputs == ("q.made",) else "different"


@pytest.mark.parametrize("kind", ["same", "contained", "different", "other"])
def test_pairs_are_told_apart_and_what_is_equal_is_found(kind: str) -> None:
    of_kind = [(first, second) for said, first, second in pairs() if said == kind]
    assert len(of_kind) >= 5
    for first, second in of_kind:
        assert found(first, second) == ("contained" if kind == "other" else kind), (first, second)
