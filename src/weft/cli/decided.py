"""`weft explain --decisions`: what did rules decide, and by which numbers?"""

from __future__ import annotations

from typing import Any

from weft.cli.held import Held
from weft.cli.output import number, print_json, say

STATES = {
    "asked": "asked for", "done": "done", "refused": "refused", "advised": "advised", "declined": "not done",
}  # fmt: skip


def show_decisions(found: Held, json: bool) -> None:
    """The log of a state folder, as JSON or for people."""
    from weft.bodies.live.decision_file import FILES, kept_decisions

    entries = kept_decisions(found.files(*FILES))
    if json:
        print_json({"decisions": entries})
        return
    if not entries:
        say("no rule has wished anything; `control: {relief: true}`, `balance` and `advise: true` let rules look")
    for entry in entries:
        for line in decision_lines(entry):
            say(line)


def decision_lines(entry: dict[str, Any]) -> list[str]:
    """One decision: what became of it and why, then the numbers behind it."""
    again = f" ({entry['times']} times, until {entry['until_s']:g} s)" if entry.get("times", 1) > 1 else ""
    why = entry.get("why") if entry.get("moves") else ""
    head = f"{entry['at_s']:g} s, {entry['by']}, {STATES.get(entry['state'], entry['state'])}{again}: {entry['reason']}"
    lines = [f"{head}; {why}" if why else head]
    numbers = entry.get("numbers") or {}
    if "slack_ms" in numbers:
        slack = ", ".join(f"{stream} {number(left)} ms" for stream, left in numbers["slack_ms"].items())
        lines.append(f"  time left by then: {slack}; not from sites: {number(numbers['bias_ms'])} ms")
    if "sources" in numbers:
        rates = (
            f"{name} {number(one['at_horizon_per_s'])}/s (by {one['by']})" for name, one in numbers["sources"].items()
        )
        used = ", ".join(f"{site} {_share(share)}" for site, share in numbers.get("utilisation", {}).items())
        lines.append(f"  at the horizon: {', '.join(rates)}; use of sites: {used}")
    if "operators" in numbers:
        loads = (
            f"{stream} {number(one['in_per_s'])}/s, {_share(one['load'])}"
            for stream, one in numbers["operators"].items()
        )
        lines.append(f"  at {numbers['site']} then, by load: {'; '.join(loads)}")
    if "objective" in numbers:
        one = numbers["objective"]
        used = ", ".join(
            f"{site} {_share(each['before'])} then {_share(each['after'])}" for site, each in numbers["busy"].items()
        )
        gain = f"{one['name']} {_value(one['before'])} then {_value(one['after'])}"
        lines.append(f"  {gain}, a move costs {number(numbers['price'])}; use of sites: {used}")
    if "loads" in numbers:
        marks = ", ".join(f"{mark} {share:.0%}" for mark, share in numbers["marks"].items())
        loads = (
            f"{site} {_share(one['before'])} then {_share(one['after'])} of its {resource}"
            for site, each in numbers["loads"].items()
            for resource, one in each.items()
        )
        lines.append(f"  load: {', '.join(loads)}; marks: {marks}")
    for tried in numbers.get("tried", []):
        word = ", next best" if tried == numbers.get("next_best") else ""
        lines.append(f"  with {_tried(tried)}{word}")
    return lines


def _tried(one: dict[str, Any]) -> str:
    where = ", ".join(f"{stream} at {site}" for stream, site in one["homes"].items())
    used = ", ".join(f"{site} {_share(share)}" for site, share in one["utilisation"].items())
    word = "keeps all promises" if one["keeps"] else "does not"
    latency = "without end" if one["latency_ms"] is None else f"{number(one['latency_ms'])} ms"
    return f"{where}: {latency}, {used}, {word}"


def _value(value: float | None) -> str:
    return "without bound" if value is None else number(value)


def _share(value: float | None) -> str:
    return "without end" if value is None else f"{value:.0%}"
