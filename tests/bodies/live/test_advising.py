"""Advice of a live run: what should move by what was measured, told and not done."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from weft.bodies.live.advising import Advising
from weft.bodies.live.last_run import last_observed
from weft.bodies.live.meter import Meter
from weft.bodies.live.rates import kept_rates
from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import State
from weft.bodies.live.transport import InProcess
from weft.model import Advise, Control, Deployment, Link, Operator, Placement, Query, Sink, Site, Source
from weft.protocol import parse_story_line

SECONDS_MAX = 20.0


def world() -> Deployment:
    operators = tuple(Operator(name, ("s",), sql="SELECT 1") for name in ("o", "p"))
    query = Query("q", operators, (Sink("o", "console"), Sink("p", "console")))
    control = Control(advise=Advise(period_s=0.6, price=1.0))
    return Deployment(
        (Site("a"), Site("b", 2.0)), (Source("s", "a", "rate", ()),), (query,), (Link("a", "b", 1.0),), control
    )


class Busy:
    """Progress of a run in which one operator takes more than its site has."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def operators(self) -> dict[str, dict[str, Any]]:
        records = round(1_000 * (time.monotonic() - self._began_s))
        found = {"records_in": records, "records_out": records, "selectivity": 1.0}
        return {"q.o": {**found, "cost_ms": 1.5}, "q.p": {**found, "cost_ms": 0.1}}

    def waiting(self) -> dict[str, int]:
        return {}

    def state_kb(self) -> dict[str, float]:
        return {}

    def used_s(self, site: str) -> float:
        return time.monotonic() - self._began_s if site == "a" else 0.0


def until(found: Any, look: Any) -> None:
    """Looks again and again until something is found."""
    ends_s = time.monotonic() + SECONDS_MAX
    while not found():
        assert time.monotonic() < ends_s, "nothing was found in time"
        look()
        time.sleep(0.05)


def test_what_was_measured_leads_to_advice_and_a_change_to_rest() -> None:
    meter, progress, story = Meter(world()), Busy(), []
    placement = Placement({"q.o": "a", "q.p": "a"})
    homes = [placement]
    advising = Advising(world(), meter, lambda: homes[0], InProcess(), story.append)
    assert advising.latest() == {}
    advising.start()

    def look() -> None:
        meter.timed["f", "s"] = progress.operators()["q.o"]["records_in"]
        advising.look(time.monotonic(), progress, ())

    try:
        until(lambda: advising.latest().get("advised"), look)
        (advised,) = advising.latest()["advised"]
        assert advised["moves"] == [{"query": "q", "operator": "o", "from": "a", "to": "b"}]
        assert advised["reason"].endswith("instead of without bound")
        homes[0] = placement.put("q.p", "b")
        until(lambda: advising.latest().get("declined"), look)
        assert "rests" in advising.latest()["declined"][0]["why"]
    finally:
        advising.stop()
    lines = [parse_story_line(line) for line in story]
    assert {line.site for line in lines} == {"controller"}
    assert any(effect.startswith("Advise(") for line in lines for effect in line.effects)
    assert any(line.input.startswith("Noticed(") for line in lines)


FILE = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b, delay_ms: 1}]
sources:
  - {name: made, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT", arrivals: {kind: constant, rate_per_s: 50}}
queries:
  - name: q
    operators:
      - {name: even, from: [made], sql: "SELECT * FROM made WHERE n % 2 = 0", cost_ms: 0.2}
    sink: {from: even, format: parquet, path: out, site: a}
control: {advise: {period_s: 3, price: 0}}
scenario: [{at_s: 1, move: q.even, to: b}]
"""


@pytest.mark.spark
def test_a_run_tells_its_advice_and_moves_nothing_by_it(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(FILE)
    run = Run(weft.spec.load(tmp_path / "weft.yaml"), tmp_path / ".weft", Options(seconds=60))

    def enough(run: Run) -> None:
        declined = run.flowing_s is not None and (run.status().get("advice") or {}).get("declined")
        if declined and last_observed(tmp_path / ".weft") is not None:
            run.stop()

    summary = run.go(enough)
    (declined,) = summary["advice"]["declined"]
    assert declined["moves"] == [{"query": "q", "operator": "even", "from": "b", "to": "a"}]
    assert "rests" in declined["why"], "it was moved a moment ago"
    assert summary["placement"] == {"q": {"even": ["b"]}}
    assert len(summary["moves"]) == 1
    told = json.loads((tmp_path / ".weft" / "status.json").read_text())
    assert told["advice"] == summary["advice"]
    story = (tmp_path / ".weft" / "story.log").read_text().splitlines()
    assert any(" controller Observation(" in line for line in story)
    observed = last_observed(tmp_path / ".weft")
    assert observed is not None
    assert observed.operators["q.even"].selectivity == pytest.approx(0.5, abs=0.05)
    spans = kept_rates(State(tmp_path / ".weft"))
    mean = sum(span.rates_per_s["made"] * span.measured_s for span in spans) / sum(span.measured_s for span in spans)
    assert 20 < mean < 100, "it makes 50, taken up by whole batches"
