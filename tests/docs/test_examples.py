"""Every example of the documents does what they say; a block that cannot be run is marked as `text` there."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import weft
from tests.docs.docs_blocks import (
    ROOT,
    SHELL,
    Block,
    blocks,
    blocks_of,
    commands,
    commands_in_tables,
    deployments,
    documents,
    give_files,
)
from weft.cli.app import COMMANDS, app

WITHOUT_SPARK = ("check", "schema", "plan", "twin", "explain", "order")
# What asks a run, and says so where there is none; the others of the help start Spark, Java or minutes of work.
ASKS_A_RUN = ("status", "logs", "stop", "move", "add", "remove")
GENERATE_S_MAX = 60


def named(found: list[Block]) -> list[Any]:
    return [pytest.param(one, id=one.place) for one in found]


def on_spark(found: list[Block]) -> list[Any]:
    """As `named`; a block that runs the meters waits for the long check: their own test runs them every time."""
    long = {one.place: pytest.mark.long for one in found if "examples/meters" in one.text}
    return [pytest.param(one, id=one.place, marks=long.get(one.place, ())) for one in found]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, as one who has just read of them finds it, and two days of meters."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(
        ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("data", "out", ".*", "__pycache__")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("WEFT_DATA", raising=False)
        meters = _module(folder / "examples/meters/generate.py")
        patch.setattr(meters, "HALF_HOURS", 2 * 48)
        meters.fill(folder / "examples/meters/data")
    (folder / "examples/network/data").mkdir()
    (folder / "examples/network/data/dns.csv").write_text("ts,n\n1,1\n3,2\n2,3\n4,4\n")
    return folder


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("meters_of_the_docs", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.spark
@pytest.mark.parametrize("block", on_spark(blocks("python")))
def test_python_runs_as_it_is_printed(
    block: Block, spark: Any, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a line prints and says what, in a comment behind it, that is what it prints."""
    monkeypatch.chdir(checkout)
    exec(compile(block.text, block.place, "exec"), {"__name__": "__main__"})
    said = re.findall(r"^print\(.*\)  # (.+)$", block.text, re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in said if line not in printed] == []


@pytest.mark.parametrize("block", named(blocks("yaml")))
def test_a_deployment_that_is_shown_is_right(block: Block, tmp_path: Path) -> None:
    if block not in deployments():
        return  # a part of one: it was read as YAML to know that
    report = weft.spec.check(give_files(block, tmp_path))
    assert report.errors == ()


@pytest.mark.spark
def test_the_deployment_of_the_readme_gives_the_meters_that_used_much_in_an_hour(spark: Any, tmp_path: Path) -> None:
    [block] = [one for one in deployments() if one.place.startswith("README.md")]
    file = give_files(block, tmp_path)
    for path in (tmp_path / "data").iterdir():
        path.unlink()
    (tmp_path / "data" / "one.csv").write_text(
        "ts,meter,kwh\n2024-01-01T00:10:00Z,m-1,4.0\n2024-01-01T00:50:00Z,m-1,3.5\n2024-01-01T00:10:00Z,m-2,6.0\n"
    )
    (tmp_path / "data" / "two.csv").write_text("ts,meter,kwh\n2024-01-01T01:10:00Z,m-2,6.5\n")
    summary = weft.run(file, until_done=True)
    rows = [row for path in sorted((tmp_path / "out/high").glob("*.csv")) for row in path.read_text().split()]
    assert sorted(rows) == ["2024-01-01T00:00:00.000Z,m-1,7.5", "2024-01-01T01:00:00.000Z,m-2,6.5"]
    assert summary["queries"]["high"]["records_in"] == 4
    assert {one["site"] for one in summary["fragments"].values() if "over" in one["operators"]} == {"office"}


@pytest.mark.parametrize("block", named([one for one in blocks(*SHELL) if commands(one)]))
def test_commands_work_as_they_are_printed(block: Block, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other; what needs Spark is understood, and not run here."""
    monkeypatch.chdir(checkout)
    monkeypatch.delenv("WEFT_DATA", raising=False)
    for words in commands(block):
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), words
        elif words[0] == "python":
            done = subprocess.run([sys.executable, *words[1:]], check=False, timeout=GENERATE_S_MAX)
            assert done.returncode == 0, words
        else:
            _try(words)


@pytest.mark.parametrize(("place", "words"), [pytest.param(*one, id=one[0]) for one in commands_in_tables()])
def test_commands_in_tables_work(place: str, words: list[str], checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    _try(words)


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_the_readme_is_read_in_a_few_minutes_and_leads_to_every_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    # Prose and tables, without what is shown: a newcomer reads some 250 words a minute.
    assert len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()) < 1000
    linked = {page for part in (text, *(one.read_text(encoding="utf-8") for one in ROOT.glob("docs/*.md")))
              for page in re.findall(r"\]\((?:docs/)?(\w+\.md)", part)}  # fmt: skip
    assert {page.name for page in ROOT.glob("docs/*.md")} <= linked


def examples_of_help() -> list[list[str]]:
    """Every example in the help of a command, as words, without the shell's redirections."""
    texts = [(command.__doc__ or "").partition("Example:")[2] for command, _ in COMMANDS]
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip().startswith("weft ")]
    return [shlex.split(line.partition(" > ")[0]) for line in lines]


@pytest.mark.parametrize("words", examples_of_help(), ids=" ".join)
def test_examples_of_help_work_as_they_are_printed(
    words: list[str], checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(checkout, tmp_path / "here")
    shutil.copy(tmp_path / "here/examples/network/data/dns.csv", tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("WEFT_DATA", raising=False)
    _try(words)
    if words[1] in ("keys", "lab") and words[1:] != ["lab", "P-lab2"]:
        assert CliRunner().invoke(app, words[1:]).exit_code == 0
    if words[1] in ASKS_A_RUN:
        result = CliRunner().invoke(app, [word for word in words[1:] if word != "--follow"])
        assert re.search(r": (nothing (ever )?(ran|runs)|no log)", result.output), result.output
        assert not result.output.startswith("Usage")


def test_every_command_has_an_example_in_its_help() -> None:
    assert {words[1] for words in examples_of_help()} == {command.__name__ for command, _ in COMMANDS}


def _try(words: list[str]) -> None:
    """Let the command line understand a command, and do what it says where that needs no Spark."""
    _, name, *rest = words
    known: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    assert name in known, f"{name} is no command"
    known[name].make_context(name, list(rest))
    # A fragment has no Spark plan to explain before a run.
    if name == "explain":
        rest = rest[:1]
    if name in WITHOUT_SPARK:
        result = CliRunner().invoke(app, [name, *rest])
        assert result.exit_code == 0, f"{' '.join(words)}\n{result.output}"


def test_an_unfinished_block_a_wrong_command_and_wrong_python_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("```python\nimport weft\n")
    with pytest.raises(AssertionError, match="never ends"):
        list(blocks_of(file))
    file.write_text("```\n$ weft chekc FILE  # a comment\nanything\n```\n~~~python\n1 /\n~~~\n")
    shell, python = blocks_of(file)
    assert commands(shell) == [["weft", "chekc", "FILE"]]
    with pytest.raises(AssertionError, match="chekc"):
        _try(commands(shell)[0])
    with pytest.raises(SyntaxError):
        compile(python.text, python.place, "exec")
