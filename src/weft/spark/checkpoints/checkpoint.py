"""What does a checkpoint hold, and how does another fragment go on from it?

Spark writes `offsets/N` before it runs batch N and `commits/N` after. A fragment that ended cleanly has run and
committed its last batch B; what was planned after it never ran. A checkpoint for another cut of the same operators is
the old one, linked file by file, with the inputs of batch B rewritten to those of the new fragment. The old one stays
as it is until the change is decided.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from pathlib import Path

from weft.spark.channels.ticks import TICKS_SUFFIX, tick
from weft.spark.checkpoints.ledger import Entries, Ledger, ledger_of, read_ledger
from weft.spark.checkpoints.offsets import lines_of
from weft.spark.storage.disk import Disk, size_and_sum

COMMIT_S_MAX = 10.0
_VERSIONED = re.compile(r"(\d+)(?:_[^.]*)?\.(?:delta|snapshot|changelog|zip)$")


def last_planned(checkpoint: Path) -> int | None:
    """The greatest batch that Spark has planned."""
    return _greatest(checkpoint / "offsets")


def last_committed(checkpoint: Path) -> int | None:
    """The greatest batch that Spark has committed."""
    return _greatest(checkpoint / "commits")


def _greatest(folder: Path) -> int | None:
    try:
        return max((int(name) for name in os.listdir(folder) if name.isdigit()), default=None)
    except FileNotFoundError:
        return None


def wait_for_commit(checkpoint: Path, batch: int) -> bool:
    """Wait until Spark has committed a batch that is written already; it has little left to do."""
    deadline = time.monotonic() + COMMIT_S_MAX
    while (committed := last_committed(checkpoint)) is None or committed < batch:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def positions(checkpoint: Path, batch: int | None = None) -> dict[str, str]:
    """Where a batch, else the last committed one, ends on each input, as Spark writes it; empty before the first."""
    batch = last_committed(checkpoint) if batch is None else batch
    return {} if batch is None else lines_of(checkpoint, batch)[1]


def fork(
    old: Path,
    new: Path,
    lines: dict[str, str],
    logs: dict[str, Path],
    keep_state: bool,
    channels: dict[str, str],
    ticks: Path,
    run: str,
    disk: Disk,
) -> None:
    """Make `new` a checkpoint that goes on from `old` with other inputs, on disk when this returns.

    `lines` are the inputs with their positions; `logs` are the folders of users' files that were seen, by input;
    `channels` are the streams of those inputs that are channels; `ticks` is where the new one looks for ticks.
    """
    if new.exists():
        shutil.rmtree(new)
    ledger_of(new).unlink(missing_ok=True)
    batch = last_committed(old)
    if batch is None:
        return
    if keep_state:
        _link(old / "state", new / "state", version=batch + 1)
    _link(old / "commits", new / "commits", upto=batch)
    header = lines_of(old, batch)[0]
    (new / "offsets").mkdir(parents=True, exist_ok=True)
    text = "\n".join([*header, *(f"{name}:{offset}" for name, offset in sorted(lines.items()))])
    for number in {batch, max(0, batch - 1)}:  # Spark also looks at the batch before the last
        (new / "offsets" / str(number)).write_text(text)
    # Spark tells queries apart by this id; several may go on from one old checkpoint.
    (new / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    for name, seen in logs.items():
        if name.endswith(TICKS_SUFFIX):
            _as_own(seen, new / "sources" / name, ticks, disk)
        else:
            _link(seen, new / "sources" / name)
    disk.sync((), [new.parent, *(Path(folder) for folder, _, _ in os.walk(new))])
    before = read_ledger(old, run)
    known = {} if before is None else {name: told for name, told in before.files.items() if (new / name).exists()}
    linked = {name: told for name, told in known.items() if os.path.samefile(old / name, new / name)}
    Ledger(new, run, disk, Entries(run, files=linked)).adopt(batch, channels)


def relocate(checkpoint: Path, ticks: Path, run: str, disk: Disk) -> None:
    """Let a checkpoint that was brought here from elsewhere find its ticks, which it knows by their full names."""
    seen = sorted(checkpoint.glob(f"sources/*{TICKS_SUFFIX}"))
    told = read_ledger(checkpoint, run)
    for folder in seen:
        _as_own(folder, folder, ticks, disk)
    if seen and told is not None:
        names = {f"sources/{folder.name}/{path.name}" for folder in seen for path in folder.iterdir()}
        files = {name: sums for name, sums in told.files.items() if name not in names}
        again = {name: size_and_sum(checkpoint / name) for name in names & told.files.keys()}
        disk.seal(ledger_of(checkpoint), Entries(run, told.begun, told.adopted, told.entries, files | again))


def _as_own(old: Path, new: Path, ticks: Path, disk: Disk) -> None:
    """Let ticks that another fragment has seen be this one's, also by name: Spark looks at the last ones again."""
    disk.make(new)
    for path in sorted(old.iterdir()):
        if path.name.startswith("."):
            continue
        version, *entries = path.read_text().splitlines()
        own = [{**entry, "path": (ticks / Path(entry["path"]).name).as_uri()} for entry in map(json.loads, entries)]
        disk.replace(new / path.name, "\n".join([version, *map(json.dumps, own)]).encode())
        (new / f".{path.name}.crc").unlink(missing_ok=True)  # of the content before
        for entry in own:
            tick(ticks, Path(entry["path"]).stem, disk)


def _link(old: Path, new: Path, upto: int | None = None, version: int | None = None) -> None:
    """Let a folder's files be another's too, those of batches `upto` one: the old run may commit more meanwhile.

    A commit beyond the offsets would end every run of the new checkpoint, as another's that is under way. Nor goes
    state along beyond a `version`: it would be of a batch that was given up, and that the new one cuts otherwise.
    """

    def later(_: str, names: list[str]) -> list[str]:
        if version is not None:
            return [name for name in names if (found := _VERSIONED.match(name)) and int(found[1]) > version]
        return [name for name in names if upto is not None and not (name.isdigit() and int(name) <= upto)]

    if old.is_dir():
        shutil.copytree(old, new, copy_function=os.link, ignore=later)
