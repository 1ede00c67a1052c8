"""What did the twin do, and what happened? `weft run --twin` sets the changes of both side by side.

Where rules act (`relief`, `balance`, `scale`, `advise`) the twin decides by what sites can do, so its story is that of
the ideal model; else that of the same micro-batches by which latencies are predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.cli.output import Rows

if TYPE_CHECKING:
    from weft.cli.placing import Placed

STORIES_HEAD = ("by", "what", "twin at s", "live at s", "in the twin", "live")
Change = dict[str, Any]


def stories(before: Placed, summary: dict[str, Any]) -> dict[str, Any]:
    """The changes that the twin makes of the same deployment in the same time, beside those of a run."""
    from weft.bodies import twin
    from weft.protocol.control import looks_every_s

    flowed_s = float(summary.get("flowed_s") or 0.0)
    if not flowed_s:
        return {}
    ideal = looks_every_s(before.deployment) is not None
    costs = before.model_costs(ideal)
    try:
        result = twin.run(before.deployment, before.placement, flowed_s, costs=costs)
    except twin.CannotRun as error:
        return {"model": "ideal" if costs is None else "micro-batch", "failed": str(error), "changes": []}
    pairs = side_by_side(result.changes, summary.get("changes", []))
    return {"model": "ideal" if costs is None else "micro-batch", "changes": pairs}


def side_by_side(in_twin: Sequence[Change], live: Sequence[Change]) -> list[dict[str, Any]]:
    """Changes of both, those for the same told together: the same wish first, then the same operators elsewhere."""
    pairs: list[tuple[Change | None, Change | None]] = []
    left, right = list(in_twin), list(live)
    for alike in (_wish, _subject):
        for one in list(left):
            other = next((each for each in right if alike(each) == alike(one)), None)
            if other is not None:
                left.remove(one)
                right.remove(other)
                pairs.append((one, other))
    pairs += [(one, None) for one in left] + [(None, one) for one in right]
    told = [{"by": (one or other or {})["by"], "twin": one, "live": other} for one, other in pairs]
    return sorted(told, key=lambda pair: (pair["live"] or pair["twin"])["at_s"])


def _wish(change: Change) -> tuple[Any, ...]:
    return change["by"], change["wish"]


def _subject(change: Change) -> tuple[Any, ...]:
    """Who changes what, wherever it goes."""
    verb, what = next(iter(change["wish"].items()))
    return change["by"], verb, sorted(what) if verb == "move" else what


def stories_rows(found: dict[str, Any]) -> Rows:
    """As a table; `-` where only one of both did it."""
    return [
        (pair["by"], _what(pair["live"] or pair["twin"]), _at(pair["twin"]), _at(pair["live"]),
         _became(pair["twin"], pair["live"]), _became(pair["live"], pair["twin"]))
        for pair in found["changes"]
    ]  # fmt: skip


def _at(change: Change | None) -> str:
    return "-" if change is None else f"{change['at_s']:.1f}"


def _what(change: Change) -> str:
    wish = change["wish"]
    if "move" in wish:
        return ", ".join(f"{stream} to {site}" for stream, site in wish["move"].items())
    return "; ".join(f"{verb} {', '.join(value) if isinstance(value, list) else value}" for verb, value in wish.items())


def _became(change: Change | None, other: Change | None) -> str:
    """What became of it and why; where it went, if the other went elsewhere."""
    if change is None:
        return "-"
    elsewhere = f" ({_what(change)})" if other is not None and other["wish"] != change["wish"] else ""
    why = change["why"] or change["reason"]
    return f"{change['state']}{elsewhere}: {why}" if why else f"{change['state']}{elsewhere}"
