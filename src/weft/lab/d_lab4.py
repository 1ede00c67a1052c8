"""D-lab4: messages of group mutual exclusion beside those of RA1 and RA2 (Decentral §5.3.2, Figs 5.5, 5.6)."""

from __future__ import annotations

from statistics import fmean

from weft.lab.frame import Curve, Outcome, Progress, Row
from weft.lab.rooms import Storm, visit
from weft.lab.virtual import LINKS

SEEDS = tuple(range(1, 16))
STAY_MS = 1000.0
SETTINGS = {"12 nodes, 10 entries": (6, 10), "12 nodes, 18 entries": (6, 18), "12 nodes, 50 entries": (6, 50),
            "24 nodes, 10 entries": (12, 10)}  # fmt: skip
PUBLISHED = {
    "12 nodes, 10 entries": {"2-FGME": 2065, "RA1": 2640, "RA2": 3445},
    "12 nodes, 18 entries": {"2-FGME": 3748, "RA2": 5176},
    "12 nodes, 50 entries": {"2-FGME": 10327, "RA2": 15843},
    "24 nodes, 10 entries": {"2-FGME": 8071, "RA2": 13395},
}
ABOVE_MAX = 1.06
ALGORITHMS = ("forks", "2-FGME", "RA1", "RA2")
SENT_MAX = 3.0
LONG = {"24 nodes, 100 ms": (12, "exponential 100 ms"), "16 nodes, 300 ms": (8, "exponential 300 ms")}
LONG_ENTRIES, LONG_STAY_MS, STORM = 5, 10.0, 20_000
CHAIN = {"a": "b", "b": "ac", "c": "bd", "d": "c"}


def mean_messages(algorithm: str, sizes: tuple[int, ...], entries: int, link: str, **more: object) -> float:
    """The mean over all seeds."""
    runs = (visit(algorithm, sizes, entries, STAY_MS, STAY_MS, link, seed, **more) for seed in SEEDS)  # type: ignore[arg-type]
    return fmean(run.messages for run in runs)


def under_long_delays(algorithm: str, half: int, link: str, seeds: tuple[int, ...]) -> float:
    """The most messages per request and competitor in any run; a storm is broken off."""
    worst = 0.0
    for seed in seeds:
        try:
            run = visit(
                algorithm, (half, half), LONG_ENTRIES, LONG_STAY_MS, LONG_STAY_MS, link, seed, messages_max=STORM
            )
        except Storm as storm:
            return storm.messages / (2 * half * half * LONG_ENTRIES)
        worst = max(worst, run.messages / (2 * half * half * LONG_ENTRIES))
    return worst


def measure(progress: Progress) -> Outcome:
    """All settings over both link models."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    claims: dict[str, bool] = {}
    for link in LINKS:
        for setting, (half, entries) in SETTINGS.items():
            progress(f"{setting}, {link}")
            means = {name: mean_messages(name, (half, half), entries, link) for name in ALGORITHMS}
            found.setdefault(link, {})[setting] = means
            where = f"{setting}, {link}"
            for name in ("forks", "2-FGME"):
                most = ABOVE_MAX * PUBLISHED[setting]["2-FGME"]
                claims[f"{name}: at most {ABOVE_MAX} of the published messages ({where})"] = means[name] <= most
                claims[f"{name}: fewer messages than RA2 ({where})"] = means[name] < means["RA2"]
        exact = found[link]["12 nodes, 10 entries"]["RA1"] == 2 * 10 * 12 * 11
        claims[f"RA1 sends 2·x·n·(n-1) messages ({link})"] = exact
    first = next(iter(LINKS))
    progress("four groups in a chain")
    chain = {
        name: mean_messages(name, (3, 3, 3, 3), 10, first, conflicts=CHAIN if name == "forks" else None)
        for name in ("forks", "RA2")
    }
    claims["four groups in a chain: fewer messages than RA2 over all"] = chain["forks"] < chain["RA2"]
    delays: dict[str, float] = {}
    for setting, (half, link) in LONG.items():
        progress(f"long delays, {setting}")
        delays[f"forks, most per request and competitor, {setting}"] = most = under_long_delays(
            "forks", half, link, SEEDS
        )
        delays[f"2-FGME, most per request and competitor, {setting}, at least"] = under_long_delays(
            "2-FGME", half, link, SEEDS[:3]
        )
        claims[f"forks: at most {SENT_MAX:g} messages per request and competitor under long delays ({setting})"] = (
            most <= SENT_MAX
        )
    sizes = (3, 4, 6, 8, 10, 12)
    growth = {
        name: [mean_messages(name, (half, half), 10, first) for half in sizes] for name in ALGORITHMS
    }  # fmt: skip
    flat = {
        f"{name}, {setting}, {link}": value
        for link, settings in found.items() for setting, means in settings.items() for name, value in means.items()
    }  # fmt: skip
    return Outcome(
        measured={**flat, "forks, four groups in a chain": chain["forks"], "RA2, four groups": chain["RA2"], **delays},
        claims=claims,
        curves=tuple(
            Curve(name, tuple(2.0 * half for half in sizes), tuple(values)) for name, values in growth.items()
        ),
        axes=("nodes in two groups, 10 entries each", "messages, mean over 15 seeds"),
    )


ROW = Row(
    id="D-lab4",
    title="messages of group mutual exclusion",
    source="Belkhiria 2021, section 5.3.2, figures 5.5 and 5.6",
    setting={"pause_ms": STAY_MS, "inside_ms": STAY_MS, "links": list(LINKS), "seeds": list(SEEDS)},
    published={f"{name}, {setting}": n for setting, each in PUBLISHED.items() for name, n in each.items()},
    measure=measure,
    choices=(
        "link delays are not published: two models, uniform 1-3 ms and exponential with mean 10 ms",
        "first requests are drawn evenly from one pause",
        "long delays: five entries, P = inCS = 10 ms; a run of 2-FGME is broken off at 20,000 messages, and only "
        "its first three seeds are tried; that part is our own, the source has no such links",
        f"mark for messages: at most {ABOVE_MAX} of the published ones of 2-FGME; of RA1 and RA2 only who sends more "
        "is claimed, "
        "not the published number",
        "2-FGME is the corrected form; forks is the form in use (see decision 010)",
        "four groups in a chain exclude those side by side only; RA2 knows no such graph, so it excludes all",
    ),
)
