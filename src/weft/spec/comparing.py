"""Is text taken for a number? Spark finds out at the first record: a text that is none ends the run there."""

from __future__ import annotations

from sqlglot import exp

from weft.spec.problems import brief
from weft.spec.sql import local, unwrapped
from weft.spec.step import Step
from weft.spec.sure import kind_of

_NUMBERS = ("integer", "floating", "decimal")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def check_numbers(step: Step, tree: exp.Expr) -> None:
    """Reports numbers compared with text that is none, and warns of sums of text.

    Only of a plain SELECT over columns whose names and types are known: within others a name may mean something else.
    Without ANSI's rules such a text is NULL, and nothing fails.
    """
    sparks = (step.deployment.spark, *(site.spark for site in step.deployment.sites))
    if any(str(spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "false" for spark in sparks):
        return
    select = unwrapped(tree)
    if not isinstance(select, exp.Select) or len(list(select.find_all(exp.Query))) > 1:
        return
    kinds: dict[str, str | None] = {}
    for columns in step.inputs.values():
        for one in columns or ():
            name = one.name.lower()
            kinds[name] = kind_of(one.type) if kinds.get(name, kind_of(one.type)) == kind_of(one.type) else None
    made = {one.alias.lower() for one in select.selects if isinstance(one, exp.Alias)}

    def kind(node: exp.Expr) -> str | None:
        if not isinstance(node, exp.Column) or len(node.parts) > 2 or node.name.lower() in made:
            return None
        return kinds.get(node.name.lower())

    for node in local(select):
        if isinstance(node, _COMPARISONS):
            for column, text in ((node.this, node.expression), (node.expression, node.this)):
                if kind(column) in _NUMBERS and isinstance(text, exp.Literal) and text.is_string and not _number(text):
                    says = f"`{column.name}` is a number and '{brief(text.name)}' is none"
                    step.error("sql", f"{says}: Spark fails at the first record; compare it with a number")
        elif isinstance(node, (exp.Sum, exp.Avg)) and kind(node.this) == "text":
            says = f"`{node.this.name}` is a STRING, and one that holds no number ends the run"
            step.warn("sql", f"{says}; try_cast({node.this.name} AS DOUBLE) makes it NULL")


def _number(text: exp.Literal) -> bool:
    try:
        float(text.name.strip().rstrip("dDfF"))
    except ValueError:
        return False
    return True
