"""The frame of a reproduction: setting, published values, what was measured, and whether that meets them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot; `over` names what `x` is where lines of a row go over different things."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    over: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a row gave: `measured` beside what was published, and each claim with whether it held."""

    measured: dict[str, Any]
    claims: dict[str, bool]
    curves: tuple[Curve, ...] = ()
    axes: tuple[str, str] = ("", "")

    @property
    def met(self) -> bool:
        """Whether every claim held."""
        return all(self.claims.values())


@dataclass(frozen=True, slots=True)
class Row:
    """A published result: where it stands, how it is set up, and how it is measured again."""

    id: str
    title: str
    source: str
    setting: dict[str, Any]
    published: dict[str, Any]
    measure: Callable[[Progress], Outcome]
    choices: tuple[str, ...] = field(default=())
    """What the source leaves open, and what was chosen."""
    misses: tuple[str, ...] = field(default=())
    """Why measured and published part, where they do."""
    shrunk: tuple[str, ...] = field(default=())
    """What is smaller or shorter than in the source, or left out."""

    def as_json(self, outcome: Outcome) -> dict[str, Any]:
        """`{row, published, measured, met}`, and what led to them."""
        return {
            "row": self.id,
            "title": self.title,
            "source": self.source,
            "published": self.published,
            "measured": outcome.measured,
            "met": outcome.met,
            "claims": outcome.claims,
            "setting": self.setting,
            "choices": list(self.choices),
            "misses": [] if outcome.met else list(self.misses),
            "shrunk": list(self.shrunk),
        }


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A published result that is not measured: where it stands, what it says, and why nothing stands beside it."""

    title: str
    source: str
    published: dict[str, Any]
    why: str


def save(row: Row, outcome: Outcome, folder: Path) -> Path:
    """Writes `ROW.json` and `ROW.png`, and gives the first."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{row.id}.json"
    path.write_text(json.dumps(row.as_json(outcome), indent=2) + "\n", encoding="utf-8")
    if outcome.curves:
        draw(row, outcome, folder / f"{row.id}.png")
    return path


def draw(row: Row, outcome: Outcome, path: Path) -> None:
    """Draws the lines of a result, beside one another where they go over different things."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import MaxNLocator

    panels = list(dict.fromkeys(curve.over for curve in outcome.curves))
    figure, beside = plt.subplots(1, len(panels), figsize=(7 * len(panels), 4.5), layout="constrained", squeeze=False)
    for axes, over in zip(beside[0], panels, strict=True):
        # Lines that lie on one another are told apart by their marks, and one that is below by its width.
        shown = [curve for curve in outcome.curves if curve.over == over]
        for number, curve in enumerate(shown):
            width, mark = 1 + 0.8 * (len(shown) - number - 1), "osD^v<>*"[number % 8]
            axes.plot(
                curve.x, curve.y, marker=mark, markersize=3, linewidth=min(width, 4), alpha=0.8, label=curve.label
            )
        if all(float(x).is_integer() for curve in shown for x in curve.x):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(over or outcome.axes[0])
        axes.set_ylabel(outcome.axes[1])
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8)
    figure.suptitle(f"{row.id}: {row.title}", fontsize=10)
    figure.savefig(path, dpi=110, metadata={"Software": None} if path.suffix == ".png" else None)
    plt.close(figure)


def result_in(folder: Path, name: str) -> dict[str, Any] | None:
    """The result of a row that lies in a folder, None where there is none."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def verdict(row: Row | Unmeasured, found: dict[str, Any] | None) -> str:
    """Whether a row is met, as far as its last result says."""
    if found is None or isinstance(row, Unmeasured):
        return "not measured"
    return "yes" if found["met"] else "no"


def told(row: Row | Unmeasured, found: dict[str, Any] | None) -> list[tuple[str, str]]:
    """All there is to say of a row: which claims held, why others did not, what was chosen, and what was left out."""
    if isinstance(row, Unmeasured):
        return [("not measured", row.why)]
    lines: list[tuple[str, str]] = []
    if found is not None:
        if json.loads(json.dumps(row.setting)) != found["setting"]:
            lines.append(("older setting", "the result is of another setting than the row has now: measure it again"))
        lines += [("held" if held else "did not hold", claim) for claim, held in found["claims"].items()]
        lines += [("why", miss) for miss in row.misses if not found["met"]]
    lines += [("chosen", choice) for choice in row.choices]
    return lines + [("less than published", less) for less in row.shrunk]


def page(folder: Path, rows: Mapping[str, Row | Unmeasured], titles: Mapping[str, str]) -> str:
    """The page of all rows: published beside measured, from the results in a folder."""
    lines = [
        "# Published beside measured",
        "",
        "Generated by `weft lab --page`; each row is measured again by `weft lab ROW`. Of many figures the least and",
        "the greatest stand here; all are in the row's file.",
        "",
        "| row | what | met | published | measured |",
        "|---|---|---|---|---|",
    ]
    details: list[str] = []
    for name, what in titles.items():
        row, found = rows[name], result_in(folder, name)
        link = name if found is None else f"[{name}]({name}.json)"
        met = verdict(row, found).replace("no", "**no**") if found is not None else "not measured"
        ours = "" if found is None else brief(found["measured"])
        lines.append(f"| {link} | {what} | {met} | {brief(row.published)} | {ours} |")
        details += ["", f"## {name}: {row.title}", "", f"{row.source}.", ""]
        details += [f"- {label}: {text}" for label, text in told(row, found)]
        if found is not None and (folder / f"{name}.png").exists():
            details += ["", f"![{name}]({name}.png)"]
    return "\n".join([*lines, *details]) + "\n"


def brief(values: Mapping[str, Any]) -> str:
    """Figures on one line; of many only the least and the greatest."""
    return "; ".join(f"{name}: {text}" for name, value in values.items() if (text := _figure(value)))


def _figure(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {text}" for name, inner in value.items() if (text := _figure(inner)))
    if isinstance(value, list):
        numbers = [one for one in value if isinstance(one, int | float)]
        if len(numbers) != len(value) or not numbers:
            return ""
        return f"{_figure(min(numbers))} to {_figure(max(numbers))}" if len(numbers) > 1 else _figure(numbers[0])
    return f"{value:.4g}" if isinstance(value, float) else str(value)
