"""Keys: private, never overwritten, made out to one party each, of use only with their own authority."""

from __future__ import annotations

import datetime
import json
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.spec.spec_texts import GOOD
from weft.bodies.live.wire.authority import KeysThere, make_keys, own_keys, valid_until
from weft.bodies.live.wire.credentials import NoKey, credentials
from weft.bodies.live.wire.parties import A_COMMAND, THE_DESK, site
from weft.cli.app import app


def test_keys_are_for_their_user_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        made = make_keys(tmp_path / "keys", ["a", "b"], days=10)
    finally:
        os.umask(old)
    assert made.new == ("site-a", "site-b", "desk", "command")
    files = sorted((tmp_path / "keys").iterdir())
    assert len(files) == 10
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    left = valid_until(tmp_path / "keys", site("a")) - datetime.datetime.now(datetime.UTC)
    assert datetime.timedelta(days=9) < left < datetime.timedelta(days=10, minutes=1)
    for party in (site("a"), THE_DESK, A_COMMAND):
        assert credentials(tmp_path / "keys", party).party == party


def test_nothing_is_overwritten_and_a_new_site_gets_its_key_from_the_same_authority(tmp_path: Path) -> None:
    make_keys(tmp_path, ["a"])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(KeysThere, match="holds a key for everyone already"):
        make_keys(tmp_path, ["a"])
    made = make_keys(tmp_path, ["a", "b"])
    assert (made.new, made.kept) == (("site-b",), ("site-a", "desk", "command"))
    assert all((tmp_path / name).read_bytes() == content for name, content in before.items())
    (tmp_path / "authority.key").unlink()
    with pytest.raises(KeysThere, match="no authority"):
        make_keys(tmp_path, ["a", "b", "c"])


def test_keys_that_cannot_be_used_are_refused_with_what_helps(tmp_path: Path) -> None:
    with pytest.raises(NoKey, match="weft keys FILE"):
        credentials(tmp_path, site("a"))
    make_keys(tmp_path, ["a", "b"])
    (tmp_path / "site-a.key").chmod(0o640)
    with pytest.raises(NoKey, match="chmod 600"):
        credentials(tmp_path, site("a"))
    (tmp_path / "site-b.key").write_bytes((tmp_path / "desk.key").read_bytes())
    with pytest.raises(NoKey, match="cannot be used"):
        credentials(tmp_path, site("b"))


def test_a_run_on_one_machine_makes_its_own_keys_and_makes_them_anew_before_they_end(tmp_path: Path) -> None:
    folder = own_keys(tmp_path / "keys", ["a"])
    first = (folder / "authority.pem").read_bytes()
    assert (own_keys(folder, ["a", "b"]) / "site-b.pem").exists()
    assert (folder / "authority.pem").read_bytes() == first
    short = tmp_path / "short"
    make_keys(short, ["a"], days=1)
    ending = (short / "authority.pem").read_bytes()
    own_keys(short, ["a"])
    assert (short / "authority.pem").read_bytes() != ending
    assert len([one for one in tmp_path.iterdir() if one.name.startswith("short-until")]) == 1


def test_the_command_makes_keys_says_until_when_and_refuses_a_second_time(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "readings-1.csv").write_text("2024-01-01T00:00:00,m,1.0\n")
    (tmp_path / "rules.py").write_text("def over_threshold(frame, kwh):\n    return frame\n")
    file = tmp_path / "d.yaml"
    file.write_text(GOOD)
    done = CliRunner().invoke(app, ["keys", str(file), "--json", "--days", "30"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["made"] == ["site-gw-1", "site-district", "desk", "command"]
    assert told["folder"] == str(tmp_path / "keys")
    assert told["valid_until"].endswith("UTC")
    again = CliRunner().invoke(app, ["keys", str(file)])
    assert again.exit_code == 2
    assert "holds a key for everyone already" in again.output
    other = CliRunner().invoke(app, ["keys", str(file), "--out", str(tmp_path / "other")])
    assert other.exit_code == 0
    assert "valid until" in other.stdout
