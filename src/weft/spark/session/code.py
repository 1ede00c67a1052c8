"""How does code reach tasks on other machines? As one archive: Weft itself, and the modules beside the deployment file.

What both import (pyarrow, msgspec, pandas and so on) must be installed there, for the same Python.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import weft

NAME = "weft-code.zip"
FILES_MAX = 2_000
BYTES_MAX = 20 << 20


class TooMuchCode(ValueError):
    """A folder holds more Python files than are sent along."""


def packed_code(target: Path, folders: Sequence[str]) -> Path:
    """An archive of Weft and of the Python files in some folders, with their packages; the first of a name counts."""
    path = target / NAME
    taken: set[str] = set()
    size = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        root = Path(weft.__file__).parent
        for inner, file in [*((f"weft/{name}", file) for name, file in _python(root)), *_of(folders)]:
            if inner in taken:
                continue
            taken.add(inner)
            size += file.stat().st_size
            if len(taken) > FILES_MAX or size > BYTES_MAX:
                raise TooMuchCode(
                    f"{file.parent}: more than {FILES_MAX} Python files or {BYTES_MAX >> 20} MB lie beside the "
                    "deployment file; give it a folder of its own"
                )
            archive.write(file, inner)
    return path


def _of(folders: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Modules of folders, and packages directly within them."""
    for folder in map(Path, folders):
        for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
            if entry.suffix == ".py" and entry.is_file():
                yield entry.name, entry
            elif (entry / "__init__.py").is_file():
                yield from ((f"{entry.name}/{name}", file) for name, file in _python(entry))


def _python(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith((".", "__pycache__")))
        for name in sorted(files):
            if name.endswith(".py"):
                file = Path(folder, name)
                yield file.relative_to(root).as_posix(), file
