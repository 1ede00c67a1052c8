"""How are conditions spelled, and which of them follow from others? Texts only: what stands in them is spelled already.

A comparison is spelled one way round. A literal beside a column whose type is known is spelled as what Spark makes of
it there, so that `10`, `10.0` and `10D` are one beside a DOUBLE, and `>= 11` is `> 10` beside a whole number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

INT_MAX = 2**31 - 1
TRUE, FALSE = "true", "false"
OPPOSITE = {"lt": "gte", "lte": "gt", "gt": "lte", "gte": "lt", "eq": "neq", "neq": "eq"}
_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT"), "i"), "STRING": "s", "BOOLEAN": "b",
    "DOUBLE": "d", "TIMESTAMP": "t", "DATE": "y",
}  # fmt: skip
_COLUMN = re.compile(r"\d*@([a-z]?)'[0-9a-f]*'")
_NUMBER = re.compile(r"#-?\d+(\.\d+)?(e[+-]?\d+)?")
_CAST = re.compile(r"cast\((.*);\['([0-9a-f]*)'\]\)", re.DOTALL)
_COMPARISON = re.compile(r"(lte?|n?eq)\((.*)\)", re.DOTALL)
_WHOLE = ("BIGINT", "SMALLINT", "TINYINT", "INT")
_DAY = r"(\d{4}-\d\d-\d\d)"
_MOMENT = re.compile(_DAY + r"(?:[ T](\d\d:\d\d)(?:(:\d\d)(?:\.(\d{1,6}))?)?)?(?:Z|\+00:00)?")
MOMENT, DAY = "TIMESTAMPTZ", "DATE"
"""What the parser calls the types of a moment and of a day."""
Bound = tuple[str, str, "int | float | str"]


def quoted(text: str) -> str:
    """A text such that none of its signs is taken for spelling."""
    return f"'{text.encode().hex()}'"


def column(name: str, type_: str | None = None) -> str:
    """A column of an origin; of a few types it is told that conditions may be spelled alike for."""
    return f"@{_KINDS.get((type_ or '').strip().upper(), '')}{quoted(name.lower())}"


def kind_of(text: str) -> str | None:
    """Of which of the few types a column is (empty: of another); None for what is no column of an origin."""
    found = _COLUMN.fullmatch(text)
    return None if found is None else found[1]


def parts_of(text: str) -> Iterator[str]:
    """What stands between the semicolons of a text, brackets respected; quoted texts have none of either."""
    depth, start = 0, 0
    for at, one in enumerate(text):
        depth += (one in "([") - (one in ")]")
        if one == ";" and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def all_of(word: str, parts: Sequence[str]) -> str:
    """AND or OR of some conditions: flat and sorted, doubles and what says nothing left out."""
    flat: list[str] = []
    for part in parts:
        flat += parts_of(part[len(word) + 1 : -1]) if part.startswith(f"{word}(") else [part]
    neutral, final = (TRUE, FALSE) if word == "and" else (FALSE, TRUE)
    left = sorted(set(flat) - {neutral})
    if final in left:
        return final
    if not left:
        return neutral
    return left[0] if len(left) == 1 else f"{word}({';'.join(left)})"


def opposite(text: str) -> str:
    """NOT of a condition that is spelled already."""
    if text in (TRUE, FALSE):
        return FALSE if text == TRUE else TRUE
    if text.startswith("or(eq(") or text.startswith("eq("):  # of IN, or of a truth
        parts = list(parts_of(text[3:-1])) if text.startswith("or(") else [text]
        if all(part.startswith("eq(") for part in parts):
            return all_of("and", [f"n{part}" for part in parts])
    return text[4:-1] if text.startswith("not(") else f"not({text})"


def compared(word: str, left: str, right: str) -> str:
    """A comparison, one way round."""
    if word in ("gt", "gte"):
        word, left, right = {"gt": "lt", "gte": "lte"}[word], right, left
    known = whole_number(left), whole_number(right)
    if known[0] is not None and known[1] is not None:
        holds = {"lt": known[0] < known[1], "lte": known[0] <= known[1], "eq": known[0] == known[1]}
        return TRUE if holds.get(word, known[0] != known[1]) else FALSE
    left, right = beside(left, right), beside(right, left)
    if word in ("eq", "neq"):
        left, right = sorted((left, right))
        if kind_of(left) == "b" and right in (TRUE, FALSE):
            return left if (right == TRUE) == (word == "eq") else opposite(left)
    if word == "lte":
        word, left, right = _as_less(left, right)
    return f"{word}({left};{right})"


def _as_less(left: str, right: str) -> tuple[str, str, str]:
    """At least 11 is more than 10, of a column of whole numbers."""
    low, high = whole_number(left), whole_number(right)
    if low is not None and kind_of(right) == "i" and low > -INT_MAX:
        return "lt", f"#{low - 1}", right
    if high is not None and kind_of(left) == "i" and high < INT_MAX:
        return "lt", left, f"#{high + 1}"
    return "lte", left, right


def whole_number(text: str) -> int | None:
    """The value of a literal that Spark takes for an INT."""
    value = int(text[1:]) if re.fullmatch(r"#-?\d{1,10}", text) else None
    return value if value is not None and abs(value) <= INT_MAX else None


def beside(text: str, other: str) -> str:
    """A literal as what it is where it is compared with another side, if that is a column of a known type."""
    kind = kind_of(other)
    if kind == "d":
        value = _number(text)
        return text if value is None else f"double({value!r})"
    if kind == "i":
        value = _number(text, _WHOLE)
        is_whole = value is not None and value == int(value) and abs(value) <= INT_MAX
        return f"#{int(value)}" if value is not None and is_whole else text
    if kind in ("t", "y") and text.startswith("'"):
        return cast(text, MOMENT if kind == "t" else DAY)
    return text


def _number(text: str, types: Sequence[str] = (*_WHOLE, "DOUBLE")) -> float | None:
    """The value of a literal of numbers, also of one that names its type, as `10D`."""
    held = _CAST.fullmatch(text)
    if held is not None and bytes.fromhex(held[2]).decode() in types:
        text = held[1]
    sign = -1.0 if text.startswith("neg(") else 1.0
    text = text.removeprefix("neg(").removesuffix(")") if sign < 0 else text
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text[1:])
    return sign * value + 0.0 if math.isfinite(value) else None  # there is one zero


def cast(text: str, type_: str, word: str = "cast") -> str:
    """A value brought to a type in the parser's words; a text that is plainly a moment or a day in one form."""
    if text.startswith("'") and type_ in (MOMENT, DAY):
        said = _MOMENT.fullmatch(bytes.fromhex(text[1:-1]).decode())
        if said is not None and type_ == MOMENT:
            clock, part = f"{said[2] or '00:00'}{said[3] or ':00'}", (said[4] or "").ljust(6, "0")
            text = quoted(f"{said[1]} {clock}.{part}")
    return f"{word}({text};[{quoted(type_)}])"


