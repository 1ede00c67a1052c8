"""The preparer's rules, and what holds where it sits beside an agent, one test per claim."""

from __future__ import annotations

from weft.protocol import CancelTimer, Effect, Input, Message, Received, Send, SetTimer, TimerFired
from weft.protocol.change_messages import (
    Carried,
    CarryOver,
    ChannelIsDrained,
    DiscardFragment,
    DrainChannel,
    EndedAt,
    FragmentDiscarded,
    FragmentNotPrepared,
    FragmentPrepared,
    NotCarried,
    OpenGate,
    PrepareFragment,
)
from weft.protocol.hosting import Launch
from weft.protocol.messages import StartFragment, StopFragment
from weft.protocol.moving import (
    CarriedOver,
    Carry,
    ChannelDrained,
    Cool,
    Drain,
    Host,
    LetIn,
    NotCarriedOver,
    NotWarmed,
    PreparerLimits,
    Warm,
    Warmed,
    least_epoch,
)
from weft.protocol.words import Parcel

KEY = "start f"
TASK, OTHER = Parcel("what it is"), Parcel("another")
HERE, GOES_ON = Parcel("where it came to"), Parcel("where it goes on")
ENDED = (EndedAt("g", 7, HERE),)
AFTER = (("g", 7),)
PREPARE = PrepareFragment(1, "f", TASK, (HERE,))
CARRY = CarryOver(1, "f", TASK, ENDED)
DISCARD = DiscardFragment(1, "f")
READY = SetTimer(KEY, 100)


def told(*inputs: Input | Message, host: Host | None = None) -> list[Effect]:
    """What a host asks for after the last of some inputs; messages come from the desk."""
    host = host or Host("b", preparer_limits=PreparerLimits(100))
    effects: list[Effect] = []
    for input in inputs:
        effects = host.handle(Received("d", input) if isinstance(input, Message) else input)
    return effects


def says(message: Message) -> Send:
    return Send("d", message)


def test_what_is_to_come_is_made_ready_and_answered_and_not_done_twice() -> None:
    host = Host("b", preparer_limits=PreparerLimits(100))
    assert told(PREPARE, host=host) == [Warm(1, "f", TASK, (HERE,))]
    assert told(PREPARE, host=host) == []
    assert told(Warmed(1, "f", ("g",)), host=host) == [READY, says(FragmentPrepared(1, "f", ("g",)))]
    assert told(PREPARE, host=host) == [says(FragmentPrepared(1, "f", ("g",)))]


def test_what_cannot_be_made_ready_is_told_with_its_reason() -> None:
    refused = told(PREPARE, NotWarmed(1, "f", "no such column", True))
    assert refused == [READY, says(FragmentNotPrepared(1, "f", "no such column", True))]


def test_for_another_change_it_is_made_ready_anew_and_the_former_is_dropped_first() -> None:
    again = told(PREPARE, Warmed(1, "f"), PrepareFragment(2, "f", OTHER))
    assert again == [CancelTimer(KEY), Cool(1, "f", TASK), Warm(2, "f", OTHER)]


def test_where_it_goes_on_is_written_down_once_for_the_same_ends() -> None:
    host = Host("b")
    assert told(PREPARE, Warmed(1, "f"), CARRY, host=host) == [CancelTimer(KEY), Carry(1, "f", TASK, ENDED)]
    assert told(CARRY, host=host) == []
    carried = says(Carried(1, "f", AFTER, GOES_ON))
    assert told(CarriedOver(1, "f", AFTER, GOES_ON), host=host) == [carried]
    assert told(CARRY, host=host) == [carried]
    later = CarryOver(1, "f", TASK, (EndedAt("g", 8, HERE),))
    assert told(later, host=host) == [Carry(1, "f", TASK, later.ended)]


def test_a_site_that_has_forgotten_what_it_made_ready_carries_over_all_the_same() -> None:
    assert told(CARRY) == [Carry(1, "f", TASK, ENDED)]


