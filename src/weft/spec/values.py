"""What may a value be that many keys share? Names, amounts and shares."""

from __future__ import annotations

from weft.spec.shapes import Number, Scalar, Text
from weft.spec.tables import ByName

SITE_NAME = Text(
    "a name (a letter, then letters, digits, `_`, `-` or `.`)",
    r"[A-Za-z][A-Za-z0-9_.-]{0,99}",
)

NAME = Text(
    "a name (a letter, then letters, digits, `_` or `-`)",
    r"[A-Za-z][A-Za-z0-9_-]{0,99}",
    "; rename it",
)

KNOWN_STREAM = Text("the name of a source or an operator")
KNOWN_SITE = Text("the name of a site")
POSITIVE = Number(above=0)
NOT_NEGATIVE = Number(at_least=0)
SHARE = Number(at_least=0, at_most=1)
USE = Number(above=0, at_most=1)
OPTIONS = ByName(Scalar())
