"""Puts a week of half-hourly readings into data/, one file per gateway, in the order in which they come in.

The readings are those of meters_home.csv where WEFT_DATA names its folder, else made up. Either way some are late,
a few are suspicious, and a few lines are broken, the same ones every time.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import random
from datetime import datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent
GATEWAYS = 4
CONSUMERS = 50
HALF_HOURS = 7 * 48
START = datetime(2024, 1, 1)  # a Monday
LATE_MINUTES_MAX = 100  # within the two hours that the queries wait
LATE_SHARE = 0.05
# Consumer, first half hour, how many, kWh more in each: heaters left on, and a meter that lies.
SPIKES = ((7, 60, 6, 6.0), (21, 150, 4, 7.5), (38, 205, 2, 14.0), (44, 290, 4, 6.5))
BROKEN = ("2024-01-02 10:00:00,m-03,n-{gateway},n/a", "2024-01-04 07:3", "#### modem restarted ####")
COLUMNS = ("ts", "meter", "neighbourhood", "kwh")


def recorded() -> Path | None:
    """The recorded readings, None where there are none."""
    data = os.environ.get("WEFT_DATA")
    path = Path(data) / "meters_home.csv" if data else None
    return path if path is not None and path.is_file() else None


def loads(seed: int) -> tuple[dict[tuple[int, int], float], str]:
    """Use by (half hour, consumer), and where it is from."""
    path = recorded()
    if path is not None:
        with open(path, newline="", encoding="utf-8") as file:
            return {
                (int(row["halfhour"]), int(row["consumer"])): float(row["load"]) for row in csv.DictReader(file)
            }, f"recorded in {path}"
    rng = random.Random(seed)
    sizes = {consumer: rng.lognormvariate(-0.9, 0.4) for consumer in range(1, CONSUMERS + 1)}
    return {
        (half_hour, consumer): round(sizes[consumer] * _of_day(half_hour % 48 / 2) * rng.uniform(0.6, 1.4), 4)
        for half_hour in range(HALF_HOURS)
        for consumer in range(1, CONSUMERS + 1)
    }, f"made up with seed {seed}"


def _of_day(hour: float) -> float:
    """A household's day: little at night, a peak in the morning and a greater one in the evening."""
    peaks = 0.9 * math.exp(-((hour - 7.5) ** 2) / 3) + 1.6 * math.exp(-((hour - 19) ** 2) / 8)
    return 0.45 + peaks


def gateway_of(consumer: int) -> int:
    """The gateway that collects a consumer's meter, counted from 1."""
    return (consumer - 1) * GATEWAYS // CONSUMERS + 1


def fill(folder: Path, seed: int = 7) -> str:
    """Write one file per gateway; says where the readings are from."""
    folder.mkdir(parents=True, exist_ok=True)
    used, origin = loads(seed)
    rng = random.Random(seed + 1)
    lines: dict[int, list[tuple[datetime, str]]] = {gateway: [] for gateway in range(1, GATEWAYS + 1)}
    for (half_hour, consumer), kwh in sorted(used.items()):
        more = sum(
            extra for who, first, count, extra in SPIKES if who == consumer and first <= half_hour < first + count
        )
        moment = START + timedelta(minutes=30 * half_hour)
        late = timedelta(minutes=rng.uniform(1, LATE_MINUTES_MAX) if rng.random() < LATE_SHARE else 0)
        gateway = gateway_of(consumer)
        lines[gateway].append((moment + late, f"{moment},m-{consumer:02d},n-{gateway},{kwh + more:.4f}"))
    for gateway, held in lines.items():
        held.sort(key=lambda line: line[0])
        text = [line for _, line in held]
        for number, line in enumerate(BROKEN, start=1):
            text.insert(number * len(text) // 4, line.format(gateway=gateway))
        content = "\n".join([",".join(COLUMNS), *text]) + "\n"
        (folder / f"gw-{gateway}.csv").write_text(content, encoding="utf-8")
    return f"{len(used):,} readings of {CONSUMERS} consumers over a week, {origin}"


def main() -> None:
    """Fill data/ beside this file."""
    parser = argparse.ArgumentParser(description="Make the readings that deployment.yaml reads.")
    parser.add_argument("--seed", type=int, default=7)
    print(f"{HERE / 'data'}: {fill(HERE / 'data', parser.parse_args().seed)}")


if __name__ == "__main__":
    main()
