"""The story line: one form for all bodies, and a way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.protocol import CancelTimer, Effect, Input, Received, Send, SetTimer, TimerFired, parse_story_line, story_line
from weft.protocol.change_messages import PrepareFragment
from weft.protocol.hosting import Died, Launch
from weft.protocol.messages import FragmentFailed, StartFragment
from weft.protocol.moving import Change, End, InForce, Start
from weft.protocol.story import effect_text, input_text
from weft.protocol.words import Parcel

text = st.text(min_size=1, max_size=20)
inputs = st.one_of(
    st.builds(TimerFired, text),
    st.builds(Received, text, st.builds(FragmentFailed, text, st.integers(1, 9), text, st.booleans())),
    st.builds(Died, text, st.integers(1, 9), text, st.booleans()),
)
effects = st.lists(
    st.one_of(
        st.builds(Send, text, st.builds(StartFragment, text, st.integers(1, 9))),
        st.builds(SetTimer, text, st.integers(0, 10_000)),
        st.builds(CancelTimer, text),
        st.builds(Launch, text, st.integers(1, 9)),
    ),
    max_size=4,
)


def test_a_line_reads_time_site_input_effects() -> None:
    line = story_line(1200, "a", TimerFired("f1"), [Send("b", StartFragment("f1", 3)), SetTimer("f1", 500)])
    assert line == "1200 a timer f1 -> a -> b StartFragment(f1, epoch 3); timer f1 500ms"


def test_parcels_are_left_out_and_zeros_and_empty_lists_are_not() -> None:
    assert input_text(Received("d", StartFragment("f1", 3, Parcel("{}")))) == "StartFragment(f1, epoch 3) from d"
    prepare = PrepareFragment(1, "f1", Parcel("{}"), (Parcel("{}"),))
    assert input_text(Received("d", prepare)) == "PrepareFragment(1, f1) from d"
    assert input_text(InForce(0, (Start("f1", "a", Parcel("{}")),))) == "InForce(0, [Start(f1, a)])"
    assert input_text(Change(1, (End("f1", "a"),), ())) == "Change(1, [End(f1, a, [])], [])"


def test_no_effects_are_called_nothing() -> None:
    assert story_line(0.5, "a", Died("f1", 2, "out of memory", True), []) == (
        '0.5 a Died(f1, epoch 2, "out of memory", permanent) -> nothing'
    )


@given(st.integers(0, 10**9), text, inputs, effects)
def test_any_line_can_be_taken_apart_again(time_ms: int, site: str, input: Input, effects: list[Effect]) -> None:
    line = story_line(time_ms, site, input, effects)
    assert "\n" not in line
    told = parse_story_line(line)
    assert (told.time_ms, told.site, told.input) == (time_ms, site, input_text(input))
    assert told.effects == tuple(effect_text(site, effect) for effect in effects)


@pytest.mark.parametrize("line", ["", "soon a timer f1 -> nothing", "12 a timer f1", "12 -> nothing"])
def test_what_is_no_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not a story line"):
        parse_story_line(line)
