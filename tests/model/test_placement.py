"""A placement keeps homes, instances and backups apart, by stream."""

from __future__ import annotations

from weft.model import Placement

PLACED = Placement(
    {"q.a": "x", "q.b": "y"}, {"q.a": ("z",)}, backups={"q.a": ("y",), "q.b": ("x", "z")}, reasons={"q.a": "r"}
)


def test_putting_an_operator_elsewhere_keeps_every_copy_but_the_one_it_joins() -> None:
    moved = PLACED.put("q.a", "y", "asked for")
    assert (moved.home("q.a"), moved.reasons["q.a"]) == ("y", "asked for")
    assert moved.sites_of("q.a") == ("y", "z")
    assert moved.sites_of("q.b") == ("y", "x", "z")
    assert PLACED.put("q.a", "w").sites_of("q.a") == ("w", "z", "y")
    assert PLACED.home("q.a") == "x"


def test_a_site_has_every_operator_with_a_copy_there() -> None:
    assert {site: list(PLACED.on(site)) for site in "xyz"} == {
        "x": ["q.a", "q.b"], "y": ["q.a", "q.b"], "z": ["q.a", "q.b"]
    }  # fmt: skip
    assert list(Placement({"q.a": "x", "q.b": "y"}).on("x")) == ["q.a"]


def test_what_commands_print_names_the_home_first() -> None:
    assert PLACED.as_json() == {"q": {"a": ["x", "z", "y"], "b": ["y", "x", "z"]}}
