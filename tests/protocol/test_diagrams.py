"""The page of state diagrams is what the machines' tables say; WEFT_REWRITE=1 writes it anew."""

from __future__ import annotations

import os

from tests import ROOT
from weft.protocol.balancing import Balancer
from weft.protocol.composing import Composer, Keeper
from weft.protocol.connection import Hearer, Speaker
from weft.protocol.control import Controller
from weft.protocol.diagram import page
from weft.protocol.exclusion import Member
from weft.protocol.hosting import Agent, Conductor
from weft.protocol.moving import Mover, Preparer
from weft.protocol.published.two_groups import TwoGroups
from weft.protocol.scaling import Instance

PAGE = ROOT / "docs" / "diagrams.md"
MACHINES = {
    "Hosting: agent": Agent,
    "Hosting: conductor": Conductor,
    "Moving: mover": Mover,
    "Moving: preparer": Preparer,
    "Balancing: balancer": Balancer,
    "Exclusion: member": Member,
    "Exclusion: 2-FGME": TwoGroups,
    "Scaling: instance": Instance,
    "Control: controller": Controller,
    "Connection: speaker": Speaker,
    "Connection: hearer": Hearer,
    "Composing: composer": Composer,
    "Composing: keeper": Keeper,
}


def test_the_page_of_diagrams_is_drawn_from_the_tables() -> None:
    text = page(MACHINES)
    if os.environ.get("WEFT_REWRITE"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
