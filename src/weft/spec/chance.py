"""May asking twice give two answers? Then nobody shares it: each query has its own chance, and its own now."""

from __future__ import annotations

import re

from sqlglot import exp

from weft.spec.spark_functions import FUNCTIONS, SYNTAX

_NAMES = frozenset(
    """
    rand randn random randstr uniform uuid uuid_string shuffle monotonically_increasing_id spark_partition_id
    input_file_name input_file_block_start input_file_block_length now current_timestamp current_date curdate
    current_time current_datetime localtime localtimestamp current_timezone current_user session_user user
    current_catalog current_database current_schema version java_method reflect try_reflect sysdate getdate
    first first_value last last_value any_value collect_list collect_set array_agg listagg string_agg group_concat
    mode max_by min_by arg_max arg_min argmax argmin array_unique_agg array_concat_agg approx_top_k histogram_numeric
    aes_encrypt kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float
    """.split()  # noqa: SIM905 (a table reads better than fifty quoted words)
)
# What Spark itself calls not deterministic is here, too: first, last and lists depend on the order of records.
_NOW = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""What Spark takes for a moment wherever a text becomes one, also by itself: `ts > 'now'`."""
_CHANGES = (
    exp.Trim,
    exp.Substring,
    exp.Replace,
    exp.Reverse,
    exp.ConcatWs,
    exp.Left,
    exp.Right,
    exp.Pad,
)
_WITHOUT_BRACKETS = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")
"""What Spark reads as a call where no column has that name."""
_SPARKS = FUNCTIONS | SYNTAX


def is_by_chance(node: exp.Expr) -> bool:
    """True if a part of a statement may differ between two who ask the same of the same records."""
    if isinstance(node, (exp.Limit, exp.Offset, exp.Fetch, exp.TableSample)):
        return True
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        return name in _NAMES or name not in _SPARKS  # what a function of one's own does nobody can see
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        return True
    if isinstance(node, exp.Literal):
        return bool(node.is_string) and _NOW.match(str(node.this)) is not None
    if isinstance(node, exp.Column):
        return not node.table and node.name.lower() in _WITHOUT_BRACKETS
    if isinstance(node, (exp.DPipe, exp.Concat, *_CHANGES)) and _is_constant(node):
        return True  # a text that is put together may be one of those
    return isinstance(node, exp.Func) and any(name.lower() in _NAMES for name in node.sql_names())


def _is_constant(node: exp.Expr) -> bool:
    return not any(isinstance(one, (exp.Column, exp.Identifier)) for one in node.walk())
