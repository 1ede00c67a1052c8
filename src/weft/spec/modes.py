"""Can Spark run it on an endless stream? Windows, watermarks and output modes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from weft.model import Operator
from weft.model.formats import SINKS
from weft.spec.ddl import is_timestamp, is_window
from weft.spec.facts import asked_within, is_stateful, keys_of, shared_ctes, stream_joins
from weft.spec.nested import nested_in, says_nested
from weft.spec.ordering import order_of
from weft.spec.problems import Problems, did_you_mean, listed
from weft.spec.sql import aggregates, group_keys, is_window_call, local, selects, unwrapped
from weft.spec.step import Step
from weft.spec.streams import Columns, event_time_of

_TOP = (
    "; for the first few of each window let an operator behind it, with `watermark: 0 seconds`, collect them: "
    "SELECT w, slice(sort_array(collect_list(struct(t, m)), false), 1, 3) top FROM sums GROUP BY w"
)
_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "year")
_ADD_WATERMARK = "add `watermark: 10 minutes` (how late a record may be) to the operator"


def check_watermarks(step: Step) -> dict[str, str]:
    """The watermark's column by input, with every problem there is with watermarks."""
    marked: dict[str, str] = {}
    operator = step.operator
    for mark in operator.watermarks:
        key = "watermark" + (f".{mark.input}" if mark.input is not None else "")
        if mark.input is not None and mark.input not in operator.from_:
            says = f"`{mark.input}` is not an input; `from` has: {listed(operator.from_)}"
            step.error(key, says + did_you_mean(mark.input, operator.from_))
            continue
        for name in operator.from_ if mark.input is None else (mark.input,):
            column = mark.column or event_time_of(step.deployment, step.query, name, step.inputs)
            if column is None:
                says = f"`{name}` has no known event time; name its column: {{column: ..., delay: {mark.delay}}}"
                if step.clean:
                    step.error(key, says)
                continue
            marked[name] = column
            if mark.column is not None:
                _check_column(step, mark.column, name, f"{key}.column")
    return marked


def check_late(step: Step) -> None:
    """Reports an operator that would keep late records, but that leaves none out."""
    operator = step.operator
    if operator.late is None:
        return
    if not is_stateful(operator):
        says = "keeps no state, so that no record comes too late for it"
        step.error("late", f"`{operator.name}` {says}; say it at the operator whose windows close, or leave it out")
    elif order_of(step.deployment, operator) is not None:
        says = "`order` puts what comes too late aside before it can be left out, in the state folder's `late`"
        step.error("late", f"{says}; keep one of the two")
    elif not operator.watermarks:
        step.error("late", f"`{operator.name}` has no watermark, so that no record comes too late; {_ADD_WATERMARK}")
    elif SINKS[operator.late.format].flat:
        for name, columns in step.inputs.items():
            nested = nested_in(columns)
            if nested:
                step.error("late.format", says_nested(nested, name, operator.late.format))


def _check_column(step: Step, column: str, name: str, key: str) -> None:
    columns = step.inputs.get(name)
    if columns is None:
        return
    root, _, part = column.partition(".")
    by_name = {one.name.lower(): one for one in columns}
    found = by_name.get(column.lower()) or by_name.get(root.lower())
    if found is None:
        names = [one.name for one in columns]
        step.error(key, f"`{name}` has no column `{root}`; it has: {listed(names)}{did_you_mean(root, names)}")
    elif not part and found.type is not None and not is_timestamp(found.type) and not is_window(found.type):
        step.error(key, f"`{column}` is {found.type}; a watermark needs a TIMESTAMP column or a window")


def check_statement(step: Step, tree: exp.Expr) -> None:
    """Reports what no endless stream can do, whatever the mode."""
    top = unwrapped(tree)
    for word, name in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET"), ("sort", "SORT BY")):
        if top.args.get(word) or tree.args.get(word):
            says = f"{name} does not end on an endless stream; leave it out, or sort what the sink wrote"
            step.error("sql", says + (_TOP if name == "LIMIT" else ""))
    for name in shared_ctes(tree):
        says = f"Spark reads a stream once in a statement, and `{name}` is read more than once; write its query out"
        step.error("sql", says + " each time, or make it an operator")
    for kind, instead in (
        (exp.Except, "LEFT OUTER JOIN and keep what found nothing"),
        (exp.Intersect, "LEFT SEMI JOIN"),
    ):
        if tree.find(kind):
            step.error("sql", f"Spark has no {kind.__name__.upper()} of streams; write a {instead}")
    for select in selects(tree):
        if asked_within(select):
            says = "Spark asks no stream from within WHERE or SELECT; write IN or EXISTS as a LEFT SEMI JOIN"
            step.error("sql", says)
        if any(str(join.args.get("kind") or "").upper() == "ANTI" for join in stream_joins(select)):
            says = "Spark joins no two streams by LEFT ANTI JOIN; write a LEFT OUTER JOIN with a time condition"
            step.error("sql", says + ", and keep what found nothing: WHERE r.k IS NULL")
        for node in local(select):
            if isinstance(node, exp.Window):
                says = "OVER (...) needs all records at once; group by window(...) instead, or use `call`"
                step.error("sql", says)
            elif isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
                says = "Spark counts no DISTINCT values on a stream; use approx_count_distinct(...)"
                step.error("sql", says)
            elif is_window_call(node):
                _check_length(step, node)


