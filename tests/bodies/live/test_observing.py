"""What is observed live, from counts that grow: rates of a period, complete or not, and kept over restarts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from weft.bodies.live import observing
from weft.bodies.live.last_run import FILE, last_observed
from weft.bodies.live.meter import Meter
from weft.bodies.live.observing import Observer
from weft.bodies.live.rates import SourceRates, kept_rates
from weft.bodies.live.state import State
from weft.model import (
    Deployment,
    Observed,
    ObservedSource,
    Operator,
    Promise,
    Query,
    Sink,
    Site,
    Source,
)
from weft.protocol.reporting import Committed


def world() -> Deployment:
    query = Query("q", (Operator("o", ("s",), sql="SELECT 1"),), (Sink("o", "console"),), Promise(latency_ms=50))
    return Deployment((Site("a", 2.0), Site("b")), (Source("s", "a", "rate", ()),), (query,))


class Counted:
    """A run's progress, as far as it has come."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.used = 0.0

    def operators(self) -> dict[str, dict[str, Any]]:
        return self.found

    def waiting(self) -> dict[str, int]:
        return {"q.o": 7}

    def state_kb(self) -> dict[str, float]:
        return {"q.o": 3.5}

    def used_s(self, site: str) -> float:
        return self.used if site == "a" else 0.0

    def saw(self, into: int, out: int, used: float) -> None:
        self.found = {"q.o": {"records_in": into, "records_out": out, "selectivity": out / into, "cost_ms": 0.25}}
        self.used = used


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [100.0]
    monkeypatch.setattr(observing.time, "monotonic", lambda: moment[0])
    return moment


def committed(meter: Meter, rows: int, total: int, low_ms: float, high_ms: float) -> None:
    births = (1_000.0 - high_ms, 1_000.0 - low_ms)
    meter.committed(Committed("f", "q", True, 0, rows, total, 1_000.0, births))


def test_the_rate_of_a_source_is_of_what_comes_also_where_a_long_batch_has_not_taken_it(clock: list[float]) -> None:
    meter, counted = Meter(world()), Counted()
    observer = Observer(world(), meter)
    rates = []
    for taken, waiting in ((1_000, 0), (1_000, 500), (1_000, 1_000), (2_000, 500), (1_500, 500), (2_500, 1_000)):
        meter.timed["f", "s"], meter.at_source["f", "s"] = taken, waiting
        counted.saw(taken, taken, 1.0)
        rates.append(observer.observe(0.0, counted, ()).sources["s"].rate_per_s)
        clock[0] += 5.0
    assert rates[1:] == [100.0, 100.0, 100.0, 0.0, 200.0], "what was looked at amid a batch is made good"


def test_the_rate_of_a_source_goes_by_when_its_site_looked_and_is_missing_where_nothing_new_was_told(
    clock: list[float],
) -> None:
    meter, counted = Meter(world()), Counted()
    observer = Observer(world(), meter)
    found = []
    for looked_s, waiting in ((10, 0), (14, 400), (14, 400), (24, 1_400), (25, 1_500)):
        meter.at_source["f", "s"], meter.looked_ms["s"] = waiting, 1000.0 * looked_s
        counted.saw(1_000, 1_000, 1.0)
        found.append(observer.observe(0.0, counted, ()))
        clock[0] += 5.0
    assert [one.sources["s"].rate_per_s for one in found] == [None, 100.0, None, 100.0, 100.0]
    assert [one.complete for one in found] == [False, True, False, True, True]
    assert observer.observe(0.0, counted, {"a"}).sources["s"].rate_per_s is not None, "of a lost site all is told"


