"""What was written that the parser does not hand on? It reads some functions as others, and spells formats anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

# Functions whose spelling says all: the parser reads no other name as one of these, or only a synonym.
_PLAIN = frozenset(
    """
    sum avg mean min max count window session_window coalesce nvl ifnull if upper lower abs cast in and or not on from
    join as where select by having when then else union all distinct exists using between like case interval decimal
    numeric dec with round floor sqrt int integer bigint smallint tinyint double float string boolean
    lcase ucase ceil ceiling pow power len length char_length character_length sign signum substr substring mod
    transform filter aggregate reduce rlike regexp_like startswith endswith date_add dateadd datediff date_diff
    concat extract
    """.split()  # noqa: SIM905
)
_TEXTS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING, TokenType.BYTE_STRING)
_OF_LENGTH = ("char", "character", "varchar")
"""Types that the parser takes for STRING, whatever their length."""
NOTE = "as_written"
"""Under this word a function's node says what it was called, and a statement's the calls that have no node."""


def note_calls(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Writes into each function of a tree by which name it was called, with the texts among its arguments."""
    calls = dict(_calls(tokens))
    for node in tree.find_all(exp.Func):
        said = calls.pop(node.meta.get("start", -1), None)
        if said is not None:
            node.meta[NOTE] = said
    for alias in tree.find_all(exp.TableAlias):
        if isinstance(alias.this, exp.Identifier):
            calls.pop(alias.this.meta.get("start", -1), None)  # `q(x, y)` names columns
    tree.meta[NOTE] = tuple(calls.values())


def _calls(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Where a function is called, and in which words; those whose spelling says all are left out."""
    open_: list[tuple[Token, list[str]] | None] = []
    found: list[tuple[int, str]] = []
    for before, token in zip([None, *tokens[:-1]], tokens, strict=True):
        if token.token_type == TokenType.L_PAREN:
            is_call = before is not None and before.text.replace("_", "a").isalnum() and not before.text.isdigit()
            name = before.text.lower() if before is not None and is_call else ""
            open_.append((before, []) if before is not None and name and name not in _PLAIN else None)
        elif token.token_type == TokenType.R_PAREN and open_:
            call = open_.pop()
            if call is not None:
                found.append((call[0].start, " ".join([call[0].text.lower(), *call[1]])))
        elif open_ and (call := open_[-1]) is not None:
            of_length = token.token_type == TokenType.NUMBER and call[0].text.lower() in _OF_LENGTH
            if token.token_type in _TEXTS or of_length:
                cut = call[0].text.lower() == "date_trunc"  # the one function here to which 'hour' and 'HOUR' are one
                call[1].append(repr(token.text.lower() if cut else token.text))
    yield from sorted(found)


def words_of(sql: str, instead: Mapping[int, str], keeps_case: bool) -> str:
    """A statement word by word, without white space and comments; `instead` stands for those that begin at a place."""
    words = []
    for token in Dialect.get_or_raise("spark").tokenize(sql):
        text = token.text if keeps_case else token.text.lower()
        if token.start in instead:
            words.append(f"<{instead[token.start]}>")
        elif token.token_type in (*_TEXTS, TokenType.NUMBER):
            words.append(repr(token.text))
        else:
            words.append(f"`{text}`" if token.token_type == TokenType.IDENTIFIER else text)
    return " ".join(words)
