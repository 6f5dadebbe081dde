"""Files appear whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from messages import message_of

from elmo_zh.errors import OutputError
from elmo_zh.run.files import UNFINISHED, atomic_path, file_digest, make_folder, remove, write_json
from elmo_zh.run.outputs import require_no_input


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def fill_folder(folder: Path, **files: str) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def test_digest_is_sha256_of_the_content(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    # The example of FIPS 180-2.
    assert file_digest(path) == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_file_appears_at_the_end_of_the_block(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "vocab.data"
    with atomic_path(path) as unfinished:
        unfinished.write_text("新", encoding="utf-8")
        assert unfinished.parent == path.parent  # one file system, so that the last step is a renaming
        assert unfinished.name.endswith(UNFINISHED)
        assert not path.exists()
    assert names(path.parent) == ["vocab.data"]
    assert path.read_text(encoding="utf-8") == "新"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("old", ["", "old"])
def test_an_exception_leaves_what_was_there(tmp_path: Path, error: type[BaseException], old: str) -> None:
    path = tmp_path / "vocab.data"
    if old:
        path.write_text(old, encoding="utf-8")

    def write_half() -> None:
        with atomic_path(path) as unfinished:
            unfinished.write_text("ha", encoding="utf-8")
            raise error

    with pytest.raises(error):
        write_half()
    assert names(tmp_path) == (["vocab.data"] if old else [])
    assert not old or path.read_text(encoding="utf-8") == old


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "ids"
    fill_folder(folder, old="1", both="2")
    with atomic_path(folder) as unfinished:
        fill_folder(unfinished, both="3", new="5")
        assert names(folder) == ["both", "old"]
    assert names(tmp_path) == ["ids", "ids/both", "ids/new"]
    assert (folder / "both").read_text(encoding="utf-8") == "3"


@pytest.mark.parametrize("as_folder", [False, True])
def test_what_a_killed_process_left_is_replaced(tmp_path: Path, as_folder: bool) -> None:
    path = tmp_path / "vocab.data"
    left = tmp_path / f"vocab.data.{'7' * 32}{UNFINISHED}"
    fill_folder(tmp_path / f"vocab.data.{'8' * 32}.replaced{UNFINISHED}", old="1")
    (tmp_path / f"vocab.data.{'7' * 32}{UNFINISHED}.{'8' * 32}{UNFINISHED}").touch()  # written within another
    others = [
        f"vocab.data{UNFINISHED}",
        f"vocab.data.7{UNFINISHED}",
        f"vocab.{'7' * 32}{UNFINISHED}",
        "vocab.data.lock",
    ]
    for name in others:
        (tmp_path / name).write_text("a user's own", encoding="utf-8")
    if as_folder:
        fill_folder(left, half="1")
    else:
        left.write_text("half", encoding="utf-8")
    with atomic_path(path) as unfinished:
        assert not left.exists()
        unfinished.write_text("whole", encoding="utf-8")
    assert names(tmp_path) == sorted(["vocab.data", *others])


def test_remove_takes_files_folders_and_links_but_not_what_links_point_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    fill_folder(kept, file="1")
    link, folder, file = tmp_path / "link", tmp_path / "folder", tmp_path / "file"
    link.symlink_to(kept, target_is_directory=True)
    fill_folder(folder, inside="2")
    file.write_text("3", encoding="utf-8")
    for path in (link, folder, file, tmp_path / "never there"):
        remove(path)
    # A removal that was killed after its renaming has left the last one.
    for name in ("a.parts.unfinished", f"a.parts.{'7' * 32}.unfinished"):
        fill_folder(tmp_path / name, one="1")
    remove(tmp_path / "a.parts")
    assert names(tmp_path) == ["a.parts.unfinished", "a.parts.unfinished/one", "kept", "kept/file"]


def test_a_removed_folder_loses_its_name_on_disk_before_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_folder(tmp_path / "a", one="1")
    left: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: left.extend(names(tmp_path)))
    remove(tmp_path / "a")
    assert len(left) == 2
    assert all(UNFINISHED in name for name in left)


def test_json_is_readable_and_atomic(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    value = {"词": ["苹果", 2.5, None], "seconds": 7}
    write_json(path, value)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert '"苹果"' in text
    assert text.endswith("}\n")
    with pytest.raises(TypeError):
        write_json(path, {"no": object()})
    assert names(tmp_path) == ["record.json"]
    assert path.read_text(encoding="utf-8") == text
    name = "新闻.txt".encode("gbk").decode("utf-8", "surrogateescape")  # no UTF-8
    write_json(path, {name: "新"})
    assert json.loads(path.read_text(encoding="utf-8")) == {name: "新"}


def test_an_output_that_would_replace_an_input_is_refused(tmp_path: Path) -> None:
    text, folder = tmp_path / "text", tmp_path / "folder"
    text.write_text("1", encoding="utf-8")
    fill_folder(folder, inside="2")
    (tmp_path / "link").symlink_to(text)
    (tmp_path / "hard").hardlink_to(text)
    (tmp_path / "other").write_text("3", encoding="utf-8")
    inputs = [text, folder / "inside"]
    for output in ("text", "link", "hard", "folder"):
        told = message_of(OutputError, lambda at=tmp_path / output: require_no_input(at, inputs))
        assert told.startswith(f"{tmp_path / output} would replace ")
        assert told.endswith("Choose another --output.")
    assert message_of(OutputError, lambda: require_no_input(folder / "inside", [folder], "--run")).endswith(" --run.")
    (folder / "x.parts").touch()  # beside the output
    for inputs in ([folder], [folder / "x.parts"]):
        told = message_of(OutputError, lambda: require_no_input(folder / "x", inputs))  # noqa: B023
        assert told.startswith(f"{folder / 'x.parts'} would replace ")
    for free in ("other", "new", "folder/new", "folder"):
        require_no_input(tmp_path / free, [text, tmp_path / "never there"])


@pytest.mark.parametrize("is_folder", [False, True])
def test_names_reach_the_disk_after_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_folder: bool
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def logged_fsync(opened: int) -> None:
        calls.append(f"fsync {Path(f'/proc/self/fd/{opened}').readlink().name.partition('.')[0]}")
        fsync(opened)

    def logged_replace(path: Path, target: Path) -> Path:
        calls.append("replace")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(Path, "replace", logged_replace)
    with atomic_path(tmp_path / "made") as unfinished:
        if is_folder:
            unfinished.mkdir()
            (unfinished / "inner").write_text("1")
        else:
            unfinished.write_text("1")
    content = ["fsync inner", "fsync made"] if is_folder else ["fsync made"]
    assert calls == [*content, "replace", f"fsync {tmp_path.name}"]


def test_a_device_or_a_pipe_is_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(os.devnull)

    def write(path: Path) -> None:
        with atomic_path(path) as unfinished:
            unfinished.touch()

    for path in (pipe, tmp_path / "link"):
        told = message_of(OutputError, lambda at=path: write(at))
        assert told == (
            f"{path} is a device, a pipe or a socket, not a file. Choose another path, or delete this one if no program"
            " uses it."
        )
    assert names(tmp_path) == ["link", "pipe"]


def test_new_folders_are_safe_from_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new name is safe when its folder is forced to disk, which must happen for each folder above a new one."""
    synced: list[str] = []
    real_open, names_by_number = os.open, {}

    def opened(path: Path, *given: Any, **named: Any) -> int:
        number = real_open(path, *given, **named)
        names_by_number[number] = str(path)
        return number

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(names_by_number[number]))
    make_folder(tmp_path / "a" / "b" / "c")
    assert synced == [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    for path in (Path("file"), Path("file", "e")):
        with pytest.raises(OutputError, match=r"^file is a file, but a folder is needed there"):
            make_folder(path)
