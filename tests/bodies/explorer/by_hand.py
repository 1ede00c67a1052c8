"""Words fed to a balancer by hand: strange, malformed, out of order, twice; what does not fit must change nothing."""

from __future__ import annotations

from typing import Any

from weft.bodies.explorer.worlds.balancing_ground import Tree
from weft.protocol import CancelTimer, Effect, Message, Received, Send, SetTimer, TimerFired
from weft.protocol.balancing import (
    Balancer,
    Begin,
    Check,
    Clear,
    Demand,
    DemandReply,
    Handover,
    NotTaken,
    Offer,
    OfferReply,
    Part,
    Pick,
    Refuse,
    Start,
    Stop,
    Stopped,
    Taken,
)

CASE = Tree("r m<r a<m", "s@a! p@a=42<s q@m=50! x@m=12<s y@m=3<x z@r=42<y")
X, Y, XY = Part("x", (12,)), Part("y", (3,)), (Part("x", (12,)), Part("y", (3,)))
FULL = Check((Part("q", (50,)),))


class Hand:
    """One site, and what it says to what it is told."""

    def __init__(self, site: str, balancer: type[Balancer] = Balancer, case: Tree = CASE) -> None:
        memory = case.memory(site)
        self.machine = balancer(site, case.parent[site], case.children[site], case.streams, memory, case.limits)

    def hear(self, sender: str, message: Message) -> list[Effect]:
        """A message comes."""
        return self.machine.handle(Received(sender, message))

    def refuses(self, sender: str, message: Message, why: str) -> None:
        """A message is refused with a reason, and nothing has changed."""
        before = self.machine.snapshot()
        said = self.hear(sender, message)
        assert isinstance(said[0], Refuse), (message, said)
        assert said[0].sender == sender
        assert said[0].message == type(message).__name__
        assert why in said[0].reason, said[0].reason
        assert len(said) == 1, said
        assert self.machine.snapshot() == before

    def state(self, peer: str) -> str:
        """How it stands with a neighbour."""
        return str(self.machine.rows[peer].state)


def said(effects: list[Effect], kind: type) -> Any:
    """The one message of a kind among effects."""
    found = [one.message for one in effects if isinstance(one, Send) and isinstance(one.message, kind)]
    assert len(found) == 1, effects
    return found[0]


def strange_words(balancer: type[Balancer]) -> None:
    """Senders, operators and loads that there are not."""
    root = Hand("r", balancer)
    good = Offer(1, ((Y,),))
    root.refuses("a", good, "no neighbour")
    root.refuses("a", Handover(1, 1, (Y,)), "no neighbour")
    for part, why in (
        (Part("s", (0,)), "s is no operator that moves"),
        (Part("nobody", (1,)), "nobody is no operator"),
        (Part("y", (1, 2)), "2 resources are named where 1"),
    ):
        root.refuses("m", Offer(1, ((Y,), (part,))), why)
    root.refuses("m", Offer(1, ((Y, Y),)), "named twice")
    root.refuses("m", Offer(1, ()), "nothing is offered")
    root.refuses("m", Demand(1, (1, 2)), "2 resources")
    assert said(root.hear("m", good), OfferReply).accepted == (0,)


def words_out_of_place(balancer: type[Balancer]) -> None:
    """Answers that nobody asked for, to other numbers, and choices that there are not."""
    site = Hand("m", balancer)
    awaits = "nothing of that kind is awaited while idle"
    none: tuple[Message, ...] = (OfferReply(1), DemandReply(1), Clear(1), Taken(1), NotTaken(1), OfferReply(0, (0,)))
    for message in none:
        site.refuses("r", message, awaits)
    offers = said(site.machine.handle(FULL)[:3], Offer)
    assert offers.transfers == (XY, (Y,))
    for message, why in (
        (OfferReply(2, (0,)), "awaited while offered"),
        (OfferReply(1, (2,)), "2 transfers are there to choose from"),
        (OfferReply(1, (0, 0)), "each once"),
        (DemandReply(1, (XY,)), "awaited while offered"),
        (Clear(1), "awaited while offered"),
    ):
        site.refuses("r", message, why)
    for number in (1, 2):
        site.refuses("a", DemandReply(number, (XY,)), "awaited while offered")
    declined = site.hear("r", Handover(1, 1, (Part("z", (1,)),)))
    assert said(declined, NotTaken).serial == 1
    assert site.state("r") == "offered"
    # An offer was made under number 1, and number 1 of the neighbour is not that.
    assert said(site.hear("a", Pick(1, (0,))), Clear).number == 1
    site.hear("a", OfferReply(1))
    stops = site.hear("r", OfferReply(1, (1,)))
    assert Stop("r", 2, ("y",)) in stops
    site.refuses("r", OfferReply(1, (1,)), "awaited while stopping")
    site.refuses("r", Taken(2), "awaited while stopping")
    site.refuses("r", NotTaken(2), "awaited while stopping")
    assert site.machine.handle(Stopped("r", 1)) == []
    assert site.machine.handle(Stopped("a", 2)) == []
    assert site.state("r") == "stopping"
    assert said(site.machine.handle(Stopped("r", 2)), Handover).operators == (Y,)
    assert site.machine.handle(Stopped("r", 2)) == []
    site.refuses("r", Taken(1), "awaited while giving")
    site.refuses("a", Taken(2), "awaited while idle")
    assert site.hear("r", Taken(2))
    site.refuses("r", Taken(2), "awaited while idle")
    site.refuses("r", NotTaken(2), "awaited while idle")


