"""Puts person.csv, auction.csv and bid.csv into data/: the recorded set where WEFT_DATA names one, else made up."""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import string
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent
NAMES = ("person", "auction", "bid")
START = datetime(2015, 7, 15)
LATE_S_MAX = 3.0  # below the four seconds that the queries wait
FIRST = ("vicky", "peter", "kate", "john", "saul", "paul", "luke", "julie", "deiter", "walter")
LAST = ("noris", "smith", "jones", "white", "abrams", "shultz", "walton", "spencer")
CITIES = ("boise", "bend", "kent", "seattle", "redmond", "phoenix", "los angeles", "san francisco", "cheyenne")
STATES = ("or", "id", "ca", "wa", "wy", "az")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

COLUMNS = {
    "person": ("id", "name", "email_address", "credit_card", "city", "state", "date_time", "extra"),
    "auction": (
        "id",
        "item_name",
        "description",
        "initial_bid",
        "reserve",
        "date_time",
        "expires",
        "seller",
        "category",
        "extra",
    ),
    "bid": ("auction", "bidder", "price", "channel", "url", "date_time", "extra"),
}


def recorded() -> Path | None:
    """The folder of the recorded set, None where there is none."""
    data = os.environ.get("WEFT_DATA")
    folder = Path(data) / "nexmark" if data else None
    return folder if folder is not None and all((folder / f"{name}.csv").is_file() for name in NAMES) else None


def fill(folder: Path, bids: int = 2_000, seed: int = 7, made_up: bool = False) -> str:
    """Fill a folder with the three files; says where they are from."""
    folder.mkdir(parents=True, exist_ok=True)
    source = None if made_up else recorded()
    if source is not None:
        for name in NAMES:
            shutil.copyfile(source / f"{name}.csv", folder / f"{name}.csv")
        return f"copied from {source}"
    for name, rows in made(bids, seed).items():
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS[name])
            writer.writerows(rows)
    return f"made up with seed {seed}: {bids} bids"


def made(bids: int, seed: int) -> dict[str, list[tuple[object, ...]]]:
    """Records in Nexmark's proportions (of 50: 1 person, 3 auctions, 46 bids), a few of them late by up to 3 s."""
    rng = random.Random(seed)
    persons, auctions = max(5, bids // 46), max(10, 3 * bids // 46)
    span_s = max(30.0, bids / 25)
    opened = _times(rng, auctions, span_s)
    return {
        "person": _late(rng, [_person(rng, 1000 + n, at) for n, at in enumerate(_times(rng, persons, span_s))], 6),
        "auction": _late(rng, [_auction(rng, 1000 + n, at, persons) for n, at in enumerate(opened)], 5),
        "bid": _late(rng, [_bid(rng, at, opened, persons) for at in _times(rng, bids, span_s)], 5),
    }


def _times(rng: random.Random, count: int, span_s: float) -> list[datetime]:
    """Moments in order, in milliseconds as the recorded set has them."""
    moments_ms = sorted(rng.uniform(0, span_s * 1000) for _ in range(count))
    return [START + timedelta(milliseconds=int(ms)) for ms in moments_ms]


def _late(rng: random.Random, rows: list[tuple[object, ...]], place: int) -> list[tuple[object, ...]]:
    """Let every twentieth record or so come after younger ones."""

    def arrival(row: tuple[object, ...]) -> datetime:
        moment = row[place]
        assert isinstance(moment, datetime)
        return moment + timedelta(seconds=rng.uniform(0, LATE_S_MAX) if rng.random() < 0.05 else 0)

    return [(*row[:place], *_texts(row[place:])) for row in sorted(rows, key=arrival)]


def _texts(values: tuple[object, ...]) -> Iterator[object]:
    for value in values:
        yield value.isoformat(" ", "milliseconds") if isinstance(value, datetime) else value


def _word(rng: random.Random, low: int, high: int) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=rng.randint(low, high)))


def _person(rng: random.Random, number: int, at: datetime) -> tuple[object, ...]:
    name = f"{rng.choice(FIRST)} {rng.choice(LAST)}"
    card = " ".join(f"{rng.randrange(10_000):04d}" for _ in range(4))
    mail = f"{_word(rng, 3, 7)}@{_word(rng, 2, 5)}.com"
    return number, name, mail, card, rng.choice(CITIES), rng.choice(STATES), at, _word(rng, 20, 60)


def _auction(rng: random.Random, number: int, at: datetime, persons: int) -> tuple[object, ...]:
    first = int(10 ** rng.uniform(2, 7))
    expires = at + timedelta(milliseconds=rng.randrange(10_000, 30_000))
    # People sell soon after they register: q8 looks for those who do so within ten seconds.
    newest = max(1, int(persons * (at - START).total_seconds() / 90))
    seller = 1000 + (max(0, newest - rng.randint(1, 4)) % persons if rng.random() < 0.6 else rng.randrange(persons))
    words = " ".join(_word(rng, 3, 9) for _ in range(4))
    return (
        number,
        _word(rng, 4, 12),
        words,
        first,
        first + int(10 ** rng.uniform(2, 6)),
        at,
        expires,
        seller,
        rng.randint(10, 14),
        _word(rng, 20, 60),
    )


def _bid(rng: random.Random, at: datetime, opened: list[datetime], persons: int) -> tuple[object, ...]:
    there = max(1, sum(moment <= at for moment in opened))
    auction = 1000 + max(0, there - 1 - int(rng.expovariate(0.1)))
    site = "/".join(_word(rng, 3, 4) for _ in range(3))
    url = f"https://www.nexmark.com/{site}/item.htm?query=1"
    if rng.random() < 0.5:
        return auction, 1000 + rng.randrange(persons), _price(rng), rng.choice(CHANNELS), url, at, _word(rng, 20, 60)
    number = rng.randrange(10_000)
    url += f"&channel_id={number << 15}"
    return auction, 1000 + rng.randrange(persons), _price(rng), f"channel-{number}", url, at, _word(rng, 20, 60)


def _price(rng: random.Random) -> int:
    return int(10 ** rng.uniform(2, 8))


def main() -> None:
    """Fill data/ beside this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bids", type=int, default=2_000, help="how many bids to make up (default 2000)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--made-up", action="store_true", help="make records up even where WEFT_DATA has recorded ones")
    asked = parser.parse_args()
    print(f"{HERE / 'data'}: {fill(HERE / 'data', asked.bids, asked.seed, asked.made_up)}")


if __name__ == "__main__":
    main()