def _check_length(step: Step, window: exp.Expr) -> None:
    """Reports a word in the length of a window that is no unit of time."""
    for length in window.expressions[1:]:
        words = re.findall(r"[a-z]+", length.name.lower()) if isinstance(length, exp.Literal) else []
        wrong = next((word for word in words if word.removesuffix("s") not in (*_UNITS, "interval")), None)
        if wrong is not None:
            says = f"`{wrong}` in '{length.name}' is no unit of time; write a length as '10 minutes'"
            step.error("sql", says + did_you_mean(wrong, _UNITS))


def _check_distinct(step: Step, tree: exp.Expr) -> None:
    """Reports duplicates removed anywhere but in the statement's own SELECT."""
    if any(isinstance(one, exp.Union) and one.args.get("distinct") for one in tree.find_all(exp.Union)):
        says = "UNION also removes duplicates, for which append mode would wait for ever; write UNION ALL"
        step.error("sql", says + ", and SELECT DISTINCT in an operator of its own")
    if any(select.args.get("distinct") and select is not unwrapped(tree) for select in selects(tree)):
        says = "append mode would wait for ever for a DISTINCT within a statement; make it an operator of its own"
        step.error("sql", says)


def check_append(step: Step, tree: exp.Expr, marked: dict[str, str]) -> None:
    """Reports state that append mode would never let go."""
    _check_distinct(step, tree)
    for select in selects(tree):
        for join in stream_joins(select):
            side = str(join.args.get("side") or "").upper()
            and_time = "" if _bounds_time(join) else ", and a time condition to ON"
            if side in ("LEFT", "RIGHT", "FULL") and not marked and join.args.get("kind") != "SEMI":
                says = f"a {side} OUTER JOIN of streams waits for ever without watermarks; {_ADD_WATERMARK}"
                step.error("sql", says + and_time)
            elif not marked:
                says = f"a join of streams without a watermark keeps every record for ever; {_ADD_WATERMARK}"
                step.warn("sql", says + and_time)
        if not aggregates(select):
            continue
        windowed = _is_windowed(select, tree, step.inputs, marked)
        if windowed is None:
            continue
        if not windowed:
            says = "an aggregate without a time window never ends in append mode; group by window(...) and "
            says += f"{_ADD_WATERMARK}, or set `mode: update` on a sink that reads it"
            step.error("sql", says)
        elif not step.operator.watermarks:
            says = f"a windowed aggregate in append mode ends its windows only with a watermark; {_ADD_WATERMARK}"
            step.error("watermark", says)
        else:
            _check_window_column(step, select, marked)


def _bounds_time(join: exp.Join) -> bool:
    """Whether a join says already how far apart its records may be: by a range of something."""
    on = join.args.get("on")
    return on is not None and any(on.find_all(exp.Between, exp.LT, exp.LTE, exp.GT, exp.GTE))


def _is_windowed(
    select: exp.Select, tree: exp.Expr, inputs: Mapping[str, Columns], marked: dict[str, str]
) -> bool | None:
    """Whether a grouping key follows event time; None where columns are not known well enough to say."""
    times = {column.split(".")[0].lower() for column in marked.values()}
    for cols in inputs.values():
        times |= {col.name.lower() for col in cols or () if is_window(col.type)}
    made = [one for inner in selects(tree) for one in inner.selects if any(map(is_window_call, one.unalias().walk()))]
    times |= {one.alias_or_name.lower() for one in made if one.alias_or_name} | {"window", "session_window"}
    keys = group_keys(select)
    for key in keys:
        named = [part.name.lower() for column in key.find_all(exp.Column) for part in column.parts]
        if any(is_window_call(node) for node in key.walk()) or times & set(named):
            return True
    unknown = any(cols is None for cols in inputs.values())
    return None if unknown and any(isinstance(key, exp.Column) for key in keys) else False


def _check_window_column(step: Step, select: exp.Select, marked: dict[str, str]) -> None:
    """Reports a window over another column than the watermark's, where both are columns of the inputs."""
    inputs = step.inputs
    every = {col.name.lower() for cols in inputs.values() for col in cols or ()}
    over = [node.expressions[0] for node in local(select) if is_window_call(node) and node.expressions]
    names = {node.parts[0].name.lower() for node in over if isinstance(node, exp.Column) and not node.table}
    times = {column.split(".")[0].lower() for column in marked.values()}
    known = all(cols is not None for cols in inputs.values())
    if names and times and known and step.clean and names <= every and not names & times:
        says = f"the window is over `{listed(sorted(names))}`, the watermark on `{listed(sorted(times))}`; use one"
        step.error("watermark", says)


def check_update(operator: Operator, key: tuple[str, ...], field: str, problems: Problems) -> None:
    """Reports an update sink on an operator that only appends."""
    if operator.sql is not None and not key and not is_stateful(operator):
        says = f"`{operator.name}` only appends; use `mode: append`, or name the `key` that a later record replaces"
        problems.error(field, says)
    elif operator.sql is not None and not key and not keys_of(operator):
        says = f"the grouping key of `{operator.name}` does not show in its columns; name the sink's `key`"
        problems.warn(field, says)