def test_rates_are_of_the_period_and_all_else_of_the_run(clock: list[float]) -> None:
    meter, counted = Meter(world()), Counted()
    observer = Observer(world(), meter)
    meter.timed["f", "s"] = 1_000
    counted.saw(1_000, 500, 9.0)
    committed(meter, 500, 500, 10.0, 20.0)
    first = observer.observe(0.0, counted, ())
    assert not first.complete
    assert first.missing[0] == "rate of source s"
    clock[0] += 10.0
    meter.timed["f", "s"] = 3_000
    counted.saw(2_500, 1_000, 13.0)
    committed(meter, 250, 750, 40.0, 60.0)
    committed(meter, 250, 1_000, 60.0, 80.0)
    second = observer.observe(10.0, counted, ())
    assert second.complete
    assert (second.at_s, second.period_s, second.sources["s"].rate_per_s) == (10.0, 10.0, 200.0)
    found = second.operators["q.o"]
    assert (found.in_per_s, found.out_per_s, found.selectivity, found.cost_ms) == (150.0, 50.0, 0.4, 0.25)
    assert (found.backlog, found.state_kb) == (7, 3.5)
    assert (second.sites["a"].utilisation, second.sites["b"].utilisation) == (0.2, 0.0)
    query = second.queries["q"]
    assert (query.records_in, query.records_out, query.promise_kept) == (2_000, 500, False)
    assert query.latency_ms is not None
    assert query.latency_ms.p50 == pytest.approx(60.0, abs=0.2), "of this period alone"


def test_a_lost_site_is_down_and_a_period_of_nothing_is_complete(clock: list[float]) -> None:
    meter, counted = Meter(world()), Counted()
    observer = Observer(world(), meter)
    counted.saw(10, 5, 1.0)
    observer.observe(0.0, counted, ())
    clock[0] += 5.0
    found = observer.observe(5.0, counted, {"b"})
    assert found.complete
    assert (found.sites["a"].up, found.sites["b"].up) == (True, False)
    assert found.operators["q.o"].in_per_s == 0.0
    assert found.queries["q"].latency_ms is None


def test_what_has_not_run_yet_is_missing(clock: list[float]) -> None:
    observer = Observer(world(), Meter(world()))
    observer.observe(0.0, Counted(), ())
    clock[0] += 5.0
    found = observer.observe(5.0, Counted(), ())
    assert (found.complete, found.missing) == (False, ("records of operator q.o",))
    clock[0] += 0.1
    hasty = observer.observe(5.1, Counted(), ())
    assert "rate of source s" in hasty.missing, "a tenth of a second tells no rate"


def seen(rate: float | None) -> Observed:
    return Observed(5.0, 5.0, True, (), {"s": ObservedSource(rate), "t": ObservedSource()})


def test_rates_of_sources_outlive_a_run_and_damage_begins_them_anew(tmp_path: Path) -> None:
    state = State(tmp_path)
    first = SourceRates(state)
    first.take_up()
    first.take(seen(10.0))
    first.take(seen(None))
    first.keep(finally_=True)
    second = SourceRates(State(tmp_path))
    second.take_up()
    second.take(seen(20.0))
    second.keep()
    second.take(seen(30.0))
    assert [span.rates_per_s for span in kept_rates(state)] == [{"s": 10.0}, {"s": 20.0}], "the third within a minute"
    second.keep(finally_=True)
    kept = kept_rates(state)
    assert [span.rates_per_s["s"] for span in kept] == [10.0, 20.0, 30.0]
    assert abs(kept[-1].end_s - time.time()) < 60
    assert kept[-1].end_s - kept[-1].start_s == pytest.approx(5.0)
    for damage in (b"", b"nonsense", b'{"a": 1}'):
        (tmp_path / "rates.json").write_bytes(damage)
        assert kept_rates(State(tmp_path)) == ()


def test_the_last_whole_observation_is_found_among_the_lines(tmp_path: Path) -> None:
    whole, part = seen(10.0), Observed(9.0, 5.0, False, ("all",))
    lines = [{"observed": json.loads(one.to_json()), "operators": {}} for one in (seen(5.0), whole, part)]
    text = "\n".join(json.dumps(line) for line in lines) + '\n{"operators": {}}\n{"observed": {"at_s'
    assert last_observed(tmp_path) is None
    (tmp_path / FILE).write_text(text)
    assert last_observed(tmp_path) == whole
