"""An archive of Java's classes is made once, by one process, and appears whole; without a place for it all goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.spark.session import class_archive
from weft.spark.session.class_archive import MADE, ClassArchive
from weft.spark.storage.cache import user_cache


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and a Java of this test's own."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(class_archive.FOLDER, raising=False)
    return tmp_path / "cache" / "weft"


def test_the_first_makes_it_others_meanwhile_do_without_and_later_ones_map_it(cache: Path, tmp_path: Path) -> None:
    first, other = ClassArchive(), ClassArchive()
    assert f"ArchiveClassesAtExit={tmp_path / MADE}" in first.options(tmp_path)
    assert other.options(tmp_path) == ""
    assert (first.is_made(), other.is_made()) == (True, False)
    (tmp_path / MADE).write_text("classes")
    first.keep()
    other.keep()
    assert f"SharedArchiveFile={first.path}" in ClassArchive().options(tmp_path)
    [kept] = cache.glob("*.jsa")
    assert kept.read_text() == "classes"


def test_a_java_that_left_nothing_lets_the_next_one_try(cache: Path, tmp_path: Path) -> None:
    first = ClassArchive()
    first.options(tmp_path)
    first.keep()
    assert not list(cache.glob("*.jsa"))
    assert "ArchiveClassesAtExit" in ClassArchive().options(tmp_path)


def test_another_java_or_another_spark_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ClassArchive()
    first.options(tmp_path)
    first.keep()
    (tmp_path / "java" / "bin" / "java").write_text("newer")
    second = ClassArchive()
    second.options(tmp_path)
    second.keep()
    monkeypatch.setattr(class_archive.pyspark, "__version__", "9.9.9")
    third = ClassArchive()
    third.options(tmp_path)
    assert len({first.path, second.path, third.path}) == 3


def test_without_a_place_for_it_or_a_java_nothing_is_asked_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert ClassArchive().options(tmp_path) == ""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert ClassArchive().options(tmp_path) == ""


def test_a_cache_that_is_no_full_path_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_cache() == Path.home() / ".cache" / "weft"


def test_another_folder_than_the_cache_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(class_archive.FOLDER, str(tmp_path / "kept"))
    one = ClassArchive()
    one.options(tmp_path)
    one.keep()
    assert one.path is not None
    assert one.path.parent == tmp_path / "kept"
    monkeypatch.setenv(class_archive.FOLDER, "relative")
    assert class_archive.classes_folder() == user_cache()
