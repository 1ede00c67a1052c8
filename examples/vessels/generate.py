"""Puts a minute and a half of ships' messages into data/, one file per shore station, in the order they are heard.

The messages are those of ais.csv where WEFT_DATA names its folder, else made up: ferries, cargo ships, fishing boats at
work and in port, a few with impossible positions. Either way a message heard twice is also in the other station's file.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
START = np.datetime64("2026-04-26T00:00:00")
SPAN_S = 97
TWICE_SHARE = 0.4
LATE_S_MAX = 12  # within the twenty seconds that the queries wait
LATE_SHARE = 0.03
WRONG_SHARE = 0.02
BORDER_LATITUDE = 56.2  # skagen hears what is north of it
STATIONS = ("skagen", "gedser")
# The names in the recording, and those in the deployment file.
COLUMNS = {
    "# Timestamp": "ts", "Type of mobile": "mobile", "MMSI": "mmsi", "Latitude": "latitude", "Longitude": "longitude",
    "Navigational status": "status", "SOG": "knots", "Ship type": "ship_type",
}  # fmt: skip
# Type: share of ships, knots, spread of knots, share of messages that name the type (the others say Undefined).
TYPES = {
    "Cargo": (0.34, 11.0, 3.0, 0.2),
    "Fishing": (0.24, 3.4, 1.2, 0.2),
    "Tanker": (0.14, 11.0, 2.0, 0.2),
    "Passenger": (0.12, 15.0, 3.0, 0.2),
    "Pleasure": (0.10, 5.0, 2.0, 0.2),
    "Tug": (0.06, 6.0, 3.0, 0.2),
}
# Where ships are: latitude, longitude, spread in degrees.
WATERS = np.array([
    (57.75, 10.60, 0.05), (57.40, 11.30, 0.30), (56.60, 11.70, 0.30), (57.60, 9.20, 0.35), (56.40, 7.40, 0.45),
    (55.46, 8.35, 0.06), (55.40, 10.95, 0.20), (55.75, 12.68, 0.12), (54.60, 12.20, 0.20), (55.05, 14.90, 0.30),
])  # fmt: skip


def recorded() -> Path | None:
    """The recorded messages, None where there are none."""
    data = os.environ.get("WEFT_DATA")
    path = Path(data) / "ais.csv" if data else None
    return path if path is not None and path.is_file() else None


def fill(folder: Path, messages: int = 20_000, seed: int = 7, made_up: bool = False) -> str:
    """Write one file per station; says where the messages are from."""
    folder.mkdir(parents=True, exist_ok=True)
    source = None if made_up else recorded()
    if source is None:
        table, origin = made(messages, seed), f"made up with seed {seed}"
    else:
        # As text, so that what is written is what was read.
        table = pd.read_csv(source, dtype=str, nrows=messages, usecols=list(COLUMNS), keep_default_na=False)
        table, origin = table[list(COLUMNS)].rename(columns=COLUMNS), f"recorded in {source}"
    copies = table.groupby(list(table.columns), sort=False).cumcount()
    far_south = table["latitude"].astype(float) <= BORDER_LATITUDE
    station = (far_south.astype(int) + copies) % len(STATIONS)
    for number, name in enumerate(STATIONS):
        table[station == number].to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    return f"{len(table):,} messages of {table['mmsi'].nunique():,} ships, {origin}"


def made(messages: int, seed: int) -> pd.DataFrame:
    """Messages by the moment they are heard, of ships that keep their course and speed."""
    rng = np.random.default_rng(seed)
    names, shares = list(TYPES), np.array([one[0] for one in TYPES.values()])
    ships = max(20, messages // 20)
    kind = rng.choice(len(names), size=ships, p=shares / shares.sum())
    told = np.array(list(TYPES.values()))[kind]
    in_port = rng.random(ships) < 0.25
    ship_knots = np.where(in_port, 0.0, np.maximum(0.3, rng.normal(told[:, 1], told[:, 2])))
    course = rng.uniform(0, 2 * np.pi, ships)
    water = WATERS[rng.integers(0, len(WATERS), ships)]
    start = water[:, :2] + water[:, 2:] * rng.normal(size=(ships, 2))
    mmsi = rng.choice(np.arange(205_000_000, 275_000_000, 997), size=ships, replace=False)
    helpless = rng.random(ships) < 0.01

    single = int(messages / (1 + TWICE_SHARE))
    ship = rng.integers(0, ships, single)
    sent_s = np.sort(rng.integers(0, SPAN_S, single))
    degrees = ship_knots[ship] * 1.852 / 3600 * sent_s / 111.3
    latitude = start[ship, 0] + degrees * np.cos(course[ship])
    longitude = start[ship, 1] + degrees * np.sin(course[ship]) / 0.56
    knots = np.maximum(0, ship_knots[ship] + rng.normal(0, 0.1, single) * ~in_port[ship])
    wrong = rng.random(single) < WRONG_SHARE
    fishes = (kind[ship] == names.index("Fishing")) & ~in_port[ship]
    status = np.where(fishes, "Engaged in fishing", np.where(in_port[ship], "Moored", "Under way using engine"))
    moment = pd.Series(START + sent_s.astype("timedelta64[s]"))
    table = pd.DataFrame({
        "ts": moment.dt.strftime("%d/%m/%Y %H:%M:%S"),
        "mobile": np.where(rng.random(single) < 0.06, "Base Station", np.where(mmsi[ship] % 9, "Class A", "Class B")),
        "mmsi": mmsi[ship],
        "latitude": np.char.mod("%.6f", np.where(wrong, 91.0, latitude)),
        "longitude": np.char.mod("%.6f", np.where(wrong, 0.0, longitude)),
        "status": np.where(helpless[ship], "Not under command", status),
        "knots": np.where(rng.random(single) < 0.1, "", np.char.mod("%.1f", knots)),
        "ship_type": np.where(rng.random(single) < told[ship, 3], np.array(names)[kind[ship]], "Undefined"),
    })  # fmt: skip
    again = rng.choice(single, size=messages - single, replace=False)
    late_s = np.where(rng.random(messages) < LATE_SHARE, rng.uniform(1, LATE_S_MAX, messages), 0)
    heard_s = np.concatenate([sent_s, sent_s[again]]) + late_s
    return pd.concat([table, table.iloc[again]]).iloc[np.argsort(heard_s, kind="stable")]


def main() -> None:
    """Fill data/ beside this file."""
    parser = argparse.ArgumentParser(description="Make the messages that deployment.yaml reads.")
    parser.add_argument("--messages", type=int, default=20_000, help="how many at most (default 20000)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--made-up", action="store_true", help="make them up even where WEFT_DATA has recorded ones")
    asked = parser.parse_args()
    print(f"{HERE / 'data'}: {fill(HERE / 'data', asked.messages, asked.seed, asked.made_up)}")


if __name__ == "__main__":
    main()
