"""The suite of channels, over a mirror: written at one site, carried over TLS, read at another."""

from __future__ import annotations

import random

import pytest

from tests.spark.channels import test_channels
from tests.spark.channels.channel_kinds import Kind

SUITE = [
    getattr(test_channels, name)
    for name in dir(test_channels)
    if name.startswith("test_")
    and getattr(test_channels, name).__code__.co_varnames[: getattr(test_channels, name).__code__.co_argcount]
    == ("kind",)
]


def test_the_whole_suite_is_here() -> None:
    assert len(SUITE) >= 18


@pytest.mark.parametrize("claim", SUITE, ids=lambda claim: claim.__name__)
def test_over_a_mirror(claim: object, kind: Kind) -> None:
    claim(kind)  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_crashes_every_record_is_there_once_and_read_once(seed: int, kind: Kind) -> None:
    test_channels.storm(kind, random.Random(seed))
