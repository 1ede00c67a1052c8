"""`weft order --plot`: the delay of every record and the hold over time, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weft.cli.output import WRONG_INPUT, fail

if TYPE_CHECKING:
    from weft.lab.recorded import Moments, Ordered


def draw(file: Path, moments: Moments, ordered: Ordered, name: str) -> None:
    """Delays as dots, those that stayed late in red, and the hold as a line, by order of arrival."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    stayed = np.zeros(len(moments.times), np.bool_)
    stayed[ordered.numbers[ordered.late]] = True
    arrival = np.arange(len(moments.times))
    delays, holds = ordered.delays / moments.scale, ordered.holds / moments.scale
    figure, axes = pyplot.subplots(figsize=(9, 4.5), layout="constrained")
    came_late = delays > 0
    repaired = came_late & ~stayed
    axes.plot(arrival[repaired], delays[repaired], ".", color="#4269d0", markersize=2, label="came late, put in order")
    axes.plot(arrival[stayed], delays[stayed], ".", color="#d62728", markersize=4, label="stayed late")
    axes.plot(arrival, holds, color="#222222", linewidth=1.2, label="hold")
    axes.set_xlabel("records, in order of arrival")
    axes.set_ylabel("delay and hold, in the column's unit")
    axes.set_title(f"{name}: {ordered.late.sum():,} of {len(arrival):,} stayed late", fontsize=10)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8, loc="upper right")
    try:
        figure.savefig(file, dpi=120)
    except (OSError, ValueError) as error:
        fail(f"--plot {file}: {error}", WRONG_INPUT)
    finally:
        pyplot.close(figure)
