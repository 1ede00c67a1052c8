"""More faults planted by hand, written down when worlds had been grown for those of `planted_since`.

Fifteen of them were found by the worlds as they were then.
"""

from __future__ import annotations

from tests.bodies.explorer.planted import Planted
from weft.protocol.balancing import balancer
from weft.protocol.composing import composer, keeper, room
from weft.protocol.connection import hearer, speaker
from weft.protocol.control import controller
from weft.protocol.directory import directory
from weft.protocol.exclusion import member
from weft.protocol.feedback import feedback
from weft.protocol.hosting import agent, conductor
from weft.protocol.moving import mover, preparer
from weft.protocol.ordered_move import site
from weft.protocol.reporting import inbox, outbox
from weft.protocol.scaling import instance

PLANTED_LATER = (
    Planted(
        "only what has ended is wanted again", mover,
        "old = row.ends[: row.asked]",
        "old = row.ends[: len(row.ended)]",
    ),
    Planted(
        "what is gone for good goes on being wanted", mover,
        "gone = [Tell(Unwant(end.fragment)) for end in row.ends if end.fragment not in row.awaits]",
        "gone: list[Effect] = []",
    ),
    Planted(
        "what is stuck keeps what was to follow it", agent,
        "row.state, row.next = STUCK, 0",
        "row.state = STUCK",
    ),
    Planted(
        "what has ended is done though nobody wants it", conductor,
        "row.state = DONE if row.want else IDLE",
        "row.state = DONE",
    ),
    Planted(
        "the farewell of a former life counts", directory,
        "        if message.life < row.life:\n"
        "            return []\n"
        "        row.life, row.names, row.left",
        "        row.life, row.names, row.left",
    ),
    Planted(
        "bytes of what was lost count on", speaker,
        "            lost.append(Lost(peer, row.first))\n"
        "            row.held_bytes -= len(row.held.pop(0))",
        "            lost.append(Lost(peer, row.first))\n"
        "            row.held.pop(0)",
    ),
    Planted(
        "what is freed stays on disk", keeper,
        "if row.state == CONFIRMED else []\n"
        "        self.empty",
        "if row.state == HELD else []\n"
        "        self.empty",
    ),
    Planted(
        "what stays is taken to have left", composer,
        "if message.kept or message.piece not in row.left:",
        "if message.piece not in row.left:",
    ),
    Planted(
        "who has left a query keeps what it knew", feedback,
        "row.state, row.hub, row.sites, row.heard = APART, \"\", (), {}",
        "row.state, row.hub, row.sites = APART, \"\", ()",
    ),
    Planted(
        "forwarding stops one record too early", site,
        "ways.last < ways.stop - 1",
        "ways.last < ways.stop - 2",
    ),
    Planted(
        "old reports tell how it stands", inbox,
        "report.life == held.life and report.number > held.number",
        "report.life == held.life",
    ),
    Planted(
        "an answer to a former life of the site counts", outbox,
        "        if life != self.life:\n"
        "            return\n",
        "",
    ),
    Planted(
        "a change that failed may not be undone", controller,
        "        row.shifts = ()\n",
        "",
    ),
    Planted(
        "new instances do not hear of neighbours downstream", instance,
        "start = StartInstance(tuple(sorted(row.ups.items())), tuple(sorted(row.downs.items())))",
        "start = StartInstance(tuple(sorted(row.ups.items())), ())",
    ),
    Planted(
        "who begins anew is not noted", balancer,
        "        row.heard = number\n"
        "        if row.state not in (HELD, LENT):",
        "        if row.state not in (HELD, LENT):",
    ),
    Planted(
        "a gap is told where a peer was heard by a former life", hearer,
        "[] if begins or input.number == row.last + 1",
        "[] if input.number == row.last + 1",
    ),
    Planted(
        "the timer of what was made ready goes on when it is taken", preparer,
        "return [CancelTimer(f\"start {fragment}\")] if row.state == READY else []",
        "return []",
    ),
    Planted(
        "window counts from what was written", speaker,
        "upto = min(row.last, row.base + self.limits.window)",
        "upto = min(row.last, row.written + self.limits.window)",
    ),
    Planted(
        "what is reserved takes no room", room,
        "row.load = piece.load\n"
        "            self.load",
        "row.load = 0\n"
        "            self.load",
    ),
    Planted(
        "door stays open", member,
        "        if fork.away != KEPT and row.door == \"open\":\n"
        "            row.door = \"used\"\n",
        "",
    ),
)  # fmt: skip


SEEN_IN_LATER: dict[str, str] = {
    "only what has ended is wanted again": "a loss",
    "what is gone for good goes on being wanted": "a query goes",
    "what is stuck keeps what was to follow it": "wanted again where it does not halt",
    "what has ended is done though nobody wants it": "stopped, the inputs end, a torn step",
    "the farewell of a former life counts": "one of two leaves",
    "bytes of what was lost count on": "more bytes than there is room for",
    "what is freed stays on disk": "one query, a message lost",
    "what stays is taken to have left": "one leans, the other leaves",
    "who has left a query keeps what it knew": "an operator moves",
    "forwarding stops one record too early": "the old site is far",
    "old reports tell how it stands": "the site comes back, a late word of its life before",
    "an answer to a former life of the site counts": "the site comes back",
    "a change that failed may not be undone": "a rule",
    "new instances do not hear of neighbours downstream": "chain of two a2 grows, b2 grows",
    "who begins anew is not noted": "offer",
    "a gap is told where a peer was heard by a former life": "the peer restarts",
    "the timer of what was made ready goes on when it is taken":
        "off, and its site never hears of that, then taken over",
    "window counts from what was written": "a narrow window",
    "what is reserved takes no room": "two at once, room for one",
    "door stays open": "1+2 x2",
}  # fmt: skip
"""The world that sees each fault."""
