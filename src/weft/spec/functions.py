"""Does Spark have the functions that a statement calls? Told before Spark starts, by the names that it has itself."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from weft.model import Deployment, Spark
from weft.spec.problems import brief, did_you_mean
from weft.spec.spark_functions import FUNCTIONS, SYNTAX

# Settings by which Spark comes to know functions that are not its own, under names without anything before them.
_BRINGS_MORE = ("spark.sql.extensions", "spark.sql.defaultCatalog", "spark.sql.catalogImplementation")
_OWN = "one of your own is written with what holds it, as `default.{0}`"


def unknown_functions(sql: str, tree: exp.Expr, deployment: Deployment) -> Iterator[tuple[str, int]]:
    """Messages for what is called and not there, with the line in the statement.

    Names as written count: sqlglot knows functions of other systems, and calls some of Spark's by another name.
    """
    if any(key in spark.conf for spark in _sparks(deployment) for key in _BRINGS_MORE):
        return
    told = {None, *FUNCTIONS, *SYNTAX}
    for node in tree.find_all(exp.Func):
        name = called(sql, node)
        if name not in told:
            told.add(name)
            says = f"Spark has no function `{brief(name)}` ({_OWN.format(brief(name))})"
            yield says + did_you_mean(name or "", FUNCTIONS), int(node.meta["line"])


def called(sql: str, node: exp.Expr) -> str | None:
    """The lower-case name by which a statement calls a function; None where it is no plain name, or a hint."""
    if not isinstance(node, exp.Func) or "start" not in node.meta or node.find_ancestor(exp.Hint) or _is_held(node):
        return None
    name = sql[node.meta["start"] : node.meta["end"] + 1]
    return name.lower() if name.isidentifier() else None


def _sparks(deployment: Deployment) -> list[Spark]:
    return [deployment.spark, *(site.spark for site in deployment.sites)]


def _is_held(node: exp.Func) -> bool:
    """Whether a function is called by the name of what holds it, too: `default.risk(kwh)`."""
    return isinstance(node.parent, exp.Dot) and node.arg_key == "expression"
