"""Is the soccer example what it says: positions that arrive late, and the shots that were shots?"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import ROOT
from weft.bodies.twin import run
from weft.plan import place
from weft.plan.dataflow.ordering import with_ordering
from weft.spec import check

EXAMPLE = ROOT / "examples" / "soccer"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("soccer_generate", EXAMPLE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # its dataclasses look for their module
    spec.loader.exec_module(loaded)
    return loaded


def filled(folder: Path, name: str, seconds: float) -> Path:
    generator().fill(folder / "data", seconds)
    (folder / name).write_text((EXAMPLE / name).read_text())
    return folder / name


def test_a_match_is_the_same_every_time_and_arrives_out_of_order(tmp_path: Path) -> None:
    for name in ("once", "again"):
        generator().fill(tmp_path / name, 10)
    for file in ("ball.csv", "limbs.csv", "truth.json"):
        assert (tmp_path / "once" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    moments = [line.split(",")[0] for line in (tmp_path / "once" / "limbs.csv").read_text().splitlines()[1:]]
    assert moments != sorted(moments)
    assert len(moments) == 10 * 20 * 25


def test_scenes_are_ordered_without_a_watermark(tmp_path: Path) -> None:
    report = check(filled(tmp_path, "deployment.yaml", 6))
    assert report.deployment is not None, report.errors
    assert report.warnings == ()
    placement = place(with_ordering(report.deployment)).as_json()["shots_on_goal"]
    assert (placement["scenes_order"], placement["shots"]) == (["stadium"], ["camera"])


@pytest.mark.long
def test_the_whole_rate_runs_in_the_twin(tmp_path: Path) -> None:
    report = check(filled(tmp_path, "full.yaml", 6))
    assert report.deployment is not None, report.errors
    result = run(report.deployment, seconds=5, seed=1)
    assert result.queries["shots_on_goal"]["records_in"] == pytest.approx(5 * 30_600, rel=0.01)
    assert result.ordering["shots_on_goal.scenes_order"]["records"] > 100_000


@pytest.mark.long
@pytest.mark.spark
def test_the_shots_that_were_shots_are_found_on_spark(tmp_path: Path, spark: Any) -> None:
    from weft.bodies.live.run import Options, Run

    report = check(filled(tmp_path, "deployment.yaml", 30))
    assert report.deployment is not None
    Run(report.deployment, tmp_path / ".weft", Options(until_done=True)).go()
    truth = [hit for hit in json.loads((tmp_path / "data" / "truth.json").read_text()) if hit["shot"]]
    rows = [line.split(",") for file in (tmp_path / "out" / "shots").glob("*.csv") for line in file.read_text().split()]
    found = sorted((row[0][17:21], int(row[1])) for row in rows)
    assert found == sorted((f"{hit['at_s']:04.1f}", hit["player"]) for hit in truth)
