"""Costs that nobody declares are assumed in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import weft
from weft.model import Operator
from weft.model.queries import COST_MS_DEFAULT
from weft.plan.dataflow.rates import cost_ms


def test_the_cost_that_is_assumed_stands_in_the_model_alone() -> None:
    assert cost_ms(Operator("o", ("s",))) == COST_MS_DEFAULT
    found = []
    root = Path(weft.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.id for one in getattr(node, "targets", []) if isinstance(one, ast.Name)]
            value = getattr(node, "value", None)
            if any("COST_MS" in name for name in names) and isinstance(value, ast.Constant):
                found += [str(path.relative_to(root))] if value.value == COST_MS_DEFAULT else []
    assert found == ["model/queries.py"]
