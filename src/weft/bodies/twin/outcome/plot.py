"""A run as a picture: latency of each query and utilisation of each site over time, moves marked."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from weft.bodies.twin.outcome.result import Result

LINES_MAX = 20
PROMISES_MAX = 5.0  # times the greatest latency shown: promises further off are only named


def draw(result: Result, path: str, promised: Mapping[str, float] = MappingProxyType({})) -> None:
    """Writes the picture; the format follows the ending. `promised`: the latency that each query is to keep."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(10, 7), layout="constrained")
    figure.suptitle(f"{result.seconds:g} virtual seconds: mean latency of results, and how busy sites are", fontsize=10)
    _lines(above, result.latency_rows, "query", "latency_ms")
    above.set_ylabel("mean latency (ms)")
    most = max((row["latency_ms"] for row in result.latency_rows), default=0.0)
    for query, latency_ms in promised.items():
        quantiles = result.queries.get(query, {}).get("latency_ms") or {}
        told = f", p95 {quantiles['p95']:,.0f} ms" if "p95" in quantiles else ""
        # Far above all that is measured a line would press everything else to the ground.
        shown = [latency_ms] if latency_ms <= PROMISES_MAX * most else []
        label = f"{query}: promised {latency_ms:,.0f} ms{told}"
        above.plot(
            [0, result.seconds][: 2 * len(shown)], 2 * shown, color="red", linestyle="--", linewidth=1, label=label
        )
    _lines(below, result.utilisation_rows, "site", "utilisation")
    below.set_ylabel("utilisation")
    below.set_xlabel("time (s)")
    busiest = max((row["utilisation"] for row in result.utilisation_rows), default=1.0)
    below.set_ylim(0, min(1.05, max(0.05, 1.2 * busiest)))
    for number, move in enumerate(result.moves, 1):
        label = f"{number}: {move.query}.{move.operator} to {move.to}"
        above.axvline(move.at_s, color="grey", linestyle=":", linewidth=1, label=label)
        below.axvline(move.at_s, color="grey", linestyle=":", linewidth=1)
        above.annotate(str(number), (move.at_s, 1), xycoords=("data", "axes fraction"), fontsize=7, va="bottom")
    for axes in (above, below):
        if 0 < len(axes.get_legend_handles_labels()[1]) <= LINES_MAX:
            axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=120, metadata={"Software": None} if path.endswith(".png") else None)
    plt.close(figure)


def _lines(axes: Any, rows: list[dict[str, Any]], name: str, value: str) -> None:
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        xs, ys = curves.setdefault(row[name], ([], []))
        xs.append(row["at_s"])
        ys.append(row[value])
    for label, (xs, ys) in curves.items():
        axes.plot(xs, ys, linewidth=1, label=label)
    axes.grid(visible=True, alpha=0.3)
