"""Other words for a function are found, and no two functions are taken for one that are not."""

from __future__ import annotations

import pytest

from weft.spec.canonical import meaning_of
from weft.spec.relations import origin
from weft.spec.spark_functions import FUNCTIONS

TYPES = {"ts": "TIMESTAMP", "k": "STRING", "n": "INT", "v": "DOUBLE", "b": "BOOLEAN", "d": "DATE", "a": None}
READ = origin("source[s]", tuple(TYPES), tuple(TYPES.values()))
ALIKE = [
    {"avg", "mean"}, {"bool_and", "every"}, {"bool_or", "some"}, {"ceil", "ceiling"}, {"coalesce", "ifnull", "nvl"},
    {"char_length", "character_length", "len", "length"}, {"date", "to_date"}, {"date_diff", "datediff"},
    {"date_add", "dateadd"}, {"day", "dayofmonth"}, {"lcase", "lower"}, {"ucase", "upper"}, {"sign", "signum"},
    {"std", "stddev", "stddev_samp"}, {"substr", "substring"}, {"var_samp", "variance"}, {"pow", "power"},
    {"regexp_like", "rlike"}, {"aggregate", "reduce"},
]  # fmt: skip
NO_FUNCTIONS = {"and", "or", "map"}


@pytest.mark.parametrize("words", ["(v)", "(v, n)", "(k, 1, 2)", "(DAY, n, d)"])
def test_functions_are_spelled_alike_only_if_they_are_one(words: str) -> None:
    spelled: dict[str, set[str]] = {}
    for name in sorted(FUNCTIONS - NO_FUNCTIONS):
        if name.isidentifier():
            found = meaning_of(f"SELECT {name}{words} AS z FROM s", {"s": READ}, {}, ("z",))
            if found is not None:
                spelled.setdefault(found.key, set()).add(name)
    assert [names for names in spelled.values() if len(names) > 1 and names not in ALIKE] == []
