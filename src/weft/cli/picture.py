"""`weft plan --plot`: sites, links and operators as a picture."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.output import WRONG_INPUT, fail

if TYPE_CHECKING:
    from weft.model import Deployment, Placement

WRITTEN_MAX = 9
PALETTE = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0")


def draw(deployment: Deployment, placement: Placement, file: Path) -> None:
    """Sites on a circle, or in levels where they form a tree; operators in them, streams between them as arrows."""
    try:
        import matplotlib
    except ImportError:
        fail("--plot needs matplotlib: pip install matplotlib", WRONG_INPUT)
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    at = _positions(deployment)
    wide = max(6.0, 2.2 * math.sqrt(len(at)) + 3)
    figure, axes = pyplot.subplots(figsize=(wide, wide * 0.75))
    for link in deployment.links:
        (x1, y1), (x2, y2) = at[link.from_], at[link.to]
        axes.plot([x1, x2], [y1, y2], color="#cccccc", linewidth=1.5, zorder=1)
        axes.annotate(f"{link.delay_ms:g} ms", ((x1 + x2) / 2, (y1 + y2) / 2), color="#888888", fontsize=7, ha="center")
    colours = {query.name: PALETTE[number % len(PALETTE)] for number, query in enumerate(deployment.queries)}
    boxes = _sites(axes, deployment, placement, at, colours)
    _streams(axes, legs(deployment, placement), boxes, colours)
    handles = [Line2D([], [], color=colour, label=name) for name, colour in list(colours.items())[:12]]
    if handles:
        axes.legend(handles=handles, loc="lower left", fontsize=7, frameon=False)
    axes.margins(0.2)
    axes.set_axis_off()
    try:
        figure.savefig(file, dpi=150, bbox_inches="tight")
    except (OSError, ValueError) as error:
        fail(f"--plot {file}: {error}", WRONG_INPUT)
    finally:
        pyplot.close(figure)


def _positions(deployment: Deployment) -> dict[str, tuple[float, float]]:
    parents = {site.name: site.parent for site in deployment.sites}
    if not any(parents.values()):
        count = len(parents)
        turns = [2 * math.pi * number / max(1, count) for number in range(count)]
        return {name: (math.sin(turn), math.cos(turn)) for name, turn in zip(parents, turns, strict=True)}
    levels: dict[int, list[str]] = {}
    for name, parent in parents.items():
        depth, up = 0, parent
        while up is not None:
            depth, up = depth + 1, parents[up]
        levels.setdefault(depth, []).append(name)
    return {
        name: ((number + 0.5) / len(names), -0.5 * depth)
        for depth, names in levels.items()
        for number, name in enumerate(names)
    }


def legs(deployment: Deployment, placement: Placement) -> dict[str, list[tuple[str, str]]]:
    """By query, the links that its streams take, as they take them: one after another where no link leads straight."""
    from weft.model import dataflow
    from weft.plan.network.paths import Paths

    flow, homes, paths = dataflow(deployment), placement.homes, Paths(deployment)
    found: dict[str, list[tuple[str, str]]] = {}
    for query in deployment.queries:
        pairs = {
            (flow.site_of(stream, homes), homes[node.stream])
            for node in flow.owned(query.name)
            for stream in node.inputs
        }
        pairs |= {
            (homes[outlet.stream], outlet.sink.site)
            for outlet in flow.outlets_of(query.name)
            if outlet.sink.site and flow.makes(outlet.stream)
        }
        ways = [paths.between(start, end) for start, end in pairs if start != end]
        found[query.name] = sorted({leg for way in ways if way is not None for leg in pairwise(way.sites)})
    return found


def _streams(
    axes: Any, taken: dict[str, list[tuple[str, str]]], boxes: dict[str, Any], colours: dict[str, str]
) -> None:
    """Arrows from the edge of one box to that of another, each query's with a bend of its own."""
    for number, (query, ways) in enumerate(taken.items()):
        for start, end in ways:
            bend = 0.12 + 0.06 * (number % len(PALETTE))
            arrow = {"arrowstyle": "-|>", "color": colours[query], "connectionstyle": f"arc3,rad={bend:.2f}"}
            edges = {"patchA": boxes[start].get_bbox_patch(), "patchB": boxes[end].get_bbox_patch()}
            ends = boxes[end].get_position(), boxes[start].get_position()
            axes.annotate("", *ends, arrowprops={**arrow, **edges, "shrinkA": 1, "shrinkB": 1}, zorder=4)


def _sites(
    axes: Any, deployment: Deployment, placement: Placement, at: dict[str, tuple[float, float]], colours: dict[str, str]
) -> dict[str, Any]:
    from weft.plan.dataflow.rates import ideal_rates
    from weft.plan.judging.projection import utilisation

    busy = utilisation(deployment, placement, ideal_rates(deployment))
    several = len(deployment.queries) > 1
    boxes = {}
    for name, (x, y) in at.items():
        here = list(placement.on(name))
        lines = [stream if several else stream.partition(".")[2] for stream in here[:WRITTEN_MAX]]
        if len(here) > WRITTEN_MAX:
            lines.append(f"and {len(here) - WRITTEN_MAX} more")
        sources = [f"({source.name})" for source in deployment.sources if source.site == name][:WRITTEN_MAX]
        text = "\n".join([f"{name}  {busy[name]:.0%}", *sources, *lines])
        edge = "#d62728" if busy[name] >= 1 else colours[here[0].partition(".")[0]] if here else "#888888"
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": edge}
        boxes[name] = axes.text(x, y, text, ha="center", va="center", fontsize=7, bbox=box, zorder=3)
    return boxes
