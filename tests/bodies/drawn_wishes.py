"""Drawn wishes of every kind, possible and impossible, and what twin and live make of them, in the same words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.bodies.drawn_moves import NAMES, LiveDesk
from weft.bodies.twin import run as twin
from weft.model import AddAt, CrashAt, Deployment, Placement, RestartAt
from weft.model.wishes import MoveTo, RemoveQuery, Replace, ScaleTo, TakeOver, Wish
from weft.plan.changing.adding import coming
from weft.plan.changing.running_plan import Impossible
from weft.protocol.hosting import Want
from weft.spec import plain_added

Step = AddAt | CrashAt | RestartAt | tuple[float, Wish]
"""What happens or is wished, at which second."""
Ends = list[tuple[str, str]]
"""What became of each wish: `done` or `refused`, and why not."""
SPACE_S = 6.0
KINDS = ("moves", "moves", "replace", "add", "add", "remove", "scale", "lost")


def drawn_wishes(deployment: Deployment, placement: Placement, seed: int, many: int = 7) -> list[Step]:
    """Wishes one after another; a site that is lost is taken over, wholly or not, and then comes back."""
    rng, steps = random.Random(seed), list[Step]()
    known = list(placement.homes)
    for at in range(many):
        at_s, kind = 1.0 + SPACE_S * at, rng.choice(KINDS)
        match kind:
            case "moves":
                chosen = rng.sample(known, rng.randint(2, min(3, len(known))))
                wish: Wish = MoveTo({stream: rng.choice(NAMES) for stream in chosen})
            case "replace":
                wish = Replace(Placement({stream: rng.choice(NAMES) for stream in known if rng.random() < 0.9}))
            case "remove":
                wish = RemoveQuery(rng.choice(("use", "alerts", "more", "lost")), by="person")
            case "scale":
                wish = ScaleTo(f"{rng.choice(known)}x", (rng.choice(NAMES),))
            case "add":
                steps.append(_queries(rng, at_s, deployment, f"more{at}"))
                continue
            case _:
                # To one site: live, what runs as one is only taken over together, which the twin cannot know.
                site, to = rng.choice(list(placement.homes.values())), rng.choice(NAMES)
                whole = rng.random() < 0.7
                homes = {one: to for one in known if (placement.home(one) == site if whole else rng.random() < 0.7)}
                lost = (at_s + 0.5, TakeOver(site, homes))
                steps += [CrashAt(at_s, site), lost, RestartAt(at_s + 3.0, site)]
                continue
        steps.append((at_s, wish))
    return steps


def _queries(rng: random.Random, at_s: float, deployment: Deployment, name: str) -> AddAt:
    """A query more, which reads a source or a stream that is there, maybe too much for a small site."""
    reads = rng.choice(("readings", "alarms", "use.valid", "alerts.loud"))
    sql = f"SELECT k FROM {reads}"
    operator = {"name": "o", "from": [reads], "sql": sql, "cost_ms": rng.choice([1, 9]), "selectivity": 1}
    if rng.random() < 0.7:
        operator["site"] = rng.choice(NAMES)
    sink = {"from": "o", "format": "parquet", "path": f"out/{name}"}
    read = plain_added({"queries": [{"name": name, "operators": [operator], "sink": sink}]}, deployment)
    return AddAt(at_s, f"{name}.yaml", read.queries)


def in_the_twin(deployment: Deployment, placement: Placement, steps: Sequence[Step]) -> tuple[Ends, Placement]:
    """What the twin did and refused, in the order asked, and where everything was at the end."""
    wishes = tuple(step for step in steps if isinstance(step, tuple))
    scenario = tuple(step for step in steps if not isinstance(step, tuple))
    seconds = SPACE_S * (len(steps) + 2)
    found = twin(replace(deployment, scenario=scenario), placement, seconds=seconds, wishes=wishes)
    ends = found.placement_at_end.items()
    homes = {f"{query}.{name}": sites[0] for query, held in ends for name, sites in held.items()}
    return [(str(one["state"]), str(one["why"])) for one in found.changes], Placement(homes)


def at_the_live_desk(
    deployment: Deployment, placement: Placement, steps: Sequence[Step], folder: Path
) -> tuple[Ends, Placement]:
    """What the live desk did and refused, in the order asked, and where everything was at the end."""
    told: Ends = []
    with LiveDesk(deployment, placement, folder) as live:
        for step in steps:
            match step:
                case CrashAt(crash=site):
                    live.sites.crash(site)
                case RestartAt(restart=site):
                    live.sites.start(site)
                    for fragment in live.changes.fragments:
                        if fragment.site == site:
                            live.desk.tell(Want(fragment.id, site))
                    live.until_all_run()
                case _:
                    wish = step[1] if isinstance(step, tuple) else _coming(live, step, deployment)
                    if isinstance(wish, Impossible):
                        told.append(("refused", wish.why))
                    else:
                        asked = live.ask(wish)
                        told.append((asked.state, asked.why))
        homes = live.changes.placement.homes
        assert all(many == 1 for many in live.fake.most.values()), "of each fragment one runs at a time"
    return told, Placement(homes)


def _coming(live: LiveDesk, step: AddAt, deployment: Deployment) -> Wish | Impossible:
    now = live.changes.in_force
    return coming(now.deployment, now.placement, step.queries, deployment.control, "scenario", "scenario")
