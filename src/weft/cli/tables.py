"""How is a run shown? Rows for what queries do and for what runs where, the same live and from another terminal."""

from __future__ import annotations

from typing import Any

from weft.cli.output import Rows, number

QUERY_HEAD = ("query", "in", "out", "out/s", "backlog", "p50 ms", "p95 ms", "promise")
FRAGMENT_HEAD = ("site", "fragment", "operators", "batches", "last batch ms", "records in")
MOVE_HEAD = ("operator", "from", "to", "at s", "pause ms", "of which", "reason")
OPERATOR_HEAD = ("operator", "records in", "records out", "late", "filtered", "selectivity", "cost ms")
SITE_HEAD = ("site", "utilisation", "of quota", "longest backlog")
DIRECTORY_HEAD = ("site", "load", "level", "offers")
COST_UNKNOWN = "cost ms is - until a few batches of different sizes have told it"
KEPT = {True: "kept", False: "broken", None: "-"}


def query_rows(status: dict[str, Any]) -> Rows:
    """One row per query: records, rate, backlog, latency, promise."""
    rates, backlog = status.get("rates_per_s", {}), status.get("backlog", {})
    rows = []
    for name, numbers in status.get("queries", {}).items():
        latency = numbers.get("latency_ms") or {}
        rows.append(
            (
                name,
                number(numbers.get("records_in")),
                number(numbers.get("records_out")),
                number(rates.get(name)),
                number(backlog.get(name)),
                number(latency.get("p50")),
                number(latency.get("p95")),
                KEPT[numbers.get("promise_kept")],
            )
        )
    return rows


def left_out(status: dict[str, Any]) -> list[str]:
    """A line for each kind of record that did not come in, where there are any."""
    lines = []
    for key, what in (("bad_records", "bad records left out"), ("dropped", "late records dropped")):
        counts = {name: one.get(key) or 0 for name, one in status.get("queries", {}).items()}
        found = [f"{name} {number(count)}" for name, count in counts.items() if count]
        if found:
            lines.append(f"{what}: {', '.join(found)}")
    return lines


def doubled_lines(status: dict[str, Any]) -> list[str]:
    """A line for each query whose results may be there twice after a crash."""
    held = [name for name, one in status.get("queries", {}).items() if one.get("results") == "at least once"]
    return [f"results of {name}: at least once (after a crash some may be there twice)" for name in held]


def promise_lines(status: dict[str, Any]) -> list[str]:
    """A line for each promise of more than latency, which the table shows: what was promised, measured and kept."""
    lines = []
    for name, one in status.get("queries", {}).items():
        parts = {key: part for key, part in (one.get("promise") or {}).items() if part.get("promised") is not None}
        if any(key in _SHARES or "level" in part for key, part in parts.items()):
            lines.append(f"promise of {name}: {', '.join(_part(key, part) for key, part in parts.items())}")
    return lines


_SHARES = ("loss", "availability")


def _part(key: str, part: dict[str, Any]) -> str:
    """One part of a promise in words."""
    kept = {True: "kept", False: "broken", None: "not measured yet"}[part.get("kept")]
    if key in _SHARES:
        measured = "" if part["measured"] is None else f" {part['measured']:.4%}"
        bound = "at most" if key == "loss" else "at least"
        return f"{key}{measured} ({bound} {part['promised']:.4%}) {kept}"
    measured = "" if part["measured"] is None else f" p{100 * part['quantile']:g} {number(part['measured'])} ms"
    level = part.get("level")
    at = "" if level in (None, part["promised"]) else f" at the level of {number(level)} ms"
    return f"latency{measured} (within {number(part['promised'])} ms) {kept}{at}"


def fragment_rows(status: dict[str, Any]) -> Rows:
    """One row per fragment, by site: its operators and how its batches go."""
    fragments = sorted(status.get("fragments", {}).items(), key=lambda item: item[1]["site"])
    down = status.get("down", {})
    return [
        (
            one["site"],
            name + (" (down)" if name in down else ""),
            ", ".join(one["operators"]) or "(relay)",
            number(one.get("batches")),
            number(one.get("batch_ms"), 0),
            number(one.get("records_in")),
        )
        for name, one in fragments
    ]


def operator_rows(status: dict[str, Any]) -> Rows:
    """One row per operator: what it took and gave, and what a record costs there."""
    return [
        (name, number(one["records_in"]), number(one["records_out"]), number(one.get("late")),
         number(one.get("filtered")), number(one["selectivity"], 4), number(one["cost_ms"], 4))
        for name, one in status.get("operators", {}).items()
    ]  # fmt: skip


def site_rows(status: dict[str, Any]) -> Rows:
    """One row per site: how much of it is used."""
    return [
        (name, f"{one['utilisation']:.3f}", number(one.get("of_quota"), 3), number(one["queue_max"]))
        for name, one in status.get("sites", {}).items()
    ]


