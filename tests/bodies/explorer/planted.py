"""Faults of the kind a tired engineer makes, each a line or two changed in the source of a machine.

They were written down before it was known which of them the worlds find.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from weft.protocol.balancing import balancer, refusals, stock
from weft.protocol.control import controller
from weft.protocol.exclusion import core, member
from weft.protocol.hosting import agent, conductor
from weft.protocol.moving import mover
from weft.protocol.scaling import core as scaling_core
from weft.protocol.scaling import instance


class Planted(NamedTuple):
    """A module with one fault: what is wrong, the text that was there, and what stands there instead."""

    what: str
    of: ModuleType
    old: str
    new: str

    def __str__(self) -> str:
        return self.what

    @property
    def module(self) -> str:
        """The name of the module."""
        return self.of.__name__

    @property
    def protocol(self) -> str:
        """Whose fault it is."""
        return {"moving": "move"}.get(self.module.split(".")[2], self.module.split(".")[2])

    def load(self) -> ModuleType:
        """The faulty module, beside the sound one."""
        assert self.of.__file__ is not None
        with open(self.of.__file__, encoding="utf-8") as file:
            source = file.read()
        assert source.count(self.old) == 1, f"{self.what}: the text is there {source.count(self.old)} times"
        made = ModuleType(self.module)
        exec(compile(source.replace(self.old, self.new), f"<{self.what}>", "exec"), made.__dict__)
        return made


EXCLUSION = (
    Planted("who has left still shows its stamp", member, "row.state, row.stamp = IDLE, 0", "row.state = IDLE"),
    Planted(
        "equal stamps are not told apart", member,
        "(stamp, self.competitors[peer]) < (row.stamp, self.group)", "stamp < row.stamp",
    ),
    Planted(
        "the clock goes back to an old request", member,
        "row.clock = max(row.clock, stamp)\n        fork.wants", "row.clock = stamp\n        fork.wants",
    ),
    Planted("what was given is called back too", member, "if fork.away == LENT]", "if fork.away != KEPT]"),
    Planted(
        "who leaves gives forks that nobody asked for", member,
        "[self.give(peer, row) for peer, fork in row.forks.items() if fork.wants]",
        "[self.give(peer, row) for peer, fork in row.forks.items() if fork.held]",
    ),
    Planted(
        "inside with the first operator is taken for inside with all", core,
        "stage == self.stages[-1]", "stage == self.stages[0]",
    ),
)  # fmt: skip

SCALING = (
    Planted(
        "answers are counted, whoever they come from", instance,
        "[name for name in row.awaits if name != input.sender]", "row.awaits[1:]",
    ),
    Planted(
        "an announcement is answered with the own number", instance, "Send(peer, Heard(number))",
        "Send(peer, Heard(max(1, row.number)))",
    ),
    Planted(
        "one that leaves is forgotten on the wrong side", instance,
        "row.downs.pop(input.sender, None)", "row.ups.pop(input.sender, None)",
    ),
    Planted(
        "one that is started takes up who has left meanwhile", instance,
        "{name: of for name, of in {**dict(message.downs), **row.downs}.items() if name not in row.gone}",
        "{**dict(message.downs), **row.downs}",
    ),
    Planted("the wrong child is taken to have ended", scaling_core, "self.children.pop()", "self.children.pop(0)"),
    Planted(
        "others may scale as soon as the announcement is out", scaling_core,
        "self.wish > 0 and self.instance.state == ACTIVE", "self.wish > 0",
    ),
)  # fmt: skip

BALANCING = (
    Planted(
        "the taker says that it took before it writes it down", balancer,
        "[*effects, note, Start(names, peer, reason), Send(peer, Taken(message.serial))]",
        "[*effects, Send(peer, Taken(message.serial)), note, Start(names, peer, reason)]",
    ),
    Planted(
        "the giver hands over before it writes it down", balancer,
        "[self.remember(GIVES, peer, row.serial, row.number, parts, row.reason), *self.hand_over(peer, row)]",
        "[*self.hand_over(peer, row), self.remember(GIVES, peer, row.serial, row.number, parts, row.reason)]",
    ),
    Planted(
        "an offer is made before its number is written down", balancer,
        "effects += [Send(peer, Offer(number, transfers)), SetTimer(peer, self.limits.reply_ms_max)]\n"
        "        return effects",
        "effects += [Send(peer, Offer(number, transfers)), SetTimer(peer, self.limits.reply_ms_max)]\n"
        "        return [*effects[1:], effects[0]]",
    ),
    Planted(
        "what may come back is not counted", stock,
        "total(self.within(HELD, TAKING, GIVING), self.used())", "total(self.within(HELD, TAKING), self.used())",
    ),
    Planted(
        "the answer to an earlier handover counts", refusals,
        "row.state == GIVING and message.serial == row.serial", "row.state == GIVING and message.serial <= row.serial",
    ),
    Planted(
        "the number is read when it is already gone", balancer,
        "number = row.number\n        row.rest()\n        return [CancelTimer(peer), Send(peer, Clear(number))]",
        "row.rest()\n        return [CancelTimer(peer), Send(peer, Clear(max(1, row.number)))]",
    ),
    Planted(
        "what stops is counted as if it stayed", stock,
        "total(self.within(LENT, STOPPING), self.none)", "total(self.within(LENT), self.none)",
    ),
    Planted(
        "a handover is said again once, and then waited for without a timer", balancer,
        "row.mine = False\n        return self.hand_over(peer, row)",
        "row.mine = False\n        return self.hand_over(peer, row)[:1]",
    ),
)  # fmt: skip

CONTROL = (
    Planted(
        "wishes lapse without a word where not all was measured", controller,
        "return [*lapsed, CancelTimer(LOOK)]", "return [CancelTimer(LOOK)]",
    ),
    Planted(
        "a wish undoes what it only repeats", controller,
        "before.get(shift.of) == shift.after", "before.get(shift.of) == shift.before",
    ),
    Planted(
        "rules that have looked at old measurements end the look at new ones", controller,
        "isinstance(input, Considered) and input.number != row.number",
        "isinstance(input, Considered) and input.number > row.number",
    ),
    Planted(
        "word that comes twice lets a change rest anew", controller,
        "(state, word): Step(Controller.ignore, (state,)) for state in (RESTING, KEPT)",
        "(state, word): Step(Controller.on_made, (RESTING,)) for state in (RESTING, KEPT)",
    ),
)  # fmt: skip

HOSTING = (
    Planted(
        "an epoch is launched before it is remembered", agent,
        "return effects + self.launch(fragment, row, epoch)",
        "return [*effects[1:], *self.launch(fragment, row, epoch), effects[0]]",
    ),
    Planted(
        "an epoch is said before it is remembered", conductor,
        "Remember(fragment, row.epoch),\n            Send(row.site, StartFragment(fragment, row.epoch, row.task)),",
        "Send(row.site, StartFragment(fragment, row.epoch, row.task)),\n            Remember(fragment, row.epoch),",
    ),
    Planted(
        "a refusal names the epoch that was refused", agent,
        "FragmentRefused(fragment, row.epoch, input.fence)", "FragmentRefused(fragment, row.epoch, row.epoch)",
    ),
    Planted(
        "a stop of an epoch that was replaced counts", agent,
        "if epoch < row.seen:\n            return [Send(input.sender, FragmentRefused(fragment, epoch, row.seen))]\n"
        "        row.owner = input.sender\n        if input.message.clean",
        "if epoch < row.epoch:\n            return [Send(input.sender, FragmentRefused(fragment, epoch, row.seen))]\n"
        "        row.owner = input.sender\n        if input.message.clean",
    ),
    Planted(
        "word of an epoch that was replaced counts", conductor,
        'getattr(input.message, "epoch", row.epoch) == row.epoch',
        'getattr(input.message, "epoch", row.epoch) <= row.epoch',
    ),
    Planted(
        "the clean end of an earlier epoch is told of a later one", agent,
        "row.clean = epoch == row.seen and (row.clean or row.state == DONE)",
        "row.clean = row.clean or row.state == DONE",
    ),
)  # fmt: skip

MOVE = (
    Planted(
        "a reader ends when the first of its channels is drained", mover,
        "if row.drains:\n            return []\n        row.drained = True", "row.drained = True",
    ),
    Planted(
        "what one has drained counts for the next", mover,
        "row.asked, row.drained = row.asked + 1, False", "row.asked += 1",
    ),
    Planted(
        "epochs begin above the change before", mover,
        "least, tasks = least_epoch(row.number)", "least, tasks = least_epoch(row.number - 1)",
    ),
    Planted(
        "what is ready is counted, whichever it is", mover,
        "row.awaits = _without(row.awaits, word.fragment)\n        return [] if row.awaits else self.end(key, row)\n\n"
        "    def on_prepare_timer",
        "row.awaits = row.awaits[1:]\n        return [] if row.awaits else self.end(key, row)\n\n"
        "    def on_prepare_timer",
    ),
    Planted(
        "what is wanted again does not know for which change", mover,
        "Tell(Want(end.fragment, end.site, change=row.number))", "Tell(Want(end.fragment, end.site))",
    ),
)  # fmt: skip

PLANTED = (*EXCLUSION, *SCALING, *BALANCING, *CONTROL, *HOSTING, *MOVE)


SEEN_IN: dict[str, str] = {
    "who has left still shows its stamp": "1+1 x2",
    "equal stamps are not told apart": "1+2 x2",
    "the clock goes back to an old request": "1+1 x2",
    "what was given is called back too": "1+1+1 x2",
    "who leaves gives forks that nobody asked for": "1+1 x2",
    "inside with the first operator is taken for inside with all": "in turn 1-1-1 x2",
    "answers are counted, whoever they come from": "chain of two a2 grows, b2 grows",
    "an announcement is answered with the own number": "chain of two, a2 grows then shrinks, b2 shrinks",
    "one that leaves is forgotten on the wrong side": "chain of two a2 grows, b2 shrinks",
    "one that is started takes up who has left meanwhile": "chain of two a2 grows, b2 shrinks",
    "the wrong child is taken to have ended": "cores a1 by two then shrinks, b1 twice",
    "others may scale as soon as the announcement is out": "cores a1, b1 grow then shrink",
    "the taker says that it took before it writes it down": "an offer, a crash",
    "the giver hands over before it writes it down": "an offer, a crash",
    "an offer is made before its number is written down": "an offer, a crash",
    "what may come back is not counted": "comes back",
    "the answer to an earlier handover counts": "offer",
    "the number is read when it is already gone": "heavy",
    "what stops is counted as if it stayed": "two lent",
    "a handover is said again once, and then waited for without a timer": "an offer, a crash",
    "wishes lapse without a word where not all was measured": "not all was measured",
    "a wish undoes what it only repeats": "early timers and looks",
    "rules that have looked at old measurements end the look at new ones": "not all was measured",
    "word that comes twice lets a change rest anew": "a change elsewhere, early timers",
    "an epoch is launched before it is remembered": "started, a torn step",
    "an epoch is said before it is remembered": "a move, a torn step",
    "a refusal names the epoch that was refused": "a move, a torn step",
    "a stop of an epoch that was replaced counts": "started, a torn step",
    "word of an epoch that was replaced counts": "started, a torn step",
    "the clean end of an earlier epoch is told of a later one": "stopped, the inputs end, a torn step",
    "a reader ends when the first of its channels is drained": "into a fragment, two channels",
    "what one has drained counts for the next": "two readers to drain",
    "epochs begin above the change before": "badly warmed",
    "what is ready is counted, whichever it is": "two queries at once",
    "what is wanted again does not know for which change": "a loss",
}
"""The world that sees each fault."""
