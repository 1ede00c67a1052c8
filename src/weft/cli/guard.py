"""What does a user see of an error nobody expected? One sentence; with --debug, all of it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup

from weft.cli.output import FAILED, note

DEBUG = "--debug"


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
            from weft.spark.failures.causes import cause_of

            note(f"weft: {cause_of(error).text}\n`{DEBUG}` shows where")
            sys.exit(FAILED)