def test_what_could_not_be_carried_over_is_told_and_tried_again_where_that_is_asked() -> None:
    host = Host("b", preparer_limits=PreparerLimits(100))
    failed = told(CARRY, NotCarriedOver(1, "f", AFTER, "the disk is full"), host=host)
    assert failed == [READY, says(NotCarried(1, "f", AFTER, "the disk is full"))]
    assert told(CARRY, host=host)[-1] == Carry(1, "f", TASK, ENDED)


def test_what_is_asked_while_the_body_works_waits_and_only_the_last_of_it() -> None:
    host = Host("b")
    assert told(PREPARE, CARRY, host=host) == []
    assert told(DISCARD, host=host) == []
    gone = [CancelTimer(KEY), Cool(1, "f", TASK), says(FragmentDiscarded(1, "f"))]
    assert told(Warmed(1, "f"), host=host) == gone
    assert told(PREPARE, CARRY, Warmed(1, "f"), host=host)[-1] == Carry(1, "f", TASK, ENDED)


def test_that_a_change_is_off_drops_all_and_is_answered_again_but_not_for_a_later_change() -> None:
    host = Host("b")
    told(CARRY, CarriedOver(1, "f", AFTER, GOES_ON), host=host)
    assert told(DISCARD, host=host) == [Cool(1, "f", TASK), says(FragmentDiscarded(1, "f"))]
    assert told(DISCARD, host=host) == [says(FragmentDiscarded(1, "f"))]
    told(CARRY, CarriedOver(1, "f", AFTER, GOES_ON), host=host)
    assert told(PrepareFragment(2, "f", OTHER), host=host) == [Warm(2, "f", OTHER)], "the journal may rest on it"
    told(Warmed(2, "f"), host=host)
    assert told(DISCARD, host=host) == [says(FragmentDiscarded(1, "f"))]
    assert host.preparer.states() == {KEY: "ready"}


def test_what_is_ready_is_kept_for_so_long_and_what_was_carried_over_until_it_is_told_otherwise() -> None:
    host = Host("b", preparer_limits=PreparerLimits(100))
    told(PREPARE, Warmed(1, "f"), host=host)
    assert told(TimerFired(KEY), host=host) == [CancelTimer(KEY), Cool(1, "f", TASK)]
    assert told(PREPARE, Warmed(1, "f"), CARRY, host=host)[0] == CancelTimer(KEY)


def test_only_what_awaits_a_last_batch_and_is_ready_is_let_in() -> None:
    gate = OpenGate(1, "f", ENDED[0])
    assert told(PREPARE, Warmed(1, "f", ("g",)), gate) == [LetIn(1, "f", ENDED[0])]
    assert told(PREPARE, Warmed(1, "f"), gate) == []
    assert told(PREPARE, gate) == []
    assert told(gate) == []


def test_a_launch_takes_up_what_was_made_ready() -> None:
    host = Host("b")
    started = told(PREPARE, Warmed(1, "f"), StartFragment("f", least_epoch(1) + 1, TASK), host=host)
    assert started[-1] == CancelTimer(KEY)
    assert host.preparer.rows == {}


def test_words_of_a_change_that_has_started_the_fragment_touch_nothing_any_more() -> None:
    host = Host("b")
    told(StartFragment("f", least_epoch(1) + 1, TASK), host=host)
    for late in (PREPARE, CARRY, OpenGate(1, "f", ENDED[0])):
        assert told(late, host=host) == []
    assert told(DISCARD, host=host) == [says(FragmentDiscarded(1, "f"))]
    assert told(PrepareFragment(2, "f", TASK), host=host) == [Warm(2, "f", TASK)]
    reborn = Host("b", {"f": least_epoch(1) + 1})
    assert told(CARRY, host=reborn) == [], "also not after a crash"
    assert Launch("f", 3, TASK) not in told(StopFragment("f", least_epoch(1) + 1, task=TASK), host=reborn)


def test_a_channel_is_told_drained_for_the_ends_it_was_asked_about() -> None:
    host = Host("b")
    assert told(DrainChannel(1, "s", "f", AFTER), host=host) == [Drain(1, "s", "f", AFTER)]
    assert told(DrainChannel(1, "s", "f", AFTER), host=host) == []
    later = (("g", 8),)
    assert told(DrainChannel(1, "s", "f", later), host=host) == [Drain(1, "s", "f", later)]
    assert told(ChannelDrained(1, "s", "f", AFTER), host=host) == []
    assert told(ChannelDrained(1, "s", "f", later), host=host) == [says(ChannelIsDrained(1, "s", "f", later))]
    assert host.preparer.rows == {}


