"""Where is the run of a file? On this machine, or where its desk is."""

from __future__ import annotations

from pathlib import Path

from weft.cli.away import away
from weft.cli.held import Held
from weft.cli.output import WRONG_INPUT, fail


def held(file: Path, state: Path | None, needed: bool = True) -> Held:
    """The state of a file's run, here or at its desk; exit 2 where neither the file nor its state is there.

    Where nothing runs here and the file says where its desk is, that is asked, unless a folder was given. Where it
    cannot be asked, and there is no state here to look at instead, this is exit 1 if the run is `needed`.
    """
    here = held_here(file, state)
    if state is not None or here.runs():
        return here
    return away(here, needed) or here


def held_here(file: Path, state: Path | None) -> Held:
    """The state of a file's run on this machine; exit 2 where neither the file nor the state is there."""
    from weft.bodies.live.state import state_folder

    folder = state_folder(file, state)
    if not file.exists() and not folder.exists():
        fail(f"{file}: no such file, and no state in {folder}", WRONG_INPUT)
    if folder.exists() and not folder.is_dir():
        fail(f"{folder} is a file, where a run's state would be a folder; give another with --state", WRONG_INPUT)
    return Held(file, folder, state)