def is_one_type(value: str, said: Sequence[str]) -> bool:
    """Whether a column and all that it is compared with are whole numbers, texts, or numbers beside a DOUBLE.

    Spark brings what stands in IN to one type, and each `=` by itself: only here is that the same.
    """
    kind = kind_of(value)
    if kind == "i":
        return all(whole_number(one) is not None for one in said)
    if kind == "s":
        return all(one.startswith("'") for one in said)
    # Of many values Spark makes a set, to which the two zeros are two.
    return kind == "d" and all(_number(one) not in (None, 0.0) for one in said)


def without_implied(where: Sequence[str]) -> tuple[str, ...]:
    """Conditions, but for those that others of them imply."""
    left = sorted(set(where))
    for one in tuple(left):
        rest = [other for other in left if other != one]
        if implied(one, rest):
            left = rest
    return tuple(left)


def implied(condition: str, given: Sequence[str]) -> bool:
    """Whether a condition holds wherever some others do; where a row is left out for a null, it is by both."""
    if condition in given:
        return True
    if condition.startswith("or(") and any(implied(part, given) for part in parts_of(condition[3:-1])):
        return True
    if condition.startswith("and("):
        return all(implied(part, given) for part in parts_of(condition[4:-1]))
    return any(_follows(condition, one) for one in given)


def _follows(condition: str, given: str) -> bool:
    """Whether one condition follows from another: a bound from a tighter one, or from each part of an OR."""
    if given.startswith("or("):
        return all(implied(condition, [part]) for part in parts_of(given[3:-1]))
    if given.startswith("and("):
        return implied(condition, list(parts_of(given[4:-1])))
    sides = _sides(given)
    if condition.startswith("not(is(") and sides is not None:
        return any(condition == f"not({is_null(side)})" for side in sides[1:])
    return _is_tighter(condition, given)


def is_null(text: str) -> str:
    """`IS NULL` of what is spelled."""
    return f"is({text};null())"


def _is_tighter(condition: str, given: str) -> bool:
    """`x < 3` follows from `x <= 2`, and from `x = 1`.

    Only literals are compared that are of one type beside what they stand beside: it is cast alike for both.
    """
    wanted, known = _bound(condition), _bound(given)
    if wanted is None or known is None or wanted[1] != known[1]:
        return False
    (word, _, value), (given_word, _, given_value) = wanted, known
    if isinstance(value, str) != isinstance(given_value, str):
        return False
    less, same = given_value < value, given_value == value  # type: ignore[operator]
    more = not less and not same
    follows = {
        "eq": {"eq": same, "neq": not same, "lt": less, "lte": less or same, "gt": more, "gte": more or same},
        "lt": {"lt": less or same, "lte": less or same, "neq": less or same},
        "lte": {"lt": less, "lte": less or same, "neq": less},
        "gt": {"gt": more or same, "gte": more or same, "neq": more or same},
        "gte": {"gt": more, "gte": more or same, "neq": more},
        "neq": {"neq": same},
    }
    return follows[given_word].get(word, False)


def _bound(condition: str) -> Bound | None:
    """A comparison with a literal: how, what is compared, and the value of the literal."""
    sides = _sides(condition)
    if sides is None:
        return None
    word, left, right = sides
    values = _value(left), _value(right)
    if values[1] is not None and values[0] is None:
        return word, left, values[1]
    if values[0] is not None and values[1] is None:
        return {"lt": "gt", "lte": "gte"}.get(word, word), right, values[0]
    return None


def _sides(condition: str) -> tuple[str, str, str] | None:
    """How two sides are compared, and both."""
    match = _COMPARISON.fullmatch(condition)
    sides = list(parts_of(match[2])) if match else []
    return (match[1], sides[0], sides[1]) if match is not None and len(sides) == 2 else None


def _value(text: str) -> int | float | str | None:
    """The value of a literal that is ordered as Spark orders what is compared with it."""
    if text.startswith("double("):
        return float(text[7:-1])
    held = _CAST.fullmatch(text)
    if held is not None and held[1].startswith("'") and bytes.fromhex(held[2]).decode() in (MOMENT, DAY):
        said = bytes.fromhex(held[1][1:-1]).decode()
        return said if re.fullmatch(_DAY + r"( \d\d:\d\d:\d\d\.\d{6})?", said) else None
    return whole_number(text)