def words_twice(balancer: type[Balancer]) -> None:
    """What was heard is heard once; what was answered is answered alike."""
    root = Hand("r", balancer)
    root.hear("m", Offer(3, ((Y,), (X,))))
    assert root.state("m") == "held"
    root.refuses("m", Offer(3, ((Y,),)), "no news after 3")
    root.refuses("m", Demand(2, (1,)), "no news after 3")
    root.refuses("m", Clear(2), "awaited while held")
    root.refuses("m", Pick(3, (0,)), "awaited while held")
    before = root.machine.rows["m"].transfers
    assert said(root.hear("m", Handover(2, 4, (Y,))), NotTaken).reason == "no room is kept for it"
    assert root.machine.rows["m"].transfers == before
    root.refuses("m", Handover(3, 3, (Y,)), "no news after 4")
    assert said(root.hear("m", Handover(3, 4, (Y,))), NotTaken).serial == 4
    took = root.hear("m", Handover(3, 5, (Y,)))
    assert any(isinstance(one, Start) for one in took)
    again = root.hear("m", Handover(3, 5, (Y,)))
    assert [one.message for one in again if isinstance(one, Send)] == [Taken(5)]
    assert len(again) == 1
    root.hear("m", Offer(4, ((X,),)))
    assert said(root.hear("m", Handover(4, 6, (Part("z", (1,)),))), NotTaken).serial == 6
    assert root.state("m") == "idle"
    # What can never be taken is answered, so that its giver need not wait, and leaves no mark.
    before_all = root.machine.snapshot()
    odd = root.hear("m", Handover(4, 7, (Part("nobody", (1,)),)))
    assert [type(one) for one in odd] == [Refuse, Send]
    assert said(odd, NotTaken).serial == 7
    root.refuses("m", Handover(4, 6, (Part("nobody", (1,)),)), "nobody is no operator")
    assert root.machine.snapshot() == before_all


def new_words(balancer: type[Balancer]) -> None:
    """Who begins anew wants nothing more of what was kept for it."""
    root = Hand("r", balancer)
    root.hear("m", Offer(1, ((Y,),)))
    effects = root.hear("m", Offer(2, ((Part("x", (60,)),),)))
    assert effects == [CancelTimer("m"), Send("m", OfferReply(2))]
    assert root.state("m") == "idle"
    light = Hand("a", balancer, Tree("r m<r a<m", "s@a! p@a=30<s q@m=50! x@m=12<s z@r=42<x"))
    light.machine.handle(Check())
    light.refuses("m", DemandReply(2, ((X,),)), "awaited while demanded")
    light.refuses("m", DemandReply(1, ((Part("q", (1,)),),)), "q is no operator")
    assert said(light.hear("m", DemandReply(1, ((X,),))), Pick) == Pick(1, (0,))


def picks(balancer: type[Balancer]) -> None:
    """A pick fits what was lent, once."""
    site = Hand("m", balancer)
    lent = said(site.hear("r", Demand(5, (20,))), DemandReply)
    assert (lent.transfers, lent.urgent) == ((XY,), True)
    site.refuses("r", Pick(5, ()), "nothing is picked")
    site.refuses("r", Pick(5, (1,)), "1 transfers are there")
    site.refuses("r", Pick(4, (0,)), "awaited while lent")
    site.refuses("r", Pick(6, (0,)), "awaited while lent")
    assert Stop("r", 1, ("x", "y")) in site.hear("r", Pick(5, (0,)))
    site.refuses("r", Pick(5, (0,)), "awaited while stopping")
    site.machine.handle(Stopped("r", 1))
    site.refuses("r", Pick(5, (0,)), "awaited while giving")
    assert Start(("x", "y")) in site.hear("r", NotTaken(1))
    site.refuses("r", Pick(4, (0,)), "awaited while idle")
    assert said(site.hear("r", Pick(5, (0,))), Clear).number == 5


def silence(balancer: type[Balancer]) -> None:
    """A neighbour that never answers keeps nobody from the others; and a new life says again what the old one gave."""
    site = Hand("m", balancer)
    site.machine.handle(FULL)
    site.hear("a", OfferReply(1))
    site.hear("r", OfferReply(1, (0,)))
    gone = said(site.machine.handle(Stopped("r", 2)), Handover)
    assert gone.reason == "m was at 65 %, above 60 %"
    light = Check((Part("q", (30,)),))
    site.machine.handle(light)
    assert said(site.hear("a", Offer(1, ((Part("p", (1,)),),))), OfferReply).accepted == ()
    again = site.machine.handle(TimerFired("r"))
    assert again == [Send("r", gone), SetTimer("r", 5_000)]
    assert said(site.hear("a", Offer(2, ((Part("p", (1,)),),))), OfferReply).accepted == (0,)
    life = balancer("m", "r", ("a",), CASE.streams, site.machine.memory, CASE.limits, False)
    effects = life.handle(Begin())
    assert effects[0] == Start(("q",))
    assert said(effects, Handover) == gone, "over a crash, too, it is said with its reason"
    assert said(life.handle(Received("a", Offer(3, ((Part("p", (1,)),),)))), OfferReply).accepted == ()
    life.handle(light)
    assert said(life.handle(Received("a", Offer(4, ((Part("p", (1,)),),)))), OfferReply).accepted == (0,)


ALL = (strange_words, words_out_of_place, words_twice, new_words, picks, silence)
