"""The mark of an output folder: what it recognises, protects and refuses."""

from pathlib import Path

import pytest
from messages import message_of

from elmo_zh.errors import OutputError
from elmo_zh.run.outputs import (
    KINDS,
    MARK,
    changed_files,
    kind_of,
    load_mark,
    require_unchanged,
    write_mark,
    written_as,
)

FILES = {"index.json": "{}", "occurrences.npy": "12", "deep/notes.txt": "山"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "index" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    write_mark(tmp_path / "index", "index", 3, {"model": "sha256:12"})
    return tmp_path / "index"


def test_what_a_mark_says(folder: Path) -> None:
    mark = load_mark(folder)
    assert (mark["kind"], mark["format"], mark["made_from"]) == ("index", 3, {"model": "sha256:12"})
    assert mark["files"].keys() == FILES.keys()
    assert kind_of(folder) == "index"
    assert changed_files(folder, mark["files"]) == []


def test_a_file_that_was_changed(folder: Path) -> None:
    (folder / "index.json").write_text("{} ", encoding="utf-8")
    (folder / "deep" / "notes.txt").unlink()
    assert changed_files(folder, load_mark(folder)["files"]) == ["deep/notes.txt", "index.json"]
    told = message_of(OutputError, lambda: require_unchanged(folder / "index.json"))
    assert told.startswith(f"{folder / 'index.json'} is damaged")
    require_unchanged(folder / "occurrences.npy")


def test_a_file_of_the_user_is_named_before_the_folder_is_replaced(folder: Path) -> None:
    is_index = written_as("index")
    assert is_index(folder)
    assert not written_as("task")(folder)
    (folder / "labels.tsv").touch()
    assert "labels.tsv" in message_of(OutputError, lambda: is_index(folder))


def test_an_earlier_version_left_no_mark(folder: Path) -> None:
    """Such a folder is recognised, and read, but not deleted, because nobody knows whose files it holds."""
    (folder / MARK).unlink()
    assert kind_of(folder) == "index"
    require_unchanged(folder / "index.json")
    assert "deep/notes.txt" in message_of(OutputError, lambda: written_as("index")(folder))


@pytest.mark.parametrize(("kind", "files"), [(name, kind.files) for name, kind in KINDS.items()])
def test_folders_of_earlier_versions(tmp_path: Path, kind: str, files: tuple[str, ...]) -> None:
    for missing in range(len(files)):
        folder = tmp_path / str(missing)
        folder.mkdir()
        for name in (*files[:missing], *files[missing + 1 :]):
            (folder / name.replace("*", "linear")).touch()
        assert kind_of(folder) == ""
        (folder / files[missing].replace("*", "head")).touch()
        assert kind_of(folder) == kind


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"kind": "index"}', '{"kind": [], "files": {}}'])
def test_a_damaged_mark(folder: Path, content: str) -> None:
    (folder / MARK).write_text(content, encoding="utf-8")
    assert message_of(OutputError, lambda: kind_of(folder)).startswith(f"{folder / MARK} is damaged")
