"""docs/control.md names every key under `control:`, with the default that it has and an example that is right."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.spec.spec_texts import GOOD, folder_with_data, written
from weft import spec
from weft.model import Advise, Balance, Order, Place, Project, Relief, Scale, Serve, Share

PAGE = ROOT / "docs" / "control.md"
DEFAULTS: dict[str, Any] = {
    "place": Place(), "share": Share(), "relief": Relief(), "advise": Advise(), "project": Project(),
    "order": Order(), "balance": Balance(), "scale": Scale(), "serve": Serve(),
}  # fmt: skip


def rows() -> list[tuple[str, str, str, str, str]]:
    """Every row of the page: the part, the key, its default, its example, and what it does and costs."""
    found, part = [], ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            part = line[3:].strip()
        elif line.startswith("| `"):
            key, default, example, does, costs = (cell.strip() for cell in line.strip("|").split(" | "))
            found.append((part, key.strip("`"), default.strip("`"), example.strip("`"), f"{does} {costs}"))
    return found


def keys_of(form: dict[str, Any]) -> set[str]:
    """The keys of a part in the JSON Schema, of all its forms."""
    return {*form.get("properties", {}), *(key for one in form.get("oneOf", []) for key in keys_of(one))}


def test_every_key_of_the_schema_has_its_row_and_no_other() -> None:
    parts = spec.schema()["properties"]["control"]["properties"]
    assert {(part, key) for part, form in parts.items() for key in keys_of(form)} == {row[:2] for row in rows()}


@pytest.mark.parametrize("row", rows(), ids=lambda row: ".".join(row[:2]))
def test_a_key_has_its_default_and_an_example_that_is_right(row: tuple[str, ...], tmp_path: Any) -> None:
    part, key, default, example, said = row
    held = DEFAULTS[part]
    names = {one.name.rstrip("_"): one.name for one in dataclasses.fields(held)}
    value = getattr(held, names[key])
    plain = dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value
    assert (None if default == "absent" else yaml.safe_load(default)) == plain
    assert len(said) > len(key)
    assert example.startswith(f"{key}: ")
    old = re.search(r"control:\n.*\n", GOOD)
    assert old is not None
    text = GOOD.replace(old[0], f"control:\n  {part}: {{{example}}}\n")
    assert spec.check(written(folder_with_data(tmp_path / "here"), text)).errors == ()
