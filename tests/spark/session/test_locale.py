"""Java finds files whatever letters their names have, also where the locale is plain C."""

from __future__ import annotations

import os
import subprocess

import pytest

from weft.spark.session.class_archive import java_command
from weft.spark.session.starting import _environment, _locale

NAMES = ("LC_ALL", "LC_CTYPE", "LANG")


@pytest.mark.parametrize(
    ("told", "changed"),
    [
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, True),
        ({"LANG": "POSIX"}, True),
        ({}, True),
        ({"LC_ALL": "C.UTF-8"}, False),
        ({"LC_ALL": "C.utf8"}, False),
        ({"LC_CTYPE": "en_US.UTF-8", "LANG": "C"}, False),
    ],
)
def test_a_plain_locale_is_made_one_of_utf8(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, str], changed: bool
) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert bool(_locale()) == changed


def test_java_is_told_so_while_it_starts_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    java = java_command()
    if java is None:
        pytest.skip("no Java here")
    monkeypatch.setenv("LC_ALL", "C")
    before = dict(os.environ)
    words = [str(java), "-XX:TieredStopAtLevel=1", "-XshowSettings:properties", "-version"]
    with _environment(**_locale()):
        told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stderr
    assert "sun.jnu.encoding = UTF-8" in told
    assert dict(os.environ) == before
