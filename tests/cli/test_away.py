"""A command on another machine, with the file and a key, is told what one beside the state is told."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bodies.live.wire.ports import closed, hello, raw, until
from tests.cli.cli_files import GOOD, STATE, in_force, weft, weft_json, written
from tests.cli.test_add import DONE, PEAKS, answering, queries
from tests.cli.test_looking import STATUS, running
from weft.bodies.live.commands.answering import Answering
from weft.bodies.live.commands.words import ASK, Change, Look, Stop, Take, asked_of, encode
from weft.bodies.live.identity import identity
from weft.bodies.live.state import State
from weft.bodies.live.story_file import StoryFile
from weft.bodies.live.transport import ROLL
from weft.bodies.live.wanted import Wanted
from weft.bodies.live.wire.authority import make_keys
from weft.bodies.live.wire.credentials import credentials
from weft.bodies.live.wire.frames import BULK, Ask, Carry, enveloped, framed
from weft.bodies.live.wire.parties import A_COMMAND, THE_DESK, site
from weft.bodies.live.wire.port import Port
from weft.spec import load

STORY = "".join(f"{1700000000000 + number} gw-1 Tick({number}) -> -\n" for number in range(200))


class Elsewhere:
    """A desk with its state in one folder, and another folder with the file and what a command needs."""

    def __init__(self, folder: Path) -> None:
        self.there, self.here = folder / "there", folder / "here"
        self.keys = folder / "keys"
        self.told: list[str] = []
        make_keys(self.keys, ["gw-1", "district"])
        self.state = self.there / STATE
        self.port = Port(credentials(self.keys, THE_DESK), "d1", tell=self.told.append)
        Answering(State(self.state), self.told.append).at(self.port)
        address = self.port.start()
        assert address is not None
        text = f"desk: {address[0]}:{address[1]}\nkeys: mine\n{GOOD}"
        self.beside, self.file = written(self.there, text), written(self.here, text)
        shutil.rmtree(self.here / "data")
        (self.here / "mine").mkdir(mode=0o700)
        for name in ("authority.pem", "command.pem", "command.key"):
            shutil.copy(self.keys / name, self.here / "mine" / name)
        in_force(self.there, self.beside)
        (self.state / "status.json").write_text(json.dumps(STATUS))
        (self.state / "story.log").write_text(STORY)

    def begun(self) -> None:
        """Have the record of a run."""
        State(self.state).begin(identity(load(self.beside)), {}, {}, str(self.beside.resolve()))

    def refused(self, text: str) -> None:
        """It was told why."""
        until(lambda: any(text in line for line in self.told), f"no word of {text!r} in {self.told}")

    def undisturbed(self) -> None:
        """A command is still answered, and nothing was asked of the run."""
        assert weft_json("status", self.file)["queries"] == STATUS["queries"]
        assert not list(self.state.glob("requests/*.json"))
        assert not (self.state / "stop").exists()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    made = Elsewhere(tmp_path)
    yield made
    made.port.stop(0)


def test_what_is_looked_at_from_elsewhere_is_what_is_seen_beside_the_state(elsewhere: Elsewhere) -> None:
    plan = elsewhere.state / "fragments" / "hourly_use.hourly" / "plan.txt"
    plan.parent.mkdir(parents=True)
    plan.write_text("*(1) Filter (kwh > 0)\n")
    for name in ("logs/spark.log", "logs/sites/gw-1/agent.log"):
        (elsewhere.state / name).parent.mkdir(parents=True, exist_ok=True)
        (elsewhere.state / name).write_text(f"said in {name}\n")
    decision = {"at_s": 1.0, "number": 1, "by": "relief", "state": "asked", "reason": "too slow", "numbers": {}}
    (elsewhere.state / "decisions.jsonl").write_text(json.dumps(decision) + "\n")
    for words in (
        ["status", "--json"], ["logs", "-n", "7"], ["logs", "--site", "gw-1"], ["logs", "--spark"],
        ["logs", "--spark", "--site", "gw-1"], ["explain"], ["explain", "--json"], ["explain", "--decisions", "--json"],
    ):  # fmt: skip
        command, *more = words
        with running(elsewhere.there):
            away, beside = (weft(command, file, *more) for file in (elsewhere.file, elsewhere.beside))
        assert (away.exit_code, away.stdout) == (beside.exit_code, beside.stdout), words
        assert away.stdout
    assert "Filter (kwh > 0)" in weft("explain", elsewhere.file, "hourly_use.hourly").stdout
    assert not (elsewhere.here / ".weft").exists(), "nothing of it stays here"


def test_a_log_is_followed_from_elsewhere_until_the_desk_is_gone(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = iter(range(3))

    def a_moment(seconds: float) -> None:
        """Between two looks the story goes on; then the desk goes."""
        number = next(waits)
        if number == 2:
            elsewhere.port.stop(0)
            return
        with open(elsewhere.state / "story.log", "a") as story:
            story.write(("1700000000500 gw-1 Lat", "er() -> -\n")[number])

    monkeypatch.setattr("weft.cli.away.time.sleep", a_moment)
    result = weft("logs", elsewhere.file, "-n", 1, "--follow")
    assert result.exit_code == 0
    assert [line.split(" ", 1)[1] for line in result.stdout.splitlines()] == [
        "gw-1 Tick(199) -> -", "gw-1 Later() -> -",
    ]  # fmt: skip
    assert "the run has ended" in result.stderr


def test_changes_are_asked_from_elsewhere_and_answered_as_beside_the_state(elsewhere: Elsewhere) -> None:
    move = {"query": "hourly_use", "operator": "valid", "from": "gw-1", "to": "district", "state": "done", "why": "",
            "pause_ms": 12.0}  # fmt: skip
    gone = {"at_s": 1.0, "by": "you", "wish": {}, "reason": "asked for", "state": "done", "why": "", "pause_ms": 0.0}
    no = gone | {"state": "refused", "why": "there is no query `south`"}
    with answering(elsewhere.there, move, gone, no) as asked:
        assert weft_json("move", elsewhere.file, "hourly_use.valid", "district") == move
        assert weft_json("add", elsewhere.file, queries(elsewhere.here, PEAKS)) == gone
        assert weft_json("remove", elsewhere.file, "south", code=1) == no
    assert [set(one) - {"query", "operator", "to"} for one in asked] == [{"homes"}, {"add"}, {"remove"}]
    assert asked[0]["homes"] == {"hourly_use.valid": "district"}
    elsewhere.refused("# a command from elsewhere: move hourly_use.valid to district")
    assert not list(elsewhere.state.glob("requests/*")), "answers are taken away"


def test_a_changed_file_is_applied_from_elsewhere(elsewhere: Elsewhere) -> None:
    elsewhere.begun()
    elsewhere.file.write_text(elsewhere.file.read_text() + PEAKS.removeprefix("queries:\n"))
    with answering(elsewhere.there, DONE) as asked:
        result = weft("apply", elsewhere.file, "--yes", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == {"changes": [DONE]}
    assert "+ peaks: comes" in result.stderr
    assert "= hourly_use: stays as it is" in result.stderr
    assert (asked[0]["by"], asked[0]["add"]["queries"][0]["name"]) == ("file", "peaks")


def test_a_run_is_stopped_from_elsewhere_and_its_end_waited_for(elsewhere: Elsewhere) -> None:
    def run() -> None:
        until((elsewhere.state / "stop").exists)
        elsewhere.port.stop(0)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    result = weft("stop", elsewhere.file)
    assert (result.exit_code, "stopped after" in result.stdout) == (0, True), result.stderr
    thread.join()
    result = weft("status", elsewhere.file)
    assert result.exit_code == 0
    assert "is not there" in result.stderr
    assert "nothing ever ran" in result.stdout


def test_a_change_whose_answer_does_not_come_is_no_success(elsewhere: Elsewhere) -> None:
    result = weft("move", elsewhere.file, "hourly_use.valid", "district", "--timeout", 0.3)
    assert result.exit_code == 1
    assert "no answer after" in result.stderr

    def ends() -> None:
        until(lambda: len(list(elsewhere.state.glob("requests/*.json"))) == 2)
        elsewhere.port.stop(0)

    threading.Thread(target=ends, daemon=True).start()
    result = weft("move", elsewhere.file, "hourly_use.valid", "district")
    assert result.exit_code == 1
    assert "the desk gave no answer: it closed the connection" in result.stderr


def test_without_its_key_or_with_another_authoritys_a_command_is_told_so(elsewhere: Elsewhere, tmp_path: Path) -> None:
    mine = elsewhere.here / "mine"
    (mine / "command.key").chmod(0o644)
    assert "can be read by others" in weft("status", elsewhere.file).stderr
    shutil.rmtree(mine)
    result = weft("status", elsewhere.file)
    assert result.exit_code == 1
    assert "`weft keys FILE` makes the keys" in result.stderr
    (elsewhere.here / "data").mkdir()
    (elsewhere.here / "data" / "readings.csv").touch()
    for words in (["explain", elsewhere.file], ["plan", elsewhere.file, "--add", queries(elsewhere.here), "--ideal"]):
        assert weft(*words).exit_code == 0, "what would be is seen without a run"
    elsewhere.file.write_text(elsewhere.file.read_text().replace("keys: mine\n", ""))
    assert "nothing ever ran" in weft("status", elsewhere.file).stdout
    elsewhere.file.write_text(f"keys: mine\n{elsewhere.file.read_text()}")
    make_keys(mine, ["gw-1", "district"])
    result = weft("status", elsewhere.file)
    assert result.exit_code == 1
    assert "certificate verify failed" in result.stderr
    elsewhere.refused("refused a connection from 127.0.0.1")


def test_only_a_commands_certificate_may_ask_and_it_may_only_ask(elsewhere: Elsewhere) -> None:
    look = framed(Ask(ASK, encode(Look())))
    for party, said, why in (
        (site("gw-1"), hello(site("gw-1"), stream=BULK) + look, "site gw-1 is no command"),
        (site("gw-1"), hello(A_COMMAND, stream=BULK) + look, "not to weft:command"),
        (A_COMMAND, hello(THE_DESK, stream=BULK) + look, "not to weft:desk"),
        (A_COMMAND, hello(site("gw-1")), "not to weft:site:gw-1"),
        (A_COMMAND, hello(A_COMMAND) + framed(Carry(1, enveloped(ROLL, ROLL, b"x"))), "a command may only ask"),
        (A_COMMAND, hello(A_COMMAND._replace(site="gw-1"), stream=BULK) + look, "only sites have names"),
        (A_COMMAND, hello(A_COMMAND, stream=BULK) + framed(Ask("follow", b"")), "something that nobody here gives"),
    ):
        with raw(elsewhere.port, elsewhere.keys, party) as other:
            other.sendall(said)
            assert closed(other)
        elsewhere.refused(why)
    elsewhere.undisturbed()


MOVE = {"homes": {"q.o": "gw-1"}}


@pytest.mark.parametrize(
    "asked",
    [
        b"", b"\xc1", bytes(range(50)), b"\x91" * 100_000,
        encode({"type": "Kill"}), encode({"type": "Look", "more": 1}),
        encode({"type": "Take", "places": {}}), encode({"type": "Take", "places": {"keys/desk.key": 0}}),
        encode({"type": "Take", "places": {"logs/sites/../../keys/desk.key": 0}}),
        encode({"type": "Take", "places": {"/etc/passwd": 0}}), encode({"type": "Take", "places": {"lock": 0}}),
        encode({"type": "Take", "places": {"logs/sites/a/../../../keys/x.log": 0}}),
        encode({"type": "Take", "places": {"status.json": -1 << 60}}),
        encode({"type": "Take", "places": {f"logs/sites/a/{number}.log": 0 for number in range(1_001)}}),
        encode({"type": "Change", "wanted": {}}), encode({"type": "Change", "wanted": MOVE | {"remove": "q"}}),
        encode({"type": "Change", "wanted": MOVE | {"run": "rm"}}),
        encode({"type": "Change", "wanted": {"remove": ""}}),
        encode({"type": "Change", "wanted": {"homes": {"q": "gw-1"}}}),
        encode({"type": "Change", "wanted": {"homes": {"q.o": 3}}}),
        encode({"type": "Change", "wanted": MOVE | {"by": "failover"}}),
        encode({"type": "Change", "wanted": {"add": {"queries": []}}}),
        encode({"type": "Change", "wanted": {"add": {"queries": [{"operators": []}]}}}),
        encode({"type": "Change", "wanted": {"add": {"queries": [{"name": "q"}], "sites": []}}}),
    ],
    ids=range(24),
)  # fmt: skip
def test_what_may_not_be_asked_is_refused_with_a_word(elsewhere: Elsewhere, asked: bytes) -> None:
    with raw(elsewhere.port, elsewhere.keys, A_COMMAND) as other:
        other.sendall(hello(A_COMMAND, stream=BULK) + framed(Ask(ASK, asked)))
        assert closed(other)
    elsewhere.refused("command was refused bulk bytes: ")
    elsewhere.undisturbed()


def test_names_that_a_command_makes_up_are_one_line_of_the_story(elsewhere: Elsewhere) -> None:
    elsewhere.port.stop(0)
    story = StoryFile(elsewhere.state / "story.log")
    desk = Port(credentials(elsewhere.keys, THE_DESK), "d1", tell=story.write)
    Answering(State(elsewhere.state), story.write).at(desk)
    desk.start()
    false = "x\n1700000000000 gw-1 Killed() -> \x1b[2J"
    try:
        for wanted in ({"remove": false}, {"homes": {f"q.{false}": "gw-1"}}, {"remove": "q", false: 1}):
            with raw(desk, elsewhere.keys, A_COMMAND) as other:
                asked = framed(Ask(ASK, encode({"type": "Change", "wanted": wanted})))
                other.sendall(hello(A_COMMAND, stream=BULK) + asked)
                until(lambda: "Killed" in (elsewhere.state / "story.log").read_text())
    finally:
        desk.stop(0)
        story.close()
    told = (elsewhere.state / "story.log").read_text()
    assert "\x1b" not in told
    assert [line for line in told.splitlines() if "Killed" in line and not line.startswith("# ")] == []


def test_what_lies_elsewhere_by_a_link_is_not_given(elsewhere: Elsewhere) -> None:
    (elsewhere.state / "story.log").unlink()
    (elsewhere.state / "story.log").symlink_to(elsewhere.keys / "desk.key")
    result = weft("logs", elsewhere.file)
    assert result.exit_code == 1
    assert "no log in" in result.stderr
    assert str(elsewhere.state) in result.stderr


def test_requests_of_the_right_form_are_taken_for_what_they_say() -> None:
    assert Wanted(query="q", operator="o", to="s").moves == {"q.o": "s"}
    asked = (Look(), Stop(), Take({"status.json": 0}), Change(Wanted(homes={"q.o": "s"})), Change(Wanted(remove="q")))
    assert [asked_of(encode(one)) for one in asked] == list(asked)
