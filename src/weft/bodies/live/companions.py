"""What does a site carry beside its host? What its deployment asks for; one line for each companion."""

from __future__ import annotations

from collections.abc import Callable

from weft.bodies.live.carrier import Tell
from weft.bodies.live.directory.offering import Offering
from weft.bodies.live.epochs import next_life
from weft.bodies.live.feedback.site import SiteFeedback
from weft.bodies.live.site import Companion, SiteBody
from weft.bodies.live.state import State
from weft.bodies.live.transport import Transport
from weft.model import Deployment
from weft.plan.dataflow.sharing import is_on


def companions_of(
    body: SiteBody, deployment: Callable[[], Deployment], state: State, transport: Transport, story: Tell
) -> list[Companion]:
    """What a site of a run carries, as the deployment asks for it; `deployment` is that of the moment."""
    now, found = deployment(), list[Companion]()
    feeds_back = now.control.relief is not None
    if not feeds_back and not is_on(now):
        return found
    life = next_life(state, body.name)
    if feeds_back:
        feedback = SiteFeedback(body.name, life, deployment, body.fragments, transport, story)
        body.attend(feedback)
        found.append(feedback)
    if is_on(now):
        running = (now.site(body.name), life, deployment, lambda: body.running, body.used_s)
        found.append(Offering(*running, transport, story))
    return found
