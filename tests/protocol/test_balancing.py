"""Balancing: which operators may go together (the document's three scenarios), thresholds, and words on the wire."""

from __future__ import annotations

import json

import pytest

from weft.protocol import BadMessage, Message, decode, encode
from weft.protocol.balancing import (
    BalanceLimits,
    Clear,
    Demand,
    DemandReply,
    Handover,
    NotTaken,
    Offer,
    OfferReply,
    Part,
    Pick,
    Streams,
    Taken,
)
from weft.protocol.balancing.selection import Selection
from weft.protocol.messages import VERSION

X = Part("x", (3, 4))


def transfers(inputs: dict[str, tuple[str, ...]], here: str, below: dict[str, str]) -> dict[str, list[tuple[str, ...]]]:
    """What may go to the parent p and to the children a and b."""
    selection = Selection(Streams(inputs, frozenset(one for one in inputs if one.isupper())), "p")
    return {peer: selection.transfers(peer, here.split(), below) for peer in ("p", "a", "b")}


def test_an_operator_alone_may_go_either_way() -> None:
    assert transfers({"S": (), "x": ("S",)}, "x", {"S": "a"}) == {"p": [("x",)], "a": [("x",)], "b": []}


def test_two_that_depend_go_together_or_the_outer_one_alone() -> None:
    found = transfers({"S": (), "x": ("S",), "y": ("x",)}, "x y", {"S": "a"})
    assert found == {"p": [("x", "y"), ("y",)], "a": [("x",), ("x", "y")], "b": []}


def test_what_several_children_feed_may_only_go_up() -> None:
    inputs = {"S": (), "T": (), "x": ("S", "T")}
    assert transfers(inputs, "x", {"S": "a", "T": "b"}) == {"p": [("x",)], "a": [], "b": []}
    assert transfers(inputs, "x", {"S": "a", "T": "a"})["a"] == [("x",)]


def test_what_reads_a_source_here_stays_above_it() -> None:
    assert transfers({"S": (), "x": ("S",)}, "S x", {})["a"] == []


def test_what_a_sink_here_reads_stays_below_it() -> None:
    assert transfers({"S": (), "x": ("S",), "OUT": ("x",)}, "x OUT", {"S": "a"})["p"] == []


def test_all_readers_here_go_along() -> None:
    inputs = {"S": (), "x": ("S",), "y": ("x",), "z": ("x",), "w": ("y", "z")}
    assert transfers(inputs, "x y z w", {"S": "a"})["p"] == [("w",), ("w", "x", "y", "z"), ("w", "y"), ("w", "z")]


def test_thresholds_are_shares_of_each_capacity_and_the_last_percent_is_not_taken() -> None:
    marks = BalanceLimits(capacity=(100, 2000)).thresholds()
    assert (marks.low, marks.target, marks.high, marks.most) == ((40, 800), (50, 1000), (60, 1200), (59, 1180))


@pytest.mark.parametrize(
    "message",
    [
        Offer(1, ((X,), (X, Part("y", (0, 0))))), OfferReply(1, (0, 1), True), OfferReply(2), Demand(1, (5, 6)),
        DemandReply(1, ((X,),)), Pick(1, (0,)), Clear(1), Handover(1, 2, (X,), "why"), Taken(2), NotTaken(2, "full"),
    ],
    ids=lambda message: type(message).__name__,
)  # fmt: skip
def test_every_word_comes_through_the_wire(message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        {"type": "Offer", "number": 0, "transfers": []},
        {"type": "Offer", "number": 1, "transfers": [[]]},
        {"type": "Offer", "number": 1, "transfers": [[["x", [-1]]]]},
        {"type": "Offer", "number": 1, "transfers": [[["x", []]]]},
        {"type": "Offer", "number": 1, "transfers": [[["", [1]]]]},
        {"type": "Offer", "number": 1, "transfers": [[["x", [1], 2]]]},
        {"type": "OfferReply", "number": 1, "accepted": [-1]},
        {"type": "Handover", "number": 1, "serial": 1, "operators": []},
        {"type": "Handover", "number": 1, "operators": [["x", [1]]]},
        {"type": "Taken", "serial": 1, "more": 1},
        {"type": "Clear", "number": "1"},
    ],
    ids=json.dumps,
)
def test_malformed_words_are_no_messages(message: object) -> None:
    with pytest.raises(BadMessage, match="malformed"):
        decode(json.dumps({"weft": VERSION, "message": message}).encode())