def test_a_snapshot_holds_both() -> None:
    host, other = Host("b"), Host("b")
    told(StartFragment("g", 1), PREPARE, CARRY, host=host)
    other.restore(host.snapshot())
    assert other.snapshot() == host.snapshot()
    assert told(Warmed(1, "f"), host=other) == told(Warmed(1, "f"), host=host)


def ready(number: int, task: Parcel = TASK) -> list[Effect]:
    return [Warm(number, "f", task, (HERE,))]


def test_nothing_of_a_former_change_is_left_when_it_is_made_ready_for_another() -> None:
    second = PrepareFragment(2, "f", TASK, (HERE,))
    refused = (PREPARE, NotWarmed(1, "f", "no such column", True), second)
    assert told(*refused, Warmed(2, "f"))[1:] == [says(FragmentPrepared(2, "f"))]
    let_in = (PREPARE, Warmed(1, "f", ("g",)), second, NotWarmed(2, "f", "busy"))
    assert told(*let_in, OpenGate(2, "f", ENDED[0])) == []


def test_what_is_carried_over_is_made_ready_only_for_another_change_or_task() -> None:
    carried = (CARRY, CarriedOver(1, "f", AFTER, GOES_ON))
    assert told(*carried, PREPARE) == []
    assert told(*carried, PrepareFragment(2, "f", TASK, (HERE,))) == ready(2)
    assert told(*carried, PrepareFragment(1, "f", OTHER, (HERE,))) == ready(1, OTHER)
    assert told(PREPARE, Warmed(1, "f"), CarryOver(2, "f", TASK, ENDED)) == [
        CancelTimer(KEY),
        Cool(1, "f", TASK),
        Carry(2, "f", TASK, ENDED),
    ]


def test_another_change_or_task_waits_until_the_body_is_done_and_whoever_asked_last_is_told() -> None:
    for asked in (PrepareFragment(2, "f", TASK, (HERE,)), PrepareFragment(1, "f", OTHER, (HERE,))):
        cold: list[Effect] = [CancelTimer(KEY), Cool(1, "f", TASK)]
        assert told(PREPARE, asked, Warmed(1, "f")) == [*cold, *ready(asked.number, asked.task)]
        waits = (PREPARE, Received("e", asked), Warmed(1, "f"), Warmed(asked.number, "f"))
        assert told(*waits) == [READY, Send("e", FragmentPrepared(asked.number, "f"))]
    later = PrepareFragment(2, "f", TASK, (HERE,))
    assert told(CARRY, later, CarriedOver(1, "f", AFTER, GOES_ON)) == ready(2)
    elsewhere = CarryOver(1, "f", TASK, (EndedAt("g", 8, HERE),))
    assert told(CARRY, elsewhere, CarriedOver(1, "f", AFTER, GOES_ON)) == [Carry(1, "f", TASK, elsewhere.ended)]


def test_the_same_asked_again_takes_back_what_was_asked_between() -> None:
    assert told(PREPARE, DISCARD, PREPARE, Warmed(1, "f"))[-1] == says(FragmentPrepared(1, "f"))
    carried = says(Carried(1, "f", AFTER, GOES_ON))
    assert told(CARRY, DISCARD, CARRY, CarriedOver(1, "f", AFTER, GOES_ON)) == [carried]
    assert told(CARRY, PREPARE, CarriedOver(1, "f", AFTER, GOES_ON)) == [carried]


def test_that_an_earlier_change_is_off_is_answered_while_the_body_works_for_a_later_one() -> None:
    working = (PrepareFragment(2, "f", TASK, (HERE,)), DISCARD)
    assert told(*working) == [says(FragmentDiscarded(1, "f"))]
    assert told(*working, Warmed(2, "f"))[-1] == says(FragmentPrepared(2, "f"))