def directory_rows(status: dict[str, Any]) -> Rows:
    """One row per site, as the directory knows it; none where a run keeps no directory."""
    rows = []
    for name, one in status.get("sites", {}).items():
        known = one.get("directory")
        if known:
            level = f"{known['level']} of 0 to {known['levels'] - 1}"
            rows.append((name, f"{known['load']:.3f}", level, ", ".join(known["offers"]) or "-"))
        elif "directory" in one:
            rows.append((name, "-", "-", "not known"))
    return rows


def change_lines(status: dict[str, Any]) -> list[str]:
    """A line for each query that came or went, or was refused to; moves have a table of their own."""
    lines = []
    for one in status.get("changes", []):
        wish = one["wish"]
        names = ", ".join(wish["add"]) if "add" in wish else wish.get("remove")
        if names is None or one["state"] == "asked":
            continue
        verb, done = ("come", "came") if "add" in wish else ("go", "went")
        pause = f", others paused for {one['pause_ms']:,.0f} ms at most" if one["pause_ms"] else ""
        what = f"{done}{pause}" if one["state"] == "done" else f"did not {verb}: {one['why']}"
        lines.append(f"at {one['at_s']:.1f} s {names} {what} ({one['by']})")
    return lines


def move_rows(status: dict[str, Any]) -> Rows:
    """One row per move: when, how long its operator's results paused and with what, or why it was not made."""
    rows = []
    for one in status.get("moves", []):
        spent = ", ".join(f"{name.replace('_', ' ')} {ms:,.0f}" for name, ms in one.get("spent_ms", {}).items())
        why_not = f"{one['state']}: {one['why']}" if "state" in one else ""
        rows.append(
            (
                f"{one['query']}.{one['operator']}",
                one["from"],
                one["to"],
                f"{one['at_s']:.1f}",
                number(one["pause_ms"], 0),
                spent,
                why_not or one["reason"],
            )
        )
    return rows


def advice_lines(look: dict[str, Any] | None) -> list[str]:
    """What periodic placement would move and why, or why it says nothing; one line each."""
    if not look:
        return []
    if "failed" in look:
        return [f"advice: none any more, the controller failed: {look['failed']}"]
    since = f"advice since {look['at_s']:g} s" if look["until_s"] > look["at_s"] else f"advice at {look['at_s']:g} s"
    if look["missing"]:
        shown = ", ".join(look["missing"][:3]) + (", ..." if len(look["missing"]) > 3 else "")
        return [f"{since}: none, not everything was measured ({shown})"]
    lines = [f"{since}: move {_moves(one)}: {one['reason']}" for one in look["advised"]]
    lines += [f"{since}: do not move {_moves(one)} yet: {one['why']}" for one in look["declined"]]
    return lines or [f"{since}: leave everything where it is"]


def _moves(one: dict[str, Any]) -> str:
    return ", ".join(f"{move['query']}.{move['operator']} from {move['from']} to {move['to']}" for move in one["moves"])


def in_one_line(status: dict[str, Any]) -> str:
    """How a run goes, in one line for a log."""
    queries = status.get("queries", {}).values()
    slow = [one["latency_ms"]["p95"] for one in queries if one.get("latency_ms")]
    head = f"{status['phase']}, {status.get('wall_s', 0.0):.0f} s"
    if not queries:
        return head
    parts = [
        head,
        f"in {sum(one['records_in'] for one in queries):,}",
        f"out {sum(one['records_out'] for one in queries):,}",
        f"backlog {sum(status.get('backlog', {}).values()):,}",
    ]
    if slow:
        parts.append(f"p95 {max(slow):,.0f} ms")
    if status.get("down"):
        parts.append(f"down: {', '.join(status['down'])}")
    return ", ".join(parts)


def screen(status: dict[str, Any], notes: tuple[str, ...] = ()) -> Any:
    """A run as a live picture for a terminal."""
    from rich.console import Group
    from rich.text import Text

    from weft.cli.output import rich_table

    head = Text(f"weft {status['phase']}, {status.get('wall_s', 0.0):.0f} s", style="bold")
    parts: list[Any] = [head]
    if status.get("queries"):
        parts.append(rich_table("queries", QUERY_HEAD, query_rows(status)))
    if status.get("fragments"):
        parts.append(rich_table("what runs where", FRAGMENT_HEAD, fragment_rows(status)))
    if status.get("moves"):
        parts.append(rich_table("moves", MOVE_HEAD, move_rows(status)))
    parts.extend(Text(line, style="yellow") for line in left_out(status))
    parts.extend(Text(line) for line in advice_lines(status.get("advice")))
    parts.extend(Text(f"down: {name}: {why}", style="red") for name, why in status.get("down", {}).items())
    parts.extend(Text(line, style="dim") for line in notes)
    return Group(*parts)


def shared_lines(told: dict[str, Any]) -> list[str]:
    """What is made once for several queries, a line each."""
    return [
        f"shared: {one['stream']} is made once for {', '.join(one['queries'])}"
        + (f" and saves {one['saves']:,.1f} ms/s" if one["saves"] else "")
        for one in told.get("shared", [])
    ]
