"""Weft: continuous queries over many sites on Apache Spark, placed and measured by what they were promised."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft import model, spec
    from weft.bodies import twin
    from weft.bodies.live.api import run
    from weft.lab.sweep import sweep
    from weft.spark.ordering.dataframe import order
    from weft.spec import load

__version__ = "0.1.0"
__all__ = ["load", "model", "order", "run", "spec", "sweep", "twin"]


def __getattr__(name: str) -> Any:
    """What stands in `__all__`, imported at first use: `import weft` costs nothing."""
    if name == "load":
        return importlib.import_module("weft.spec").load
    if name in ("model", "spec"):
        return importlib.import_module(f"weft.{name}")
    if name == "order":
        return importlib.import_module("weft.spark.ordering.dataframe").order
    if name == "run":
        return importlib.import_module("weft.bodies.live.api").run
    if name == "sweep":
        return importlib.import_module("weft.lab.sweep").sweep
    if name == "twin":
        return importlib.import_module("weft.bodies.twin")
    raise AttributeError(f"module 'weft' has no attribute {name!r}")
