"""Faults planted by hand in every protocol, unlike those of `planted`, when worlds had been grown to find those.

They too were written down before it was known which of them the worlds find.
"""

from __future__ import annotations

from tests.bodies.explorer.planted import Planted
from weft.protocol import stream_rule
from weft.protocol.balancing import balancer
from weft.protocol.composing import composer
from weft.protocol.connection import speaker
from weft.protocol.control import controller
from weft.protocol.directory import directory
from weft.protocol.exclusion import member
from weft.protocol.feedback import feedback
from weft.protocol.hosting import agent, conductor
from weft.protocol.moving import host, mover, preparer
from weft.protocol.ordered_move import site
from weft.protocol.reporting import inbox
from weft.protocol.scaling import instance

MOVE = (
    Planted(
        "what was carried over from other ends counts", mover,
        "word.after != after_of(row.ended) or word.fragment not in row.awaits", "word.fragment not in row.awaits",
    ),
    Planted(
        "a late word that an earlier change is off drops what a later one carried over", preparer,
        "row.state != ABSENT and row.number == asked.number", "row.state != ABSENT and row.number >= asked.number",
    ),
    Planted(
        "late words of the change that has started a fragment are heeded", host,
        "word.number <= era_of(hosted.seen)", "word.number < era_of(hosted.seen)",
    ),
)  # fmt: skip

HOSTING = (
    Planted(
        "what runs is taken on under whatever epoch it runs", conductor,
        "if row.state != IDLE or row.epoch != input.epoch:", "if row.state != IDLE:",
    ),
    Planted(
        "what was given up for good is taken on when it speaks", conductor,
        "if not row.silent or row.want != row.site:", "if row.want != row.site:",
    ),
    Planted(
        "whatever halts has ended cleanly", agent,
        "(isinstance(input, Halted) and input.clean)", "isinstance(input, Halted)",
    ),
)  # fmt: skip

GROUPS = (
    Planted(
        "a fork that brings a request was lent", member,
        "fork.patient = stamp > 0 and self.before(stamp, input.sender, row)", "fork.patient = stamp > 0",
    ),
    Planted(
        "one that is started takes up who has said bye meanwhile", instance,
        "row.ups.pop(input.sender, None)\n        self.note_gone(row, input.sender)", "row.ups.pop(input.sender, None)",
    ),
)  # fmt: skip

BALANCING = (
    Planted(
        "room that is kept for one negotiation is used for another", balancer,
        "row.state in (HELD, TAKING) and row.number == message.number", "row.state in (HELD, TAKING)",
    ),
    Planted(
        "after a crash only the first handover is said again", balancer,
        "for peer in sorted(self.memory.giving):", "for peer in sorted(self.memory.giving)[:1]:",
    ),
)  # fmt: skip

CONTROL = (
    Planted(
        "a change of which no word came may be undone at once", controller,
        "return [NoWord(row.number), *self.rest(key, row)]",
        "row.shifts = ()\n        return [NoWord(row.number), *self.rest(key, row)]",
    ),
)  # fmt: skip

DIRECTORY = (
    Planted(
        "who has said goodbye is believed again when an earlier word comes", directory,
        "if life < row.life or (life == row.life and row.state == LEFT):", "if life < row.life:",
    ),
    Planted(
        "an answer to an earlier word counts for the last", directory,
        "(message.of, message.number) == (self.life, self.number)",
        "message.of == self.life and message.number <= self.number",
    ),
)  # fmt: skip

CONNECTION = (
    Planted(
        "an acknowledgement of a past session counts", speaker,
        "input.session != self.session or input.number > row.last", "input.number > row.last",
    ),
)  # fmt: skip

COMPOSING = (
    Planted(
        "a piece that asks is told yes though another was chosen", composer,
        "row.attempt == message.attempt and chosen and row.state in", "row.attempt == message.attempt and row.state in",
    ),
    Planted(
        "a confirmation of an earlier graph counts", composer,
        "message.turn != row.turn or message.piece not in row.waiting", "message.piece not in row.waiting",
    ),
)  # fmt: skip

FEEDBACK = (
    Planted(
        "numbers are compared, whichever lives they are of", feedback,
        "(word.life, word.number) > (held.word.life, held.word.number)", "word.number > held.word.number",
    ),
)  # fmt: skip

ORDERED_MOVE = (
    Planted(
        "the new site does not hear what the old one has processed", site,
        "max(row.newest_ms, input.message.newest_ms)", "row.newest_ms",
    ),
)  # fmt: skip

COUNTING = (
    Planted(
        "an answer under any epoch counts", stream_rule,
        "if site in told and told[site].epoch == epoch]", "if site in told]",
    ),
)  # fmt: skip

REPORTING = (
    Planted("what lies behind a gap is taken", inbox, "if report.first <= upto + 1:", "if report.events:"),
)  # fmt: skip

PLANTED_SINCE = (
    *MOVE, *HOSTING, *GROUPS, *BALANCING, *CONTROL, *DIRECTORY, *CONNECTION, *COMPOSING, *FEEDBACK, *ORDERED_MOVE,
    *COUNTING, *REPORTING,
)  # fmt: skip


SEEN_IN_SINCE: dict[str, str] = {
    "what was carried over from other ends counts": "a loss",
    "a late word that an earlier change is off drops what a later one carried over":
        "two in turn, the first off, a word that comes late",
    "late words of the change that has started a fragment are heeded": "a loss",
    "what runs is taken on under whatever epoch it runs": "a crash",
    "what was given up for good is taken on when it speaks": "given up, words that overtake",
    "whatever halts has ended cleanly": "two moves, a death",
    "a fork that brings a request was lent": "1+2 x2",
    "one that is started takes up who has said bye meanwhile": "chain of two a2 shrinks, b2 grows",
    "room that is kept for one negotiation is used for another": "offer",
    "after a crash only the first handover is said again": "two go to two sites, a crash",
    "a change of which no word came may be undone at once": "no word of a change",
    "who has said goodbye is believed again when an earlier word comes": "one leaves, a word that comes late",
    "an answer to an earlier word counts for the last": "a lost word",
    "an acknowledgement of a past session counts": "a connection that breaks",
    "a piece that asks is told yes though another was chosen":
        "either of two sites, a message lost and early timers",
    "a confirmation of an earlier graph counts": "either of two sites, a message lost and early timers",
    "numbers are compared, whichever lives they are of": "one who measures crashes",
    "the new site does not hear what the old one has processed": "a hold that is too short",
    "an answer under any epoch counts": "taken away twice",
    "what lies behind a gap is taken": "reports of one thing each",
}  # fmt: skip
"""The world that sees each fault."""
