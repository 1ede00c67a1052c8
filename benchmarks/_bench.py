"""What all benchmarks share: a setting that lies in a file, equal turns for both sides, every round told, a history.

A setting (`settings/NAME.toml`) says what is measured and why so; `[short]` replaces some of it for a form that takes
seconds and only shows that everything works. Whatever is changed on the command line is printed and never kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = Path(__file__).parent / "settings"
HISTORY = ROOT / "results" / "bench"
Found = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What a benchmark is asked to do: values by name, and which figure is aimed at."""

    name: str
    reason: str
    values: dict[str, Any]
    aims: dict[str, dict[str, float]]
    kept: bool = True

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def aim(self, figure: str) -> str:
        """The aim in words."""
        aims = (f"{how.replace('_', ' ')} {value:g}" for how, value in self.aims.get(figure, {}).items())
        return f"aim: {' and '.join(aims) or 'none'}"

    def missed(self, found: Found) -> list[str]:
        """Figures that are not as aimed at."""
        return [
            figure
            for figure, aims in self.aims.items()
            if (value := _at(found, figure)) is not None
            and any((value < aim) if how == "at_least" else (value > aim) for how, aim in aims.items())
        ]


def _at(found: Found, figure: str) -> Any:
    """A figure by its way, such as `ratio.stateless alone`; None where it was not measured."""
    value: Any = found
    for part in figure.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value


def load(name: str, short: bool = False, changes: dict[str, Any] | None = None) -> Setting:
    """The setting of a benchmark, from its file."""
    with open(SETTINGS / f"{name}.toml", "rb") as file:
        held = tomllib.load(file)
    values = {**held["setting"], **(held["short"] if short else {}), **(changes or {})}
    unknown = sorted(set(values) - set(held["setting"]))
    if unknown:
        known = ", ".join(held["setting"])
        raise SystemExit(f"benchmarks/settings/{name}.toml: there is no {', '.join(unknown)}; there are: {known}")
    return Setting(name, held["reason"], values, held.get("aims", {}), not short and not changes)


def spread(values: list[float], digits: int = 3) -> Found:
    """All rounds of one figure, and what they come to."""
    places = digits or None  # whole numbers are whole
    return {
        "median": round(statistics.median(values), places),
        "least": round(min(values), places),
        "most": round(max(values), places),
        "rounds": [round(value, places) for value in values],
    }


def ratios(above: list[float], below: list[float], digits: int = 3) -> Found:
    """Ratios within rounds, whose turns are close in time: between rounds a machine may change its pace."""
    return spread([one / other for one, other in zip(above, below, strict=True)], digits)


def turns(names: list[str], rounds: int, warm: int) -> Iterator[tuple[int, str, bool]]:
    """Who is next, in which round, and whether it counts: as often for each, and each is first as often."""
    for number in range(warm + rounds):
        first = number % len(names)
        for name in [*names[first:], *names[:first]]:
            yield number, name, number >= warm


@contextmanager
def spark(logs: Path, conf: dict[str, str] | None = None) -> Iterator[Any]:
    """A session as Weft starts it; one that is there already is used, and left running."""
    from weft.spark.session.lent import Lent, let_go
    from weft.spark.session.starting import start_session

    lent = Lent.now()
    session = start_session(logs, conf=conf or {})
    try:
        yield session
    finally:
        let_go(session, lent)


def java_of(session: Any) -> int:
    """Spark's process."""
    return int(session._jvm.java.lang.ProcessHandle.current().pid())


def cpu_s(java: int) -> float:
    """CPU seconds of this process and of Spark's."""
    fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def keep(setting: Setting, found: Found, load_before: float) -> None:
    """Append what was found to the benchmark's history."""
    path = HISTORY / f"{setting.name}.json"
    entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    entries.append(
        {
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "commit": commit,
            "cores": os.cpu_count(),
            "load": {"before": round(load_before, 2), "after": round(os.getloadavg()[0], 2)},
            "setting": setting.values,
            "missed": setting.missed(found),
            "found": found,
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def parser_of(text: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--short", action="store_true", help="a form of seconds, which shows that it works; not kept")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="another value; not kept")
    parser.add_argument("--no-keep", action="store_true", help="do not append to results/bench/")
    return parser


def asked_setting(name: str, asked: argparse.Namespace) -> Setting:
    """The setting that the command line asks for."""
    changes = {}
    for text in asked.set:
        key, _, value = text.partition("=")
        changes[key] = tomllib.loads(f"value = {value}")["value"]
    return load(name, asked.short, changes)


def go(
    name: str, text: str | None, measure: Callable[[Setting], Found], show: Callable[[Setting, Found], None],
    words: list[str] | None = None,
) -> None:  # fmt: skip
    """Measure as the file says, print, and keep it."""
    asked = parser_of(text).parse_args(words)
    finish(asked_setting(name, asked), asked, measure, show)


def finish(
    setting: Setting, asked: argparse.Namespace, measure: Callable[[Setting], Found],
    show: Callable[[Setting, Found], None],
) -> None:  # fmt: skip
    """The same for a benchmark with options of its own."""
    load_before = os.getloadavg()[0]
    found = measure(setting)
    if setting.kept and not asked.no_keep:
        keep(setting, found, load_before)
    if asked.json:
        print(json.dumps(found))
        return
    print(f"{setting.name}: {', '.join(f'{key} {value}' for key, value in setting.values.items())}")
    show(setting, found)
    if setting.kept:
        missed = setting.missed(found)
        print(f"missed: {', '.join(missed)}" if missed else "all aims are met" if setting.aims else "no aims")


def line(name: str, held: Found, unit: str = "") -> str:
    """One figure with its spread and all rounds."""
    rounds = " ".join(f"{value:,}" for value in held["rounds"])
    return f"{name:<34} {held['median']:>12,} {unit:<10} ({held['least']:,} to {held['most']:,}: {rounds})"
