"""A folder with data, made once: checks only read it."""

from pathlib import Path

import pytest

from tests.spec.spec_texts import folder_with_data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_with_data(tmp_path / "here")
