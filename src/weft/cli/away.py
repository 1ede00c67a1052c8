"""How is a run on another machine looked at? Its desk is asked, and what it tells is read like a state folder here."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from weft.cli.held import Held
from weft.cli.output import fail, note, patience

if TYPE_CHECKING:
    from weft.bodies.live.commands.asking import DeskElsewhere
    from weft.bodies.live.commands.words import Seen
    from weft.bodies.live.wanted import Wanted

LAST_BYTES = 8 << 20
"""How much of the end of a log is looked at."""

REST_S = 0.5
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Away(Held):
    """A run whose desk answers from its own machine; `folder` holds copies of what was asked for, and goes with it."""

    desk: DeskElsewhere = field(kw_only=True)
    seen: Seen = field(kw_only=True)
    copies: tempfile.TemporaryDirectory[str] = field(kw_only=True)
    ends: dict[str, int] = field(default_factory=dict)

    @property
    def here(self) -> bool:
        """It is one of another machine."""
        return False

    @property
    def shown(self) -> str:
        """The folder of the run, which is on the desk's machine."""
        return self.seen.folder

    def files(self, *names: str) -> Path:
        """The folder in which copies of these files lie, those of them that there are; of a log its end."""
        from weft.bodies.live.commands.words import PARTS_MAX

        for first in range(0, len(names), PARTS_MAX):
            some = names[first : first + PARTS_MAX]
            places = {name: -LAST_BYTES if name.endswith(".log") else 0 for name in some}
            for name, (part, data) in self._told(partial(self.desk.take, places)).items():
                if part.size != part.at + part.bytes:
                    fail(f"{self.file}: {name} of the run is too long to be sent")
                self.ends[name] = part.at + part.bytes
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                # Of a log that is cut off the first line is none.
                path.write_bytes(data.partition(b"\n")[2] if part.at else data)
        return self.folder

    def logs(self) -> list[str]:
        """The names of Spark's logs, and of those of sites with processes of their own."""
        return list(self.seen.logs)

    def end(self, name: str) -> int:
        """How long a file is, as far as it was read."""
        return self.ends[name]

    def since(self, places: Mapping[str, int]) -> dict[str, bytes]:
        """What has come to files since they were so long; nothing where the desk is silent now."""
        from weft.bodies.live.commands.asking import NoAnswer, NoDesk

        try:
            return {name: data for name, (_, data) in self.desk.take(places).items()}
        except (NoAnswer, NoDesk):
            return {}

    def alive(self) -> bool:
        """It has answered."""
        return True

    def runs(self) -> bool:
        """Whether the desk is there now; one that does not answer is not gone."""
        from weft.bodies.live.commands.asking import NoAnswer, NoDesk

        try:
            self.desk.look()
        except NoDesk:
            return False
        except NoAnswer:
            return True
        return True

    def agents(self) -> dict[str, int]:
        """The sites that had a process when the desk was asked."""
        return self.seen.agents

    def pid(self) -> int | None:
        """The desk's process."""
        return self.seen.pid

    def rest(self, seconds: float) -> None:
        """Wait a moment before looking again: each look is a connection."""
        time.sleep(max(seconds, REST_S))

    def ask_to_stop(self) -> None:
        """Let the run know that it is to end."""
        self._told(self.desk.stop)

    def stopped(self) -> None:
        """It has ended; what was asked is not kept here."""

    def change(self, wanted: Wanted, timeout: float, waits_for: str) -> dict[str, Any]:
        """Ask for a change and wait for what became of it; exit 1 where that is not known in time."""
        from weft.bodies.live.commands.asking import NoAnswer, NoDesk, TooLong

        try:
            with patience(f"waiting for {waits_for}"):
                found = self.desk.change(wanted, timeout)
        except TooLong:
            fail(f"{self.file}: no answer after {timeout:.0f} s; {self.command('logs')} tells what goes on")
        except NoDesk:
            fail(f"{self.file}: the run ended before it answered")
        except NoAnswer as error:
            fail(f"{self.file}: the desk gave no answer: {error}; {self.command('status')} shows how things are now")
        if not isinstance(found, dict):
            fail(f"{self.file}: the answer cannot be read; {self.command('status')} shows where things are now")
        return found

    def _told(self, what: Callable[[], Value]) -> Value:
        from weft.bodies.live.commands.asking import NoAnswer, NoDesk

        try:
            return what()
        except NoDesk:
            fail(f"{self.file}: the run has just ended")
        except NoAnswer as error:
            fail(f"{self.file}: the desk gave no answer: {error}")


def away(here: Held, needed: bool) -> Away | None:
    """The run at the desk that a file names; None where it names none, or nobody answers there, which is said."""
    from weft.spec import absolute, desk_of

    address, folder = desk_of(here.file)
    if address is None:
        return None
    from weft.bodies.live.commands.asking import DeskElsewhere, NoAnswer, NoDesk
    from weft.bodies.live.wire.credentials import NoKey
    from weft.model.sites import where

    asked = f"{here.file}: nothing runs here, and the desk at {address}"
    try:
        # Keys that the file does not name lie in the state, and were made with it.
        keys = here.folder / "keys" if folder is None else Path(absolute(folder, str(here.file.parent)))
        if folder is None and not keys.exists():
            if needed:
                note(f"{here.file}: it names no `keys`, so its desk answers commands on its own machine alone")
            return None
        desk = DeskElsewhere(where(address), keys)
        seen = desk.look()
    except NoDesk:
        note(f"{asked} is not there")
    except (NoAnswer, NoKey) as error:
        says = f"{asked} {'gave no answer' if isinstance(error, NoAnswer) else 'cannot be asked'}: {error}"
        if needed and not here.folder.exists():
            fail(says)
        note(says)
    else:
        copies = tempfile.TemporaryDirectory(prefix="copies-", ignore_cleanup_errors=True)
        return Away(here.file, Path(copies.name), here.given, desk=desk, seen=seen, copies=copies)
    return None
