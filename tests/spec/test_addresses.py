"""Addresses of sites and desk, and the folder of keys: what cannot be is refused, with the field and what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.spec_texts import GOOD
from weft.model.sites import where
from weft.spec import check

FIRST = "{name: gw-1, capacity: 1.0, quota: 0.8, parent: district}"
SECOND = "{name: district, capacity: 2.0}"


def checked(folder: Path, first: str, second: str, more: str = "") -> list[tuple[str, str]]:
    """The errors of a file whose two sites have these addresses."""
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "readings-1.csv").write_text("2024-01-01T00:00:00,m,1.0\n")
    (folder / "rules.py").write_text("def over_threshold(frame, kwh):\n    return frame\n")
    text = GOOD
    for site, address in ((FIRST, first), (SECOND, second)):
        text = text.replace(site, site[:-1] + (f', address: "{address}"}}' if address else "}"))
    (folder / "d.yaml").write_text(text + more)
    report = check(folder / "d.yaml")
    if report.deployment is not None and first:
        assert report.deployment.sites[0].address == first
    return [(problem.field, problem.message) for problem in report.errors]


def test_addresses_and_keys_are_read(tmp_path: Path) -> None:
    assert checked(tmp_path, "gw.example:7101", "[::1]:7102", 'desk: "10.0.0.1:7100"\nkeys: ../keys\n') == []
    assert where("[::1]:7102") == ("::1", 7102)
    assert where("gw.example:7101") == ("gw.example", 7101)


@pytest.mark.parametrize(
    ("first", "second", "more", "field", "says"),
    [
        ("gw.example", "b:7102", "", "sites[0].address", "must be an address, as `host:port`"),
        ("gw example:7101", "b:7102", "", "sites[0].address", "must be an address"),
        ("../x:7101", "b:7102", "", "sites[0].address", "must be an address"),
        ("a:70000", "b:7102", "", "sites[0].address", "port 70000 is none"),
        ("a:0", "b:7102", "", "sites[0].address", "port 0 is none"),
        ("0.0.0.0:7101", "b:7102", "", "sites[0].address", "no address that others could call"),
        ("a:7101", "A:7101", "", "sites[1].address", "is the address of sites[0] too"),
        ("a:7101", "b:7102", 'desk: "b:7102"\n', "desk", "is the address of sites[1] too"),
        ("a:7101", "", "", "sites[1].address", "`gw-1` has one"),
        ("a:7101", "b:7102", "keys: rules.py\n", "keys", "is no folder"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, first: str, second: str, more: str, field: str, says: str) -> None:
    errors = checked(tmp_path, first, second, more)
    assert [one for one, _ in errors] == [field], errors
    assert says in errors[0][1]
