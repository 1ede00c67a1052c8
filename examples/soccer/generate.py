"""Puts a piece of a soccer match into data/: positions of the ball and of all limbs, in the order in which they arrive.

    python examples/soccer/generate.py [--seconds 60] [--full]

A real-time locating system tracks the ball 2,000 times a second and 143 transmitters on limbs 200 times (Order §5);
so does `--full`. What is seen of the ball arrives after 1-2 ms, of persons after 5-45 ms. Without it, a tenth of those
rates and one transmitter a person, which two cores bear, and ten times the delays, so that records are as much out of
order. truth.json tells who hit the ball when, and which were shots.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent
START = datetime(2024, 6, 1, 15, 0, tzinfo=UTC)
PERSONS = 25  # 22 players and 3 referees
GOAL_X, POST_Y = 52.5, 3.66
HIT_EVERY_S, HIT_S = 1.5, 0.02
SHOT_EVERY = 4
FULL = (2000, 200, 143)
SMALL = (200, 20, PERSONS)


@dataclass(frozen=True, slots=True)
class Hit:
    """A kick: when, by whom, from where and with what velocity."""

    at_s: float
    player: int
    x: float
    y: float
    vx: float
    vy: float
    shot: bool


def hits(seconds: float, rng: random.Random) -> list[Hit]:
    """A chain of passes, now and then a shot at the goal, after which the ball is back in the middle."""
    out: list[Hit] = []
    x, y = 0.0, 0.0
    for number in range(1, int(seconds / HIT_EVERY_S)):
        at_s = number * HIT_EVERY_S
        player = rng.randrange(1, 23)
        if out and not out[-1].shot:
            x, y = out[-1].x + out[-1].vx * HIT_EVERY_S, out[-1].y + out[-1].vy * HIT_EVERY_S
        else:
            x, y = rng.uniform(-5, 5), rng.uniform(-5, 5)
        shot = number % SHOT_EVERY == 0
        if shot:
            aim = rng.uniform(-POST_Y + 0.5, POST_Y - 0.5)
            angle, speed = math.atan2(aim - y, GOAL_X - x), rng.uniform(22, 30)
        else:
            # A pass stays on the field and never points at the goal.
            angle = rng.choice((1, -1)) * (rng.uniform(1.9, 2.6) if x > 0 else rng.uniform(0.7, 1.2))
            speed = rng.uniform(8, 12)
            if abs(y + speed * HIT_EVERY_S * math.sin(angle)) > 30:
                angle = -angle
        out.append(Hit(at_s, player, x, y, speed * math.cos(angle), speed * math.sin(angle), shot))
    return out


def ball_rows(
    found: list[Hit], seconds: float, per_s: int, slow: int, rng: random.Random
) -> list[tuple[float, float, str]]:
    """(arrival, time, line) of every sample of the ball."""
    rows, at, now = [], 0, Hit(0.0, 0, 0.0, 0.0, 0.0, 0.0, False)
    for sample in range(int(seconds * per_s)):
        time_s = sample / per_s
        while at < len(found) and found[at].at_s <= time_s:
            now, at = found[at], at + 1
        since = time_s - now.at_s
        x, y = now.x + now.vx * since, now.y + now.vy * since
        if now.shot and x >= GOAL_X:
            x = GOAL_X
        kicked = 300.0 if now.player and since < HIT_S else rng.uniform(0, 5)
        line = f"ball,0,{x:.3f},{y:.3f},{now.vx:.3f},{now.vy:.3f},{kicked:.1f}"
        rows.append((time_s + slow * rng.uniform(0.001, 0.002), time_s, line))
    return rows


def limb_rows(
    found: list[Hit], seconds: float, per_s: int, limbs: int, slow: int, rng: random.Random
) -> list[tuple[float, float, str]]:
    """(arrival, time, line) of every sample of every limb; who hits the ball stands at it, all others stay away."""
    rows = []
    spots = {person: (rng.uniform(-50, 50), 33 + person % 3) for person in range(1, PERSONS + 1)}
    for sample in range(int(seconds * per_s)):
        time_s = sample / per_s
        nearest = min(found, key=lambda hit: abs(hit.at_s - time_s))
        for limb in range(limbs):
            person = limb % PERSONS + 1
            x, y = spots[person]
            if nearest.player == person and abs(nearest.at_s - time_s) < 0.2:
                x, y = nearest.x + 0.3, nearest.y
            sway = 0.1 * math.sin(time_s + limb)
            delay_s = 0.025 + 0.02 * math.sin(time_s / 3 + limb) + rng.uniform(-0.002, 0.002)
            line = f"person,{person},{x + sway:.3f},{y + sway:.3f},0,0,0"
            rows.append((time_s + slow * min(0.045, max(0.005, delay_s)), time_s, line))
    return rows


def fill(folder: Path, seconds: float = 60.0, full: bool = False, seed: int = 7) -> str:
    """Write the recordings, and say what they are."""
    rng = random.Random(seed)
    ball_per_s, limb_per_s, limbs = FULL if full else SMALL
    slow = 1 if full else FULL[1] // SMALL[1]
    found = hits(seconds, rng)
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name, rows in (
        ("ball", ball_rows(found, seconds, ball_per_s, slow, rng)),
        ("limbs", limb_rows(found, seconds, limb_per_s, limbs, slow, rng)),
    ):
        rows.sort()
        counts[name] = len(rows)
        with (folder / f"{name}.csv").open("w", encoding="utf-8") as file:
            file.write("ts,kind,person,x,y,vx,vy,acceleration\n")
            file.writelines(f"{_moment(time_s)},{line}\n" for _, time_s, line in rows)
    truth = [{"at_s": hit.at_s, "player": hit.player, "shot": hit.shot} for hit in found]
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    shots = sum(hit.shot for hit in found)
    return f"{counts['ball']:,} samples of the ball, {counts['limbs']:,} of limbs; {len(found)} hits, {shots} shots"


def _moment(time_s: float) -> str:
    return (START + timedelta(seconds=time_s)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--full", action="store_true")
    asked = parser.parse_args()
    print(fill(HERE / "data", asked.seconds, asked.full))
