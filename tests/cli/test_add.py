"""`add`, `remove`, `apply` and `plan --add` without Spark: what is refused before a run hears of it, and its words."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_files import GOOD, STATE, in_force, weft, weft_json, written
from tests.cli.test_looking import running
from weft.bodies.live import journal
from weft.bodies.live.beside import Beside
from weft.bodies.live.identity import identity
from weft.bodies.live.state import State
from weft.spec import check_added, load

PEAKS = """\
queries:
  - name: peaks
    operators:
      - {name: high, from: [readings], sql: SELECT meter FROM readings WHERE kwh > 6}
    sink: {from: high, format: parquet, path: out/peaks}
"""
DONE = {"at_s": 1.5, "by": "person", "wish": {"add": ["peaks"]}, "reason": "asked for", "state": "done", "why": "",
        "pause_ms": 0.0}  # fmt: skip


def queries(folder: Path, text: str = PEAKS) -> Path:
    """A file with a query more."""
    (folder / "peaks.yaml").write_text(text)
    return folder / "peaks.yaml"


@contextmanager
def answering(folder: Path, *answers: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """A run that gives its requests these answers, one after another; what it was asked."""
    asked: list[dict[str, Any]] = []
    over = threading.Event()

    def answer() -> None:
        waiting = list(answers)
        while waiting and not over.wait(0.01):
            for path in sorted((folder / STATE / "requests").glob("*.json")):
                if not path.name.endswith(".answer.json"):
                    asked.append(json.loads(path.read_text()))
                    path.unlink()
                    aside = path.with_name(f".{path.name}")
                    aside.write_text(json.dumps(waiting.pop(0)))
                    aside.rename(path.with_name(path.name.replace(".json", ".answer.json")))

    with running(folder):
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield asked
        over.set()


@pytest.mark.parametrize(
    ("text", "line", "field", "says"),
    [
        (PEAKS.replace("kwh > 6", "kw > 6"), 4, "queries[0].operators[0].sql", "there is no column `kw`"),
        (PEAKS.replace("name: peaks", "name: hourly_use"), 2, "queries[0].name", "is taken by query hourly_use"),
        (PEAKS.replace("out/peaks", "out/hourly"), 5, "queries[0].sink.path", "is also the folder of query hourly_use"),
        (PEAKS.replace("[readings]", "[nothing]"), 4, "queries[0].operators[0].from", "nothing"),
        (PEAKS + "sites: []\n", 6, "sites", "unknown key"),
        ("- 1\n", 1, "file", "must be a mapping that holds `queries`"),
    ],
)
def test_what_is_wrong_with_new_queries_is_told_by_line_and_field_of_their_file(
    tmp_path: Path, text: str, line: int, field: str, says: str
) -> None:
    file, more = written(tmp_path), queries(tmp_path, text)
    for words in (("add", file, more), ("plan", file, "--add", more)):
        result = weft(*words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{more}:{line}: {field}" in result.stderr
        assert says in result.stderr
    assert not (tmp_path / STATE).exists()


def test_nothing_comes_or_goes_where_nothing_runs(tmp_path: Path) -> None:
    file = written(tmp_path)
    for words in (("add", file, queries(tmp_path)), ("remove", file, "hourly_use")):
        result = weft(*words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "nothing runs there" in result.stderr
    result = weft("apply", file)
    assert result.exit_code == 2
    assert "holds no run yet" in result.stderr


def test_add_and_remove_print_the_change_and_refusals_are_exit_1(tmp_path: Path) -> None:
    file, more = written(tmp_path), queries(tmp_path)
    refused = DONE | {"state": "refused", "why": "district has no room", "pause_ms": None}
    with answering(tmp_path, DONE, DONE, refused, refused, refused) as asked:
        assert weft_json("add", file, more) == DONE
        assert "peaks runs now; nothing else had to pause" in weft("add", file, more).stdout
        assert weft_json("add", file, more, code=1) == refused
        said = weft("remove", file, "peaks")
        assert (said.exit_code, said.stdout) == (1, "")
        assert "peaks: not removed: district has no room" in said.stderr
        assert weft_json("remove", file, "peaks", code=1) == refused
    assert asked[0]["add"]["queries"][0]["name"] == "peaks"
    assert asked[-1] == {"remove": "peaks"}


def test_what_cannot_be_asked_is_not_waited_for(tmp_path: Path) -> None:
    file = written(tmp_path)
    with running(tmp_path):
        for words in (["remove", file, ""], ["move", file, "hourly_use.valid", ""]):
            result = weft(*words)
            assert (result.exit_code, "that cannot be asked" in result.stderr) == (2, True)
    assert not (tmp_path / STATE / "requests").exists()


def stopped(folder: Path, file: Path, beside: Beside | None = None) -> State:
    """A state as a run of a file leaves it."""
    in_force(folder, file)
    state = State(folder / STATE)
    state.begin(identity(load(file)), {}, {})
    held = journal.read(state)
    assert held is not None
    journal.write(state, held.plan(load(file)), {}, {}, beside)
    return state


def test_apply_says_what_would_change_and_that_a_changed_stateful_operator_cannot(tmp_path: Path) -> None:
    file = written(tmp_path)
    stopped(tmp_path, file)
    before = sorted((path, path.read_bytes()) for path in (tmp_path / STATE).glob("*.json"))
    other = GOOD.replace("1 hour", "2 hours").replace("kwh >= 0", "kwh > 0") + PEAKS.removeprefix("queries:\n")
    file.write_text(other)
    result = weft("apply", file, "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "+ peaks: comes" in result.stderr
    assert "~ operator hourly_use.valid" in result.stderr
    assert "goes on from where it was" in result.stderr
    assert "operator hourly_use.hourly: it keeps state, which the old statement made" in result.stderr
    assert sorted((path, path.read_bytes()) for path in (tmp_path / STATE).glob("*.json")) == before
    assert weft_json("apply", file, "--yes", code=1)["changes"] == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("SELECT * FROM readings WHERE kwh >= 0", '"SELECT ts, meter, 1 kwh FROM readings"', "may give other columns"),
        ("10 minutes", "20 minutes", "with another `watermark`"),
        ("out/hourly", "out/other", "its results would lie in two places"),
        ("meter STRING, ", "meter STRING, more STRING, ", "its streams were made of what it was"),
    ],
)
def test_apply_names_what_cannot_go_on_and_why(tmp_path: Path, old: str, new: str, says: str) -> None:
    file = written(tmp_path)
    stopped(tmp_path, file)
    file.write_text(GOOD.replace(old, new))
    result = weft("apply", file, "--yes")
    assert result.exit_code == 1
    assert says in result.stderr


def test_apply_lets_the_file_alone_count_for_a_stopped_state(tmp_path: Path) -> None:
    file = written(tmp_path)
    added = check_added(queries(tmp_path), load(file)).queries
    state = stopped(tmp_path, file, Beside(added))
    changed = GOOD.replace("kwh >= 0", "kwh > 0")
    file.write_text(changed)
    found = weft_json("apply", file, "--yes")["changes"]
    assert [one["wish"] for one in found] == [{"change": "hourly_use.valid"}]
    held, record = journal.read(state), state.record()
    assert held is not None
    assert record is not None
    assert not held.beside
    assert record.deployment == identity(load(file))
    assert "is what the file says" in weft("apply", file).stdout


def test_apply_asks_a_run_for_one_change_after_another_and_ends_at_the_first_refusal(tmp_path: Path) -> None:
    file = written(tmp_path)
    stopped(tmp_path, file)
    file.write_text(GOOD + PEAKS.removeprefix("queries:\n"))
    with answering(tmp_path, DONE) as asked:
        assert weft_json("apply", file, "--yes") == {"changes": [DONE]}
    assert (asked[0]["by"], asked[0]["add"]["queries"][0]["name"]) == ("file", "peaks")
    with answering(tmp_path, DONE | {"state": "refused", "why": "no"}):
        assert weft("apply", file, "--yes").exit_code == 1
    file.write_text(GOOD.replace("kwh >= 0", "kwh > 0"))
    with running(tmp_path):
        result = weft("apply", file, "--yes")
    assert result.exit_code == 1
    assert "it changes between a stop and a start" in result.stderr


def test_plan_add_shows_promises_before_and_after_and_refuses_with_numbers(tmp_path: Path) -> None:
    heavy = PEAKS.replace("kwh > 6}", "kwh > 6, cost_ms: 30, site: gw-1}")
    file = written(tmp_path)
    found = weft_json("plan", file, "--add", queries(tmp_path), "--ideal")
    assert (found["added"], found["admitted"], found["refused"]) == (["peaks"], True, [])
    assert found["promises"]["peaks"]["before"] is None
    assert found["promises"]["hourly_use"]["before"]["admitted"]
    in_force(tmp_path, file)
    found = weft_json("plan", file, "--add", queries(tmp_path, heavy), "--ideal")
    assert not found["admitted"]
    assert any("gw-1 has no room" in why and "6000 ms/s more" in why for why in found["refused"])
    said = weft("plan", file, "--add", tmp_path / "peaks.yaml", "--ideal").stdout
    assert "peaks: would not be admitted: gw-1 has no room" in said


def test_plan_add_shows_what_is_shared(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + "control: {share: true}\n")
    same = PEAKS.replace("SELECT meter FROM readings WHERE kwh > 6", "SELECT * FROM readings WHERE kwh >= 0")
    found = weft_json("plan", file, "--add", queries(tmp_path, same), "--ideal")
    assert [(one["stream"], one["queries"]) for one in found["shared"]] == [
        ("hourly_use.valid", ["hourly_use", "peaks"])
    ]


def test_plan_add_says_which_site_of_a_run_offers_a_stream_already(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + "control: {share: true}\n")
    same = queries(tmp_path, PEAKS.replace("meter FROM readings WHERE kwh > 6", "* FROM readings WHERE kwh >= 0"))
    in_force(tmp_path, file)
    offers = {"load": 0.3, "level": 1, "levels": 5, "offers": ["hourly_use.valid"]}
    sites = {"gw-1": {"directory": offers}, "district": {"directory": None}}
    status = tmp_path / STATE / "status.json"
    status.write_text(json.dumps({"phase": "running", "at": 1.0, "sites": sites}))
    assert weft_json("plan", file, "--add", same, "--ideal")["offered"] == [], "nothing runs"
    with running(tmp_path):
        found = weft_json("plan", file, "--add", same, "--ideal")
        said = weft("plan", file, "--add", same, "--ideal").stdout
        assert weft_json("plan", file, "--add", same, "--ideal", "--fresh")["offered"] == []
    assert found["offered"] == [{"stream": "peaks.high", "same": "hourly_use.valid", "sites": ["gw-1"]}]
    assert "peaks.high is offered by gw-1 already, as hourly_use.valid" in said


LEVELLED = GOOD.replace("{latency_ms: 5000,", "{latency_ms: 1, levels: [{latency_ms: 5000, weight: 0.5}],")


def test_the_level_that_is_taken_is_said_in_check_and_plan(tmp_path: Path) -> None:
    file = written(tmp_path, LEVELLED)
    says = "keeps its promised latency at the level of 5000 ms (worth 0.5) and availability, "
    assert f"query hourly_use: {says}" in weft("check", file).stdout
    assert weft_json("check", file)["levels"][0].startswith(f"query hourly_use: {says}")
    found = weft_json("plan", file)["projected"]["hourly_use"]
    assert (found["admitted"], found["level_ms"], found["worth"]) == (True, 5000, 0.5)
    assert says in weft("plan", file).stdout


@pytest.mark.parametrize(
    ("old", "new", "field", "says"),
    [
        ("{latency_ms: 5000, w", "{latency_ms: 1, w", "levels[0].latency_ms", "must be greater than the one before, 1"),
        ("latency_ms: 1, levels", "levels", "levels", "needs a `latency_ms` beside it"),
        ("0.5}]", "0.5}, {latency_ms: 6000, weight: 0.6}]", "levels[1].weight", "at most that of the one before, 0.5"),
    ],
)
def test_levels_that_are_no_second_best_are_errors(tmp_path: Path, old: str, new: str, field: str, says: str) -> None:
    assert old in LEVELLED
    result = weft("check", written(tmp_path, LEVELLED.replace(old, new, 1)))
    assert result.exit_code == 2
    assert f"queries[0].promise.{field}: " in result.stderr
    assert says in result.stderr


def test_a_request_says_that_queries_are_to_come_anyway(tmp_path: Path) -> None:
    file, more = written(tmp_path), queries(tmp_path)
    with answering(tmp_path, DONE | {"reason": "asked for; anyway: peaks: latency"}) as asked:
        result = weft("add", file, more, "--anyway")
    assert (result.exit_code, asked[0]["anyway"]) == (0, True)
    assert "  anyway: peaks: latency" in result.stdout


def test_apply_takes_a_milder_policy_for_bad_records_and_not_a_stricter_one(tmp_path: Path) -> None:
    file = written(tmp_path)
    stopped(tmp_path, file)
    milder = GOOD.replace("    event_time: ts", "    bad_records: skip\n    event_time: ts")
    file.write_text(milder)
    assert [one["wish"] for one in weft_json("apply", file, "--yes")["changes"]] == [{"change": "source readings"}]
    assert "is what the file says" in weft("apply", file).stdout
    file.write_text(GOOD)
    assert "its streams were made of what it was" in weft("apply", file, "--yes").stderr
