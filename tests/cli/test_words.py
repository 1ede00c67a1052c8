"""What commands say: examples in help that can be copied, and numbers that mean what stands beside them."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.cli.cli_files import STATE, in_force, weft, written
from tests.cli.test_looking import STATUS, running, told
from weft.cli.app import COMMANDS
from weft.model.wishes import MoveTo


def examples() -> list[list[str]]:
    """Every example in the help of a command, as words."""
    found = []
    for command, _ in COMMANDS:
        text = (command.__doc__ or "").partition("Example:")[2]
        found += [shlex.split(line) for line in text.splitlines() if line.strip().startswith("weft ")]
    return found


@pytest.mark.parametrize("words", examples(), ids=" ".join)
def test_examples_name_options_operators_and_sites_that_are_there(words: list[str]) -> None:
    known = weft(words[1], "--help").stdout
    assert [word for word in words if word.startswith("--") and word not in known] == []
    files = [word for word in words if word.startswith("examples/")]
    if not files:
        return
    # As text: its data are generated, and may not be there.
    deployment = yaml.safe_load((ROOT / files[0]).read_text(encoding="utf-8"))
    operators = {f"{query['name']}.{one['name']}" for query in deployment["queries"] for one in query["operators"]}
    sites = {site["name"] for site in deployment["sites"]}
    for before, word in pairwise(words):
        if before == files[0] and words[1] in ("explain", "move", "profile"):
            assert word in operators
        if before == "--site" or (before in operators and words[1] == "move"):
            assert word in sites


def test_words_have_their_plurals() -> None:
    from weft.cli.output import counted

    assert [counted(n, word) for n, word in ((1, "query"), (2, "query"), (9, "key"))] == [
        "1 query",
        "2 queries",
        "9 keys",
    ]


def test_warnings_that_say_the_same_are_one_and_what_was_measured_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    from weft.cli.output import warn

    assumed = [f"operator q.{name}: selectivity 1.0 assumed, none declared" for name in "abc"]
    taken = [f"operator q.{name}: cost_ms {at} as the last run measured" for at, name in enumerate("de")]
    warn([*assumed, "source s: no arrivals declared", "else"], [*taken, "source t: its rate, as measured"])
    assert capsys.readouterr().err.splitlines() == [
        "warning: operators q.a, q.b, q.c: selectivity 1.0 assumed, none declared",
        "warning: source s: no arrivals declared",
        "warning: else",
        "as the last run measured: q.d: cost_ms 0; q.e: cost_ms 1",
        "source t: its rate, as measured",
    ]


def test_a_plan_says_its_figures_with_their_units(tmp_path: Path) -> None:
    said = weft("plan", written(tmp_path)).stdout
    assert re.search(r"^objective latency, mean latency of all results: [\d.,]+ ms$", said, re.MULTILINE)
    assert re.search(r"^as placement counts it, .*: [\d.,]+ ms$", said, re.MULTILINE)
    assert "potential" not in said


def test_order_says_the_unit_of_its_hold(tmp_path: Path) -> None:
    dates, numbers = tmp_path / "dates.csv", tmp_path / "numbers.csv"
    dates.write_text("at\n2024-01-01 00:00:01\n2024-01-01 00:00:03\n2024-01-01 00:00:02\n")
    numbers.write_text("at\n1\n3\n2\n")
    assert weft("order", dates, "--time", "at").stdout.endswith(" p99; all in seconds\n")
    assert weft("order", numbers, "--time", "at").stdout.endswith(" p99; all in the unit of `at`\n")


def test_names_of_protocols_and_benchmarks_stand_in_the_help() -> None:
    from weft.bodies import explorer
    from weft.cli import bench

    for command, names in (("explore", explorer.NAMES), ("bench", bench.names())):
        said = " ".join(weft(command, "--help").stdout.split())
        assert [name for name in names if name not in said] == []


def with_counts(**counts: int) -> dict[str, Any]:
    return {"queries": {"hourly_use": STATUS["queries"]["hourly_use"] | counts}}


def test_status_shows_bad_and_late_records_where_there_are_any(tmp_path: Path) -> None:
    file = written(tmp_path)
    told(tmp_path)
    assert "left out" not in weft("status", file).stdout
    told(tmp_path, **with_counts(bad_records=1234, dropped=60))
    said = weft("status", file).stdout
    assert "  bad records left out: hourly_use 1,234\n  late records dropped: hourly_use 60\n" in said


def test_run_and_its_live_picture_show_bad_records() -> None:
    from rich.console import Console

    from weft.cli.tables import left_out, screen

    status = {"phase": "running", **with_counts(bad_records=3)}
    assert left_out(status) == ["bad records left out: hourly_use 3"]
    console = Console(width=120)
    with console.capture() as shown:
        console.print(screen(status))
    assert "bad records left out: hourly_use 3" in shown.get()


def test_status_says_why_a_cost_is_not_known(tmp_path: Path) -> None:
    file = written(tmp_path)
    known = {"records_in": 5, "records_out": 5, "selectivity": 1.0, "cost_ms": 0.5}
    told(tmp_path, operators={"hourly_use.valid": known})
    assert "until a few batches" not in weft("status", file).stdout
    told(tmp_path, operators={"hourly_use.valid": {**known, "cost_ms": None}})
    assert "cost ms is - until a few batches of different sizes have told it" in weft("status", file).stdout


@pytest.mark.parametrize(
    ("pause_ms", "said"),
    [
        (None, "hourly_use.valid moved from gw-1 to district; no record has come since\n"),
        (812.4, "hourly_use.valid moved from gw-1 to district, with a pause of 812 ms\n"),
    ],
)
def test_a_move_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause_ms: float | None, said: str
) -> None:
    import json

    from weft.cli import asking

    file = written(tmp_path)
    monkeypatch.setattr(asking.time, "time_ns", lambda: 7)
    answer = {"state": "done", "why": None, "from": "gw-1", "to": "district", "pause_ms": pause_ms}
    with running(tmp_path):
        (tmp_path / STATE / "requests").mkdir(parents=True)
        (tmp_path / STATE / "requests" / "7.answer.json").write_text(json.dumps(answer))
        assert weft("move", file, "hourly_use.valid", "district").stdout == said


def test_explain_says_who_moved_an_operator(tmp_path: Path) -> None:
    file = written(tmp_path)
    in_force(tmp_path, file, MoveTo({"hourly_use.valid": "district"}, "scenario", "scenario"))
    said = weft("explain", file).stdout
    assert "moved there from gw-1 by the scenario; the file as it is now would put it on gw-1" in said
    in_force(tmp_path, file, MoveTo({"hourly_use.valid": "district"}, "less traffic", "place"))
    assert "moved there from gw-1 by placement: less traffic" in weft("explain", file).stdout


def test_a_profile_never_claims_more_than_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    from weft.cli.profile import _print

    steps = [{"offered_per_s": 50_000.0, "done_per_s": 50_000.0}, {"offered_per_s": 100_000.0, "done_per_s": 73_446.0}]
    found = {"capacity_per_s": None, "follows_up_to_per_s": 100_000.0, "steps": steps}
    _print({"q.o": found | {"cost_ms": 0.01, "selectivity": 1.0}})
    said = capsys.readouterr().out
    assert "at least 73,446" in said
    assert "at q.o in the file: cost_ms: 0.01, selectivity: 1\n" in said
    assert "100,000" not in said
