"""Reports over a transport that loses and doubles: the desk hears of every event once, and bounded is what waits."""

from __future__ import annotations

import random

import pytest

from weft.protocol.messages import MESSAGE_BYTES_MAX, decode, encode
from weft.protocol.reporting import (
    BatchDone,
    BatchWeighed,
    Committed,
    Event,
    FragmentNow,
    Inbox,
    Outbox,
    OutboxLimits,
    SiteNow,
)
from weft.protocol.reporting.words import Report, Reported, Waiting

NOW = SiteNow(
    (FragmentNow("q.o", 1, 0, waiting=(Waiting("s", "o", 3),), ordering={"q.o": {"late": 2}}),), 1.5, {"s": 4}
)


def batch(number: int, rows: int = 1) -> BatchDone:
    return BatchDone("q.o", 0, number, 10, {"s": rows}, {}, {"o": rows}, {"q.o": 2.0}, (0.5,))


def commit(number: int) -> Committed:
    return Committed("q.o", "q", True, number, 1, number + 1, 1000.0 + number, (1.0, 2.0))


def said(box: Outbox, answers: int = 0) -> list[Report]:
    """What goes out, over the wire and back."""
    found = [decode(encode(one)) for one in box.reports(NOW, 5.0, answers)]
    assert all(isinstance(one, Report) for one in found)
    return found  # type: ignore[return-value]


def test_a_report_comes_back_as_it_was_with_all_kinds_of_events() -> None:
    box, inbox = Outbox("l"), Inbox()
    events: list[Event] = [batch(0), commit(0), BatchWeighed("q.o", "q", 3, ("o",), (5,), (None,), 1.5, 2)]
    for event in events:
        box.add(event)
    [report] = said(box)
    assert inbox.take("a", report) == (events, Reported("l", 3))
    assert inbox.fragment("a", "q.o") == NOW.fragments[0]
    assert inbox.sites["a"].bad == {"s": 4}


@pytest.mark.parametrize("seed", range(30))
def test_every_event_is_heard_once_whatever_is_lost_or_comes_twice(seed: int) -> None:
    rng = random.Random(seed)
    box, inbox = Outbox("l"), Inbox()
    heard: list[Event] = []
    under_way: list[Report] = []
    answers: list[Reported] = []
    made = 0
    for turn in range(400):
        for _ in range(rng.choice((0, 0, 1, 3))):
            box.add(batch(made) if made % 3 else commit(made))
            made += 1
        last = turn > 380
        for report in said(box, answers=1 if last else 0):
            under_way += [report] * (1 if last else rng.choice((0, 1, 1, 2)))
        while under_way and (last or rng.random() < 0.7):
            new, answer = inbox.take("a", under_way.pop(0))
            heard += new
            answers += [answer] * (1 if last else rng.choice((0, 1, 2)))
        while answers and (last or rng.random() < 0.7):
            answer = answers.pop(0)
            box.heard(answer.life, answer.upto)
    assert [one.batch for one in heard] == list(range(made))  # type: ignore[union-attr]
    assert inbox.sites["a"].complete == 1
    assert not box.waits


def test_a_desk_that_knows_nothing_begins_where_the_one_before_had_all() -> None:
    box, first, second = Outbox("l"), Inbox(), Inbox()
    for number in range(3):
        box.add(batch(number))
    [report] = said(box)
    _, answer = first.take("a", report)
    box.heard(answer.life, answer.upto - 1)  # as if the last word had been lost
    box.add(batch(3))
    new, _ = second.take("a", said(box)[0])
    assert [one.batch for one in new] == [2, 3]  # type: ignore[union-attr]


def test_another_life_takes_the_place_and_late_word_of_the_one_before_still_counts() -> None:
    old, new, inbox = Outbox("old"), Outbox("new"), Inbox()
    old.add(batch(0))
    inbox.take("a", said(old)[0])
    old.add(batch(1))
    [late] = said(old)
    new.add(batch(2))
    inbox.take("a", decode(encode(new.reports(SiteNow((), 0.5), 6.0)[0])))  # type: ignore[arg-type]
    assert inbox.fragment("a", "q.o") is None, "the new life has told of none"
    assert [one.batch for one in inbox.take("a", late)[0]] == [1]  # type: ignore[union-attr]
    assert inbox.fragment("a", "q.o") is None
    assert inbox.cpu_s("a") == 2.0, "CPU seconds go on"


def test_an_older_report_of_a_life_does_not_tell_how_it_stands() -> None:
    box, inbox = Outbox("l"), Inbox()
    [first] = box.reports(SiteNow((FragmentNow("q.o", 1, 0, taken=5),)), 1.0)
    [second] = box.reports(SiteNow((FragmentNow("q.o", 1, 0, taken=9),)), 2.0)
    inbox.take("a", second)
    inbox.take("a", first)
    found = inbox.fragment("a", "q.o")
    assert found is not None
    assert found.taken == 9


def test_while_nobody_hears_batches_add_up_and_the_oldest_commits_are_given_up() -> None:
    box, inbox = Outbox("l", OutboxLimits(waiting_max=100, commits_kept=20)), Inbox()
    for number in range(1000):
        box.add(batch(number))
        box.add(commit(number))
    heard: list[Event] = []
    for report in said(box, answers=1):
        heard += inbox.take("a", report)[0]
    batches = [one for one in heard if isinstance(one, BatchDone)]
    commits = [one for one in heard if isinstance(one, Committed)]
    assert sum(one.batches for one in batches) == sum(one.sources["s"] for one in batches) == 1000
    assert batches[-1].batch == 999
    assert commits[-1].batch == 999
    assert len(commits) + box.dropped == 1000
    assert inbox.sites["a"].dropped == box.dropped > 0


def test_reports_are_of_bounded_size_however_much_there_is_to_tell() -> None:
    box, inbox = Outbox("l"), Inbox()
    wide = {f"operator-{number}-{'x' * 50}": number for number in range(2000)}
    for number in range(20):
        box.add(BatchDone("q.o", 0, number, 1, operators=wide))
    now = SiteNow(tuple(FragmentNow(f"f{number}", 1, 0, committed=wide) for number in range(20)))
    reports = box.reports(now, 1.0, answers=1)
    assert len(reports) > 5
    assert all(len(encode(one)) < MESSAGE_BYTES_MAX for one in reports)
    assert len([event for report in reports for event in inbox.take("a", report)[0]]) == 20
    assert len(inbox.sites["a"].fragments) == 20
    assert inbox.sites["a"].complete == 1


def test_what_is_said_without_an_answer_is_a_window_that_moves_on_with_the_answers() -> None:
    box, inbox = Outbox("l"), Inbox()
    for number in range(box.limits.events_max + 7):
        box.add(commit(number))
    [report] = said(box)
    assert (len(report.events), report.more) == (box.limits.events_max, 7)
    _, answer = inbox.take("a", report)
    box.heard(answer.life, answer.upto)
    [rest] = said(box)
    assert (len(rest.events), rest.more) == (7, 0)


def test_cpu_seconds_of_lives_add_up_also_where_the_new_one_has_used_more_and_none_is_lost_with_a_former_life() -> None:
    inbox = Inbox()
    for life in range(12):
        inbox.take("a", Outbox(f"life {life}").reports(SiteNow((), 1.0), 5.0)[0])
    assert inbox.cpu_s("a") == 12.0
