"""`weft check` and `weft schema`: every mistake told with file, line and field, exit 2, nothing started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_files import GOOD, changed, weft, weft_json, weft_outside, written

BOMB = "weft: 1\na: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join(['*' + chr(97 + at)] * 10)}]\n" for at in range(9)
)
SQL = "SELECT * FROM readings WHERE kwh >= 0"

# What is wrong, the file's text, and a piece of what is said.
MALFORMED: list[tuple[str, str | bytes, str]] = [
    ("empty file", "", "weft"),
    ("only a comment", "# nothing\n", "weft"),
    ("binary file", bytes(range(256)) * 40, "file"),
    ("not utf-8", GOOD.encode("utf-16"), "file"),
    ("noise", b"%PDF-1.7 \x00\xff" + b"x" * 10_000_000, "file"),
    ("noise in lines", ("lorem: ipsum [dolor\n" * 500_000), "deployment.yaml"),
    ("anchor bomb", BOMB, "deployment.yaml"),
    ("deep nesting", "weft: 1\nsites: " + "[" * 5000, "deployment.yaml"),
    ("a list", "- weft: 1\n", "mapping"),
    ("a number", "42\n", "mapping"),
    ("no version", changed("weft: 1\n", ""), "weft"),
    ("another version", changed("weft: 1", "weft: 7"), "must be 1"),
    ("unknown key", changed("links:", "linkz:"), "links"),
    ("unknown key within", changed("capacity: 2.0", "capactiy: 2.0"), "capacity"),
    ("wrong type", changed("delay_ms: 20", "delay_ms: soon"), "delay_ms"),
    ("list for text", changed("name: district", "name: [district]"), "name"),
    ("negative number", changed("delay_ms: 20", "delay_ms: -20"), "delay_ms"),
    ("NaN", changed("capacity: 2.0", "capacity: .nan"), "capacity"),
    ("infinity", changed("capacity: 2.0", "capacity: .inf"), "capacity"),
    ("quota above one", changed("quota: 0.8", "quota: 8"), "quota"),
    ("duplicate site", changed("name: district", "name: gw-1"), "gw-1"),
    ("duplicate key", changed("weft: 1", "weft: 1\nweft: 1"), "twice"),
    ("parents in a round", changed("capacity: 2.0", "parent: gw-1"), "parents go round"),
    ("link to itself", changed("to: district, delay_ms", "to: gw-1, delay_ms"), "itself"),
    ("unknown site", changed("site: gw-1", "site: gw-9"), "gw-9"),
    ("cycle", changed("from: [readings]", "from: [readings, hourly]"), "hourly"),
    ("missing stream", changed("from: [readings]", "from: [reading]"), "reading"),
    ("SQL error", changed(SQL, "SELEC * FROM readings"), "sql"),
    ("unknown column", changed("kwh >= 0", "kwhh >= 0"), "kwhh"),
    ("unknown stream in SQL", changed(SQL, "SELECT * FROM elsewhere"), "elsewhere"),
    ("unreadable path", changed("data/readings.csv", "nowhere/*.csv"), "nowhere"),
    ("bad schema", changed("kwh DOUBLE", "kwh DUOBLE"), "DUOBLE"),
    ("policy that is not there", GOOD + "control: {place: {policy: cuckou}}\n", "cuckoo"),
    ("missing sink", changed("    sink: {from: hourly, format: parquet, path: out/hourly}\n", ""), "sink"),
]


@pytest.mark.parametrize(("text", "said"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_a_malformed_file_is_exit_2_with_name_and_mistake(tmp_path: Path, text: str | bytes, said: str) -> None:
    file = written(tmp_path, text)
    result = weft("check", file)
    assert result.exit_code == 2
    assert result.stdout == ""
    *problems, count = result.stderr.splitlines()
    assert problems
    assert all(line.startswith(f"{file}:") for line in problems)
    assert said in result.stderr
    assert "error" in count
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["plan", "run", "explain"])
def test_a_command_that_needs_a_good_file_refuses_a_bad_one_first(tmp_path: Path, command: str) -> None:
    file = written(tmp_path, changed("delay_ms: 20", "delay_ms: -20"))
    result = weft(command, file, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{file}:6: links[0].delay_ms: " in result.stderr
    assert not (tmp_path / ".weft").exists()


@pytest.mark.parametrize("what", ["absent", "a folder"])
def test_a_file_that_cannot_be_read_is_exit_2(tmp_path: Path, what: str) -> None:
    file = tmp_path / "x.yaml" if what == "absent" else tmp_path
    result = weft("check", file)
    assert result.exit_code == 2
    assert str(file) in result.stderr


def test_several_mistakes_are_told_together_with_their_lines(tmp_path: Path) -> None:
    text = changed("delay_ms: 20", "delay_ms: -1").replace("quota: 0.8", "quota: 2").replace("kwh >= 0", "kw >= 0")
    found = weft_json("check", written(tmp_path, text), code=2)
    assert found["ok"] is False
    assert [(one["line"], one["field"]) for one in found["errors"]] == [
        (3, "sites[0].quota"), (6, "links[0].delay_ms"), (19, "queries[0].operators[0].sql"),
    ]  # fmt: skip
    assert all(set(one) == {"line", "field", "message"} for one in found["errors"])


def test_a_good_file_gives_one_line(tmp_path: Path) -> None:
    file = written(tmp_path)
    result = weft("check", file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{file}: ok, 2 sites, 1 source, 1 query, 2 operators\n"
    assert weft_json("check", file) == {"ok": True, "errors": [], "warnings": []}


def test_warnings_are_told_but_do_not_fail(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + "control: {scale: {}}\n")
    result = weft("check", file)
    assert result.exit_code == 0
    assert "control.scale: only the twin acts on it so far (warning)" in result.stderr
    assert result.stdout.endswith("1 warning\n")
    assert [one["field"] for one in weft_json("check", file)["warnings"]] == ["control.scale"]


def test_balancing_asks_for_a_tree_and_for_nothing_more(tmp_path: Path) -> None:
    balances = GOOD + "control: {balance: {kind: tree}}\n"
    assert weft("check", written(tmp_path, balances)).stderr == ""
    file = written(tmp_path, balances.replace("parent: district, ", ""))
    assert "control.balance: no site has a parent: there is no tree to balance (warning)" in weft("check", file).stderr


def test_the_schema_is_one_json_document() -> None:
    result = weft("schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["required"][0] == "weft"


def test_an_unknown_command_or_option_is_exit_2_and_plain_when_piped(tmp_path: Path) -> None:
    for words in (["nope"], ["check"], ["check", written(tmp_path), "--nope"]):
        result = weft_outside(*words)
        assert (result.returncode, result.stdout) == (2, "")
        assert not set("╭│╰\x1b") & set(result.stderr)


def test_every_command_shows_an_example(tmp_path: Path) -> None:
    from weft.cli.app import COMMANDS

    for command, _ in COMMANDS:
        result = weft(command.__name__, "--help")
        assert result.exit_code == 0
        assert f"Example:  weft {command.__name__}" in result.stdout
