"""Thousands of runs of the twin, in parallel on Spark: a grid of settings, one row of results each."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.model import Deployment, Placement

if TYPE_CHECKING:
    import pandas as pd

Made = Deployment | tuple[Deployment, Placement]
Point = dict[str, Any]
Counting = Callable[[int, int], None]


def points_of(grid: Mapping[str, Sequence[Any]], seeds: Sequence[int]) -> list[Point]:
    """Every combination of a grid, with every seed."""
    names = [*grid, "seed"]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*grid.values(), seeds)]


def one_run(make: Callable[..., Made], point: Point, seconds: float, options: Mapping[str, Any]) -> dict[str, Any]:
    """The twin's JSON for one point."""
    from weft.bodies.twin import run

    made = make(**{name: value for name, value in point.items() if name != "seed"})
    deployment, placement = made if isinstance(made, tuple) else (made, None)
    return run(deployment, placement, seconds=seconds, seed=point["seed"], **options).as_json()


def sweep(
    make: Callable[..., Made],
    grid: Mapping[str, Sequence[Any]],
    seconds: float = 60.0,
    seeds: Sequence[int] = (0,),
    *,
    folder: str | os.PathLike[str] | None = None,
    session: Any = None,
    progress: Counting | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Runs `make(**point)` for every point of a grid and every seed; one row per run and query, failed runs included.

    With a `folder` each finished run is kept there, and the same sweep asked again takes up where it was left.
    """
    import pandas as pd

    points = points_of(grid, seeds)
    kept = Path(folder) if folder is not None else None
    found: dict[int, dict[str, Any]] = {}
    for index, point in enumerate(points):
        path = kept / f"{_name(point, seconds, options)}.json" if kept is not None else None
        if path is not None and path.exists():
            found[index] = json.loads(path.read_text(encoding="utf-8"))
    missing = [index for index in range(len(points)) if index not in found]
    for at, told in enumerate(_run(make, [points[index] for index in missing], seconds, options, session), 1):
        index = missing[told.index]
        if told.error is not None:
            found[index] = {"error": told.error}
        else:
            found[index] = told.result
            if kept is not None:
                _keep(kept / f"{_name(points[index], seconds, options)}.json", told.result)
        if progress is not None:
            progress(len(points) - len(missing) + at, len(points))
    rows = [row for index, point in enumerate(points) for row in _rows(point, found[index])]
    return pd.DataFrame(rows)


def _run(
    make: Callable[..., Made], points: list[Point], seconds: float, options: Mapping[str, Any], session: Any
) -> Iterator[Any]:
    if not points:
        return
    from weft.spark.parallel import parallel_map
    from weft.spark.session.starting import start_session
    from weft.spark.storage import temporary

    if session is None:
        session = start_session(temporary.claim() / "logs")
    home = inspect.getmodule(make)
    carried = home if home is not None and home.__name__.split(".")[0] not in ("weft", "__main__") else None
    yield from parallel_map(session, lambda point: one_run(make, point, seconds, options), points, carried)


def _name(point: Point, seconds: float, options: Mapping[str, Any]) -> str:
    text = json.dumps([point, seconds, dict(options)], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _keep(path: Path, result: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(result), encoding="utf-8")
    unfinished.replace(path)


def _rows(point: Point, result: dict[str, Any]) -> list[dict[str, Any]]:
    if "error" in result:
        return [{**point, "query": None, "error": result["error"]}]
    busiest = max((one["utilisation"] for one in result["sites"].values()), default=0.0)
    rows = []
    for name, one in result["queries"].items():
        latency = {f"latency_ms_{key}": value for key, value in (one["latency_ms"] or {}).items()}
        counts = {key: one[key] for key in ("records_in", "records_out", "dropped", "promise_kept")}
        shared = {"utilisation_max": busiest, "moves": len(result["moves"]), "events": result["events"], "error": None}
        rows.append({**point, "query": name, **latency, **counts, **shared})
    return rows
