"""Who may read what a run creates? Its user alone."""

from __future__ import annotations

import os


def private_files() -> None:
    """From now on what this process and those it starts create is for its user alone.

    Java makes files and folders with the mode that the process leaves them, as Python does: no chmod is needed.
    """
    os.umask(0o077)
