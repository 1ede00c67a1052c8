"""What a planner says when it cannot."""

from __future__ import annotations


class NoPlacement(ValueError):
    """No placement keeps pins, links and the tree rule; the text says what stands against it."""
