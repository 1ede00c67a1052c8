"""Does a file of lines hold what it is given? A field of csv is one value: no struct, array or map."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from weft.model import Operator
from weft.model.formats import SINKS
from weft.spec.functions import called
from weft.spec.problems import brief
from weft.spec.sql import SqlError, parsed, spark_name, unwrapped
from weft.spec.streams import Columns

_TYPES = ("STRUCT", "ARRAY", "MAP")
# Functions whose value is always a struct, an array or a map: types of columns are known only where they are sure.
_MAKE = frozenset(
    """
    array array_agg array_append array_compact array_distinct array_except array_insert array_intersect array_prepend
    array_remove array_repeat array_sort array_union arrays_zip collect_list collect_set filter flatten from_csv
    from_json histogram_numeric map map_concat map_entries map_filter map_from_arrays map_from_entries map_keys
    map_values map_zip_with named_struct regexp_extract_all sentences sequence session_window slice sort_array split
    str_to_map struct transform_keys transform_values window zip_with
    """.split()  # noqa: SIM905 (a table reads better than forty quoted words)
)


def nested_in(columns: Columns, operator: Operator | None = None) -> dict[str, str]:
    """What of a stream no line of csv holds: columns that are surely nested, each with what it is."""
    found = {one.name: one.type for one in columns or () if one.type and one.type.upper().startswith(_TYPES)}
    return found | ({} if operator is None or operator.sql is None or columns is None else _made(operator.sql))


def _made(sql: str) -> dict[str, str]:
    """The columns that a statement's own SELECT makes of nested values."""
    try:
        select = unwrapped(parsed(sql))
    except SqlError:
        return {}
    if not isinstance(select, exp.Select):
        return {}
    made = {spark_name(one): called(sql, one.unalias()) for one in select.selects}
    return {name: f"{function}(...)" for name, function in made.items() if name and function and function in _MAKE}


def says_nested(nested: Mapping[str, str], whose: str, format_: str) -> str:
    """What is wrong with that in a csv, and what to do."""
    name, type_ = next(iter(nested.items()))
    apart = f"{name}.start" if "start: TIMESTAMP" in type_ or type_.startswith("window") else f"to_json({name})"
    others = [one.name for one in SINKS.values() if one.has_path and not one.flat]
    return (
        f"{format_} holds no nested columns, and `{name}` of `{whose}` is {brief(type_)}; "
        f"write {' or '.join(others)}, or let an operator take it apart, as `SELECT {apart}`"
    )
