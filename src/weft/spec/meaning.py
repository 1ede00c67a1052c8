"""Does it make sense? (thin)"""
from __future__ import annotations
from weft.model import Deployment
from weft.spec.problems import Problems
def check_meaning(deployment: Deployment, problems: Problems, blocks: frozenset[str]) -> None:
    """x"""
