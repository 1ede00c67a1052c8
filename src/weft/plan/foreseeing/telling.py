"""How is relief told? One sentence for people, and the numbers behind it for the log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.plan.foreseeing.outlook import Expected, Outlook
from weft.plan.foreseeing.trials import Trial, keeps_all

TOLD_MAX = 8


@dataclass(frozen=True, slots=True)
class HotSpot:
    """A promise that is expected to break: when, by how much, and the site where most of the time is lost."""

    query: str
    promised_ms: float
    expected_ms: float
    in_s: float
    site: str
    soon: bool


@dataclass(frozen=True, slots=True)
class Relief:
    """What should leave a site for which others, in words and in numbers; nothing leaves where nothing would help."""

    spot: HotSpot
    homes: Mapping[str, str]
    reason: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


def told(
    seen: Outlook, stays: Expected, spot: HotSpot, chosen: Trial, tried: Sequence[Trial], others: Sequence[Trial]
) -> Relief:
    """What leaves for where, in one sentence: what is expected, who keeps all promises, and what would be next best."""
    names = list(chosen.homes)
    who = f"{names[0]} leaves" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} leave"
    sites = " and ".join(dict.fromkeys(chosen.homes.values()))
    if chosen.keeps:
        keep = "keep" if " and " in sites else "keeps"
        there = "" if keeps_all(seen, chosen.expected) else " there"
        next_best = f"next best {_goes(others[0])}" if others else "no other site does"
        then = f"{sites} {keep} all promises{there}; {next_best}"
    else:
        after_ms = chosen.expected.latency_ms[spot.query][-1]
        then = f"{_time(after_ms)} at {sites}, and nowhere less, against {_time(stays.latency_ms[spot.query][-1])} here"
    reason = f"{who} {spot.site}: {expectation(spot)}; {then}"
    return Relief(spot, chosen.homes, reason, numbers(seen, stays, spot, tried, chosen, others))


def _goes(one: Trial) -> str:
    return " and ".join(dict.fromkeys(one.homes.values()))


def expectation(spot: HotSpot) -> str:
    """What a promise is expected to be broken by, and when."""
    return f"{_time(spot.expected_ms)} expected in {spot.in_s:g} s against a promise of {_time(spot.promised_ms)}"


def _time(ms: float) -> str:
    if not math.isfinite(ms):
        return "no end"
    return f"{ms / 1000:.3g} s" if ms >= 1000 else f"{ms:.3g} ms"


def numbers(
    seen: Outlook, stays: Expected, spot: HotSpot, tried: Sequence[Trial], chosen: Trial | None = None,
    others: Sequence[Trial] = (),
) -> dict[str, Any]:  # fmt: skip
    """The numbers behind a decision, as the log keeps them: `others` would have kept all promises, too."""
    step = min(seen.steps - 1, max(0, round(spot.in_s / seen.step_s) - 1))
    slack = seen.slack_ms(stays, spot.query, step)
    first = sorted(tried, key=lambda one: (one is not chosen, not one.keeps, one.over_ms))[:TOLD_MAX]
    return {
        "query": spot.query,
        "promised_ms": spot.promised_ms,
        "expected_ms": _number(spot.expected_ms),
        "in_s": round(spot.in_s, 3),
        "site": spot.site,
        "utilisation": {name: _number(used[-1]) for name, used in stays.busy.items()},
        "slack_ms": {stream: _number(left) for stream, left in slack.items()},
        "bias_ms": _number(seen.bias_ms[spot.query]),
        "sources": {
            name: {"at_horizon_per_s": _number(one.per_s[-1]), "by": one.method} for name, one in seen.forecasts.items()
        },
        "operators": _operators(seen, spot.site),
        "tried": [_trial(one, spot) for one in first],
        "next_best": _trial(others[0], spot) if others else None,
    }


def _operators(seen: Outlook, site: str) -> dict[str, dict[str, float | None]]:
    """What is foreseen of the operators of a site at the horizon, the greatest load first: as a share of the site's."""
    rates, came, capacity = seen.rates[-1], seen.into_per_s[-1], seen.deployment.site(site).capacity
    here = sorted(seen.running.on(site), key=lambda stream: (-rates.load_ms.get(stream, 0.0), stream))
    return {
        stream: {
            "in_per_s": _number(came.get(stream, 0.0)),
            "load": _number(rates.load_ms.get(stream, 0.0) / (1000.0 * capacity)) if capacity > 0 else None,
        }
        for stream in here[:TOLD_MAX]
    }


def _trial(one: Trial, spot: HotSpot) -> dict[str, Any]:
    return {
        "homes": dict(one.homes),
        "latency_ms": _number(one.expected.latency_ms[spot.query][-1]),
        "utilisation": {to: _number(one.expected.busy[to][-1]) for to in dict.fromkeys(one.homes.values())},
        "keeps": one.keeps,
    }


def _number(value: float) -> float | None:
    """As JSON has it: without bound is none."""
    return round(value, 4) if math.isfinite(value) else None
