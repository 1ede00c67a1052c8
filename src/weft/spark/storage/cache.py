"""Where lies what a user's runs can make again? In a folder of the user's cache."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """The folder for what can be made again; it may not be there yet."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(told) if os.path.isabs(told) else Path.home() / ".cache") / "weft"
