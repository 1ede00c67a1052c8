"""What does a user see of an error nobody expected? One sentence; with --debug, all of it."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup

from weft.cli.output import FAILED, WRONG_INPUT, note

DEBUG = "--debug"
_RIGHTS = "give this user the right to, or ask as the one who made it"
_ROOM = "make room there"
REMEDIES = {
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EROFS: "its disk can only be read",
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
}
"""What the system refuses, and what helps."""


class _Asked:
    """Whether this command is to show everything."""

    debug = False


def show_trace(error: BaseException) -> None:
    """The traceback of an error that is told in a sentence too, where it was asked for."""
    if _Asked.debug:
        note("".join(traceback.format_exception(error)).rstrip())


class Guarded(TyperGroup):
    """The commands; `--debug` may stand anywhere among their words."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **named: Any) -> Any:
        """Run a command; without --debug no traceback leaves it."""
        words = list(sys.argv[1:] if args is None else args)
        ours = words[: words.index("--")] if "--" in words else words
        _Asked.debug = DEBUG in ours
        words = [word for word in ours if word != DEBUG] + words[len(ours) :]
        try:
            return super().main(words, *more, **named)
        except Exception as error:
            if _Asked.debug:
                raise
            refused = _refused(error)
            if refused is not None:
                note(f"weft: {refused}")
                sys.exit(WRONG_INPUT)
            from weft.spark.failures.causes import cause_of

            note(f"weft: {cause_of(error).text}\n`{DEBUG}` shows where")
            sys.exit(FAILED)


def _refused(error: Exception) -> str | None:
    """What the system did not let this user do with a file; None where the error is another."""
    if not isinstance(error, OSError) or error.filename is None or error.errno not in REMEDIES:
        return None
    return f"{os.fsdecode(error.filename)}: {error.strerror}; {REMEDIES[error.errno]}"
