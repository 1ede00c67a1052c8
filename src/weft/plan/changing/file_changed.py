"""What of a changed file can a run that was stopped go on with? Queries come and go; all else must be as it was cut.

Nothing runs at that moment, so nothing can be drained: queries are removed and added through the same door as ever, as
long as nothing else is cut anew by it. A query whose addition would do that (it reads what stayed inside a fragment so
far) is added once all runs, and so is an operator moved that the file pins elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from weft.model import Deployment, Placement, Query, dataflow
from weft.model.wishes import AddQuery, MoveTo, RemoveQuery, Wish
from weft.plan.changing.difference import difference
from weft.plan.changing.fragments import not_sent, without_unused
from weft.plan.changing.next_plan import next_plan, only_of, why_impossible
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan


def plan_for_file(
    held: RunningPlan, deployment: Deployment, planned: Placement, rules: Rules
) -> tuple[RunningPlan, tuple[Wish, ...]] | Impossible:
    """The plan to go on with under another file, and what to ask for once it runs; `planned` places what is new."""
    names = {query.name for query in deployment.queries}
    before = {stream.partition(".")[0] for stream in held.placement.homes}
    gone = tuple(Query(name, (), ()) for name in sorted(before - names))
    kept = tuple(query for query in deployment.queries if query.name in before)
    now = replace(held, deployment=replace(deployment, queries=(*kept, *gone)))
    why_not = _why_not(now, kept, rules) or not_sent(now.deployment, now.fragments)
    if why_not:
        return Impossible(why_not)
    for query in gone:
        then = next_plan(now, RemoveQuery(query.name), rules)
        if isinstance(then, Impossible):
            return then
        now = then
    if any(not query.sinks for query in kept):  # of a query that is gone, what others use runs on
        fragments = without_unused(now.fragments, dataflow(now.deployment))
        if fragments != now.fragments:
            placement = only_of(now.deployment, now.placement)
            now = replace(now, number=held.number + 1, placement=placement, fragments=fragments)
    wishes: tuple[Wish, ...] = _moves(now, kept)
    new = tuple(query for query in deployment.queries if query.name not in before)
    if new:
        streams = [f"{query.name}.{operator.name}" for query in new for operator in query.operators]
        reasons = {stream: planned.reasons.get(stream, "") for stream in streams}
        wish = AddQuery(new, {stream: planned.home(stream) for stream in streams}, reasons)
        then = next_plan(now, wish, rules)
        if isinstance(then, Impossible):
            return then
        if _cut_anew(now, then, kept):
            wishes = (wish, *wishes)  # what it reads must end in order first, which it can once it runs
        else:
            now = replace(then, deployment=deployment)
    return replace(now, number=held.number if now.number == held.number else held.number + 1), wishes


def _cut_anew(now: RunningPlan, then: RunningPlan, kept: tuple[Query, ...]) -> str | None:
    """A fragment of a query that stays, and that another plan does not have as it is."""
    names = {query.name for query in kept}
    return next((old.id for old in difference(now, then).olds if old.query in names), None)


def _why_not(now: RunningPlan, kept: tuple[Query, ...], rules: Rules) -> str | None:
    """Why operators cannot go on where they are: their site is gone from the file, or a way to it."""
    here = {site.name for site in now.deployment.sites}
    for query in kept:
        for operator in query.operators:
            stream = f"{query.name}.{operator.name}"
            if stream not in now.placement.homes:
                return f"{stream} is new in a query that has run"
            if now.placement.home(stream) not in here:
                return f"{stream} runs at {now.placement.home(stream)}, which is gone from the file: move it first"
    for query in kept:
        for operator in query.operators:
            stream = f"{query.name}.{operator.name}"
            why_not = why_impossible(now.deployment, now.placement, stream, now.placement.home(stream), rules.paths)
            if why_not:
                return f"{stream} runs at {now.placement.home(stream)}: {why_not}"
    return None


def _moves(now: RunningPlan, kept: tuple[Query, ...]) -> tuple[MoveTo, ...]:
    """What the file pins to another site than it runs at."""
    homes = {
        f"{query.name}.{operator.name}": operator.site
        for query in kept
        for operator in query.operators
        if operator.site is not None and now.placement.home(f"{query.name}.{operator.name}") != operator.site
    }
    return (MoveTo(homes, "the file pins it there", "file"),) if homes else ()
