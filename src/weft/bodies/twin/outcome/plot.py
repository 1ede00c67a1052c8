"""A run as a picture: latency of each query and utilisation of each site over time, moves marked."""

from __future__ import annotations

from typing import Any

from weft.bodies.twin.outcome.result import Result

LINES_MAX = 20


def draw(result: Result, path: str) -> None:
    """Writes the picture; the format follows the ending."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(10, 7), layout="constrained")
    _lines(above, result.latency_rows, "query", "latency_ms")
    above.set_ylabel("mean latency (ms)")
    _lines(below, result.utilisation_rows, "site", "utilisation")
    below.set_ylabel("utilisation")
    below.set_xlabel("time (s)")
    below.set_ylim(0, 1.05)
    for move in result.moves:
        for axes in (above, below):
            axes.axvline(move.at_s, color="grey", linestyle=":", linewidth=1)
        label = f"{move.query}.{move.operator} to {move.to}"
        above.text(move.at_s, above.get_ylim()[1], label, rotation=90, va="top", ha="right", fontsize=7)
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
    if 0 < len(curves) <= LINES_MAX:
        axes.legend(fontsize=7, loc="upper left")
    axes.grid(visible=True, alpha=0.3)
