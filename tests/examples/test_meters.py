"""Is the smart meter example what it says: a week of readings, the same every time, up a tree?"""

from __future__ import annotations

import csv
import importlib.util
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

import weft
from tests import ROOT
from weft.plan import place
from weft.spec import check

EXAMPLE = ROOT / "examples" / "meters"


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The generator, without recorded readings."""
    monkeypatch.delenv("WEFT_DATA", raising=False)
    return module(EXAMPLE / "generate.py")


def module(path: Path) -> ModuleType:
    """A script of the example."""
    spec = importlib.util.spec_from_file_location(f"meters_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_readings_are_the_same_every_time_and_split_over_the_gateways(generate: ModuleType, tmp_path: Path) -> None:
    generate.fill(tmp_path / "once")
    generate.fill(tmp_path / "again")
    counts = []
    for gateway in range(1, 5):
        text = (tmp_path / "once" / f"gw-{gateway}.csv").read_text()
        assert text == (tmp_path / "again" / f"gw-{gateway}.csv").read_text()
        counts.append(len(text.splitlines()) - 1 - len(generate.BROKEN))
    assert sum(counts) == 7 * 48 * 50


def test_no_reading_is_later_than_the_queries_wait(generate: ModuleType, tmp_path: Path) -> None:
    generate.fill(tmp_path)
    newest, late = datetime.min, 0
    for row in csv.reader((tmp_path / "gw-1.csv").read_text().splitlines()[1:]):
        try:
            moment = datetime.fromisoformat(row[0])
            float(row[3])
        except (ValueError, IndexError):
            continue
        assert moment > newest - timedelta(hours=2) if newest > datetime.min else True
        late += moment < newest
        newest = max(newest, moment)
    assert late > 0


def test_the_deployment_is_right_and_its_operators_lie_along_the_tree(generate: ModuleType, tmp_path: Path) -> None:
    generate.fill(tmp_path / "data")
    for name in ("deployment.yaml", "rules.py"):
        (tmp_path / name).write_text((EXAMPLE / name).read_text())
    report = check(tmp_path / "deployment.yaml")
    assert report.deployment is not None, report.errors
    placement = place(report.deployment).as_json()
    assert placement["north"] == {
        "meters_1": ["gw-1"], "suspicious_1": ["gw-1"], "meters_2": ["gw-2"], "suspicious_2": ["gw-2"],
        "neighbourhoods": ["district-north"], "district": ["utility"],
    }  # fmt: skip


@pytest.mark.spark
def test_the_demo_tells_of_a_run_what_ran_what_moved_what_was_promised_and_what_came_out(
    spark: object,
    generate: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "meters"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("data", "out", ".*", "__pycache__"))
    monkeypatch.setattr(generate, "HALF_HOURS", 2 * 48)
    generate.fill(folder / "data")
    monkeypatch.syspath_prepend(str(folder))
    demo = module(folder / "demo.py")
    summary = weft.run(folder / "deployment.yaml", until_done=True, fresh=True)
    capsys.readouterr()
    demo.tell(summary)
    told = "".join(capsys.readouterr())
    assert "What ran where" in told
    assert re.search(r"north +[\d,]+ +\d+ +[\d,]+ +[\d.]+ s +[\d.]+ s +p95 within 30 s", told), told
    for query in ("north", "south"):
        assert re.search(rf"{query}: p95 is [\d.]+ times a batch of its slowest fragment, {query}\.", told), told
    assert "suspicious: " in told
    assert str(folder / "out") in told or "out/" in told
