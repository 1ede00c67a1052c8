"""What ran, with all seeds, for people."""

from __future__ import annotations

from dataclasses import dataclass

from tests.long.ledger import Ledger, ranges, split
from tests.long.order import Order


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a unit ended: passed, failed, skipped or cut off."""

    outcome: str
    seconds: float
    text: str = ""


def report(facts: dict[str, str], units: list[str], order: Order, outcomes: dict[str, Outcome], ledger: Ledger) -> str:
    """A page: what was asked, each test with its seeds by outcome, failures with how to repeat them."""
    counts = {name: sum(one.outcome == name for one in outcomes.values()) for name in ("passed", "failed", "cut off")}
    known = sum(ledger.passed(unit) for unit in units)
    lines = [
        "# The long check",
        "",
        *(f"- {name}: {value}" for name, value in facts.items()),
        f"- this time: {', '.join(f'{count} {name}' for name, count in counts.items())}",
        f"- of {len(units)} units {known} have passed on this code by now",
        "",
        "| test | passed now | failed | cut off or skipped | passed before | not reached | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    tests: dict[str, list[str]] = {}
    for unit in units:
        tests.setdefault(split(unit)[0], []).append(unit)
    for test, held in tests.items():
        here = {unit: outcomes[unit] for unit in held if unit in outcomes}
        cells = [
            _seeds([unit for unit, one in here.items() if one.outcome == "passed"]),
            _seeds([unit for unit, one in here.items() if one.outcome == "failed"]),
            _seeds([unit for unit, one in here.items() if one.outcome not in ("passed", "failed")]),
            _seeds([unit for unit in held if unit not in here and ledger.passed(unit)]),
            _left([unit for unit in held if unit not in here and not ledger.passed(unit)], order),
            f"{sum(one.seconds for one in here.values()):.0f}" if here else "",
        ]
        lines.append(f"| {test} | {' | '.join(cells)} |")
    for unit, one in outcomes.items():
        if one.outcome == "failed":
            lines += ["", f"## Failed: {unit}", "", f"    python -m pytest -m long '{unit}'", ""]
            lines += [f"    {line}" for line in one.text.splitlines()[-30:]]
    return "\n".join(lines) + "\n"


def _seeds(units: list[str]) -> str:
    if not units:
        return ""
    return ranges([split(unit)[1] for unit in units]).replace("|", "\\|") or "yes"


def _left(units: list[str], order: Order) -> str:
    if not units:
        return ""
    reasons = sorted({order.left[unit] for unit in units if unit in order.left})
    return f"{len(units)}{f' ({reasons[0]})' if reasons else ''}"
