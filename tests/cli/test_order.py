"""`weft order`: the contract's JSON, an output that is a sorted permutation but for what is flagged, clear refusals."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.cli.cli_files import weft, weft_json


def recorded(folder: Path, count: int = 3000, column: str = "ts") -> Path:
    """A stream with delays of up to 5 s, a record every 10 ms, in decimals of seconds."""
    rng = np.random.default_rng(1)
    arrivals = np.cumsum(rng.exponential(0.01, count))
    times = 1_700_000_000 + arrivals - np.where(rng.random(count) < 0.3, rng.uniform(0, 5, count), 0)
    path = folder / "stream.csv"
    lines = "".join(f'{number},{time:.6f},"a, b"\n' for number, time in enumerate(times))
    path.write_text(f"n,{column},text\n{lines}", encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_order_gives_the_contracts_figures_and_a_sorted_permutation(tmp_path: Path) -> None:
    path, out, plot = recorded(tmp_path), tmp_path / "out.csv", tmp_path / "plot.png"
    found = weft_json("order", path, "--time", "ts", "--out", out, "--plot", plot)
    assert list(found) == ["records", "late_in", "late_out", "hold", "wait"]
    assert (list(found["hold"]), list(found["wait"])) == (["final", "max"], ["mean", "p99"])
    rows = rows_of(out)
    assert list(rows[0]) == ["n", "ts", "text", "late"]
    assert sorted(int(row["n"]) for row in rows) == list(range(3000))
    assert {row["late"] for row in rows} <= {"true", "false"}
    in_place = [float(row["ts"]) for row in rows if row["late"] == "false"]
    assert in_place == sorted(in_place)
    assert len(rows) - len(in_place) == found["late_out"] < found["late_in"] / 5
    assert 4 < found["hold"]["final"] < 8
    assert found["wait"]["mean"] < found["wait"]["p99"] < 10
    assert plot.stat().st_size > 10_000


def test_the_share_that_may_stay_late_is_kept(tmp_path: Path) -> None:
    found = weft_json("order", recorded(tmp_path), "--time", "ts", "--late-max", "0.1")
    assert found["late_out"] <= 0.12 * found["records"]


def test_dates_are_ordered_in_seconds_and_what_has_no_time_is_flagged(tmp_path: Path) -> None:
    path, out = tmp_path / "dates.csv", tmp_path / "out.csv"
    minutes = [0, 2, 1, 4, 3, 6, 5, 8]
    lines = [f"2024-01-01 00:{minute:02d}:00" for minute in minutes] + ["", "2024-01-01T00:09:00Z"]
    path.write_text("\n".join(["at", *(f'"{line}"' for line in lines)]) + "\n", encoding="utf-8")
    found = weft_json("order", path, "--time", "at", "--out", out)
    assert (found["records"], found["late_in"], found["late_out"]) == (10, 4, 1)
    assert [row["at"][15] for row in rows_of(out) if row["late"] == "false"] == list("012345689")
    assert found["hold"]["max"] == 0, "ten records end within the first look"


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("n,ts\n1,2\n", ["--time", "when"], "there is no column `when`; there are: n, ts"),
        ("n,ts\n1,2\n2,soon\n", ["--time", "ts"], "line 3: `soon` in column `ts` is no time"),
        ("n,ts\n1,2,3\n", ["--time", "ts"], "line 2: has 3 fields where the heading has 2"),
        ("", ["--time", "ts"], "is empty"),
        ("ts\n1\n", ["--time", "ts", "--lambda", "-1"], "--lambda must be a number of at least 0"),
        ("ts\n1\n", ["--time", "ts", "--late-max", "10"], "--late-max must be a share between 0 and 1"),
        ("ts\n1\n", ["--time", "ts", "--late-max", "0.1", "--lambda", "1"], "--lambda or --late-max, not both"),
        ("ts,late\n1,2\n", ["--time", "ts", "--out", "o.csv"], "has a column `late` already"),
        ("ts\n1\n", ["--time", "ts", "--out", "nowhere/o.csv"], "No such file or directory"),
        (None, ["--time", "ts"], "No such file or directory"),
    ],
)
def test_wrong_input_is_told_with_its_place(tmp_path: Path, text: str | None, options: list[str], says: str) -> None:
    path = tmp_path / "in.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    done = weft("order", path, *(str(tmp_path / one) if one.endswith(".csv") else one for one in options))
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stdout == ""


def test_a_stream_without_records_is_in_order(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("ts\n", encoding="utf-8")
    found = weft_json("order", path, "--time", "ts")
    assert (found["records"], found["late_out"], found["wait"]["mean"]) == (0, 0, 0)
