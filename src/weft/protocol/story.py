"""The story line, the same in all bodies: `time site input -> effects`.

    1200 a StartFragment(f1, epoch 3) from conductor -> Remember(f1, epoch 3); Launch(f1, epoch 3); timer f1 120000ms
    1350 a Launched(f1, epoch 3) -> cancel f1; a -> conductor FragmentRunning(f1, epoch 3)

Text that is not a plain word is written as a JSON string, so that a line can be taken apart again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from weft.protocol.words import CancelTimer, Effect, Input, Parcel, Received, Send, SetTimer, TimerFired

NOTHING = "nothing"
_PLAIN = re.compile(r"[A-Za-z0-9_][\w.:/@*+-]*\Z")
_NAMED = ("epoch",)


class StoryLine(NamedTuple):
    """One line taken apart; input and effects stay text."""

    time_ms: float
    site: str
    input: str
    effects: tuple[str, ...]


def word(value: object) -> str:
    """A value as one word of a line."""
    if isinstance(value, str):
        return value if _PLAIN.match(value) else json.dumps(value)
    if isinstance(value, msgspec.Struct):
        return term(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(word(one) for one in value if not isinstance(one, Parcel)) + "]"
    return str(value)


def term(value: msgspec.Struct) -> str:
    """A message, fact or effect as `Name(f1, epoch 3)`; parcels, and what is false or empty (not 0), are left out."""
    parts = []
    for name in value.__struct_fields__:
        held = getattr(value, name)
        if held is True:
            parts.append(name)
        elif name in _NAMED:
            parts.append(f"{name} {held}")
        elif held is not False and held != "" and held is not None and not _is_parcels(held):
            parts.append(word(held))
    return f"{type(value).__name__}({', '.join(parts)})"


def _is_parcels(value: object) -> bool:
    return isinstance(value, Parcel) or (isinstance(value, tuple) and bool(value) and isinstance(value[0], Parcel))


def input_text(input: Input) -> str:
    """An input, compactly."""
    if isinstance(input, Received):
        return f"{term(input.message)} from {word(input.sender)}"
    if isinstance(input, TimerFired):
        return f"timer {word(input.name)}"
    return term(input)


def effect_text(site: str, effect: Effect) -> str:
    """An effect, compactly: a message sent is `a -> b StartFragment(f1, epoch 3)`."""
    if isinstance(effect, Send):
        return f"{word(site)} -> {word(effect.to)} {term(effect.message)}"
    if isinstance(effect, SetTimer):
        return f"timer {word(effect.name)} {effect.after_ms}ms"
    if isinstance(effect, CancelTimer):
        return f"cancel {word(effect.name)}"
    return term(effect)


def effects_text(site: str, effects: Iterable[Effect]) -> str:
    """Effects in order, `nothing` where there are none."""
    return "; ".join(effect_text(site, effect) for effect in effects) or NOTHING


def story_line(time_ms: float, site: str, input: Input, effects: Iterable[Effect]) -> str:
    """One step as a line of the story."""
    time = f"{time_ms:.3f}".rstrip("0").rstrip(".")
    return f"{time} {word(site)} {input_text(input)} -> {effects_text(site, effects)}"


def parse_story_line(line: str) -> StoryLine:
    """Takes a line apart; ValueError where it is none."""
    try:
        head, tail = _split(line.rstrip("\n"), " -> ", 1)
        time, site, input = _split(head, " ", 2)
        effects = () if tail == NOTHING else tuple(_split(tail, "; "))
        return StoryLine(float(time), json.loads(site) if site.startswith('"') else site, input, effects)
    except ValueError as error:
        raise ValueError(f"not a story line: {line[:200]!r}") from error


def _split(text: str, mark: str, times: int = -1) -> list[str]:
    """Splits at a mark, but not inside JSON strings."""
    parts, start = [], 0
    for at in _outside_strings(text):
        if at >= start and text.startswith(mark, at) and times != 0:
            parts.append(text[start:at])
            start = at + len(mark)
            times -= 1
    return [*parts, text[start:]]


def _outside_strings(text: str) -> Iterator[int]:
    inside = escaped = False
    for at, letter in enumerate(text):
        if not inside:
            yield at
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = inside
        elif letter == '"':
            inside = not inside
