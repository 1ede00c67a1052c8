"""Puts an hour of taxi trips into data/, one file per vendor of taxi meters, in the order in which they come in.

The trips are those of taxi.csv where WEFT_DATA names its folder, else made up: most within Manhattan, some to or from
an airport, a few with broken times or coordinates, a few told late. The same ones every time.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
VENDORS = 2
START = np.datetime64("2013-01-01T00:00:00")
SPAN_S = 3600
LATE_S_MAX = 200  # within the five minutes that the queries wait
LATE_SHARE = 0.04
BROKEN_SHARE = 0.02
COLUMNS = (
    "medallion", "hack_license", "pickup_datetime", "dropoff_datetime", "trip_time_in_secs", "trip_distance",
    "pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude", "payment_type", "fare_amount",
    "surcharge", "mta_tax", "tip_amount", "tolls_amount", "total_amount",
)  # fmt: skip
# Where trips begin and end: longitude, latitude, spread in degrees, share.
PLACES = (
    (-73.985, 40.752, 0.010, 0.36),  # Midtown
    (-73.992, 40.730, 0.010, 0.26),  # Downtown
    (-73.959, 40.773, 0.007, 0.15),  # Upper East Side
    (-73.977, 40.784, 0.006, 0.11),  # Upper West Side
    (-73.948, 40.808, 0.008, 0.03),  # Harlem
    (-73.960, 40.712, 0.012, 0.05),  # Williamsburg
    (-73.871, 40.774, 0.003, 0.025),  # LaGuardia
    (-73.786, 40.645, 0.004, 0.015),  # JFK
)
KM_EAST, KM_NORTH = 84.3, 111.2


def recorded() -> Path | None:
    """The recorded trips, None where there are none."""
    data = os.environ.get("WEFT_DATA")
    path = Path(data) / "taxi.csv" if data else None
    return path if path is not None and path.is_file() else None


def fill(folder: Path, trips: int = 10_000, seed: int = 7, made_up: bool = False) -> str:
    """Write one file per vendor; says where the trips are from."""
    folder.mkdir(parents=True, exist_ok=True)
    source = None if made_up else recorded()
    if source is None:
        table, origin = made(trips, seed), f"made up with seed {seed}"
    else:
        # As text, so that what is written is what was read.
        table, origin = pd.read_csv(source, dtype=str, nrows=trips), f"recorded in {source}"
    vendor = table["medallion"].map(lambda medallion: int(medallion, 16) % VENDORS)
    for number in range(VENDORS):
        table[vendor == number].to_csv(folder / f"vendor-{number + 1}.csv", index=False, lineterminator="\n")
    return f"{len(table):,} trips of {table['medallion'].nunique():,} taxis, {origin}"


def made(trips: int, seed: int) -> pd.DataFrame:
    """Trips by the moment they are told: fares by the city's rate of 2013, in and around Manhattan."""
    rng = np.random.default_rng(seed)
    shares = np.array([place[3] for place in PLACES])
    shares /= shares.sum()
    ends: dict[str, np.ndarray] = {}
    for end in ("pickup", "dropoff"):
        at = np.array(PLACES)[rng.choice(len(PLACES), size=trips, p=shares)]
        ends[f"{end}_longitude"] = at[:, 0] + at[:, 2] * rng.normal(size=trips)
        ends[f"{end}_latitude"] = at[:, 1] + at[:, 2] * rng.normal(size=trips)
    east_km = (ends["dropoff_longitude"] - ends["pickup_longitude"]) * KM_EAST
    north_km = (ends["dropoff_latitude"] - ends["pickup_latitude"]) * KM_NORTH
    miles = np.maximum(0.2, np.hypot(east_km, north_km) * rng.uniform(1.1, 1.5, trips) / 1.609)
    seconds = np.maximum(60, miles / rng.lognormal(math.log(12), 0.3, trips) * 3600).astype(int)
    ended_s = np.sort(rng.integers(0, SPAN_S, trips))
    cents = (250 + 50 * np.ceil(5 * miles)).astype(int)
    by_card = rng.random(trips) < 0.45
    tip = np.where(by_card, (cents * rng.choice([0.1, 0.2, 0.25, 0.3], trips)).astype(int), 0)
    toll = np.where(rng.random(trips) < 0.02, 480, 0)
    broken = rng.random(trips) < BROKEN_SHARE
    kind = rng.integers(0, 3, trips)
    for column in ends.values():
        column[broken & (kind == 0)] = 0.0
    seconds[broken & (kind == 1)] = 0
    miles[broken & (kind == 2)] = 0.0
    # Half as many taxis as trips, each of which rests now and then.
    taxi = rng.integers(0, max(1, trips // 2), trips).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    dropoff = START + ended_s.astype("timedelta64[s]")
    table = pd.DataFrame({
        "medallion": [f"{number:016x}" for number in taxi.tolist()],
        "hack_license": [f"{number:016x}" for number in (taxi ^ np.uint64(0xABCDEF)).tolist()],
        "pickup_datetime": dropoff - seconds.astype("timedelta64[s]"),
        "dropoff_datetime": dropoff,
        "trip_time_in_secs": seconds,
        "trip_distance": _text(miles, 2),
        **{name: _text(values, 6) for name, values in ends.items()},
        "payment_type": np.where(by_card, "CRD", "CSH"),
        "fare_amount": _text(cents / 100, 2),
        "surcharge": "0.50",
        "mta_tax": "0.50",
        "tip_amount": _text(tip / 100, 2),
        "tolls_amount": _text(toll / 100, 2),
        "total_amount": _text((cents + 100 + tip + toll) / 100, 2),
    })  # fmt: skip
    late_s = np.where(rng.random(trips) < LATE_SHARE, rng.uniform(1, LATE_S_MAX, trips), 0)
    return table.iloc[np.argsort(ended_s + late_s, kind="stable")][list(COLUMNS)]


def _text(values: np.ndarray, digits: int) -> np.ndarray:
    return np.char.mod(f"%.{digits}f", values)


def main() -> None:
    """Fill data/ beside this file."""
    parser = argparse.ArgumentParser(description="Make the trips that deployment.yaml reads.")
    parser.add_argument("--trips", type=int, default=10_000, help="how many at most (default 10000)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--made-up", action="store_true", help="make trips up even where WEFT_DATA has recorded ones")
    asked = parser.parse_args()
    print(f"{HERE / 'data'}: {fill(HERE / 'data', asked.trips, asked.seed, asked.made_up)}")


if __name__ == "__main__":
    main()
