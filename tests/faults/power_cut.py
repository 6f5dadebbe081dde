"""What a power cut may leave of a command's work, worked out from its recorded calls (faults.c, RECORD).

A file system may write data and names in almost any order, but for two promises: after `fsync` of a file its content is
on the disk, and after `fsync` of a folder the names in it are. Everything else may be missing: of a file's changes
since its last `fsync` the later ones, or the data of all of them, which are then zeros; of a folder's changes since its
last `fsync` the later ones. So a file may be there without its content, and a renamed folder without its new name.
"""

import os
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO


@dataclass(frozen=True)
class Call:
    """A recorded call: its name, the inode that it changed, two numbers, two paths and the data."""

    name: str
    inode: int
    first: int
    size: int
    path: Path
    other: str
    data: bytes


def iter_calls(log: Path) -> Iterator[Call]:
    with log.open("rb") as file:
        while line := file.readline():
            name, inode, first, size, path, other = line.rstrip(b"\n").split(b"\t")
            data = _read(file, int(size)) if name == b"write" else b""
            yield Call(
                name.decode(), int(inode), int(first), int(size), Path(os.fsdecode(path)), os.fsdecode(other), data
            )


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    assert len(data) == size
    return data


def _num_kept(pending: Sequence[object], chance: random.Random | None) -> int:
    """Return how many changes are on the disk: all without a chance, else often none or all."""
    return chance.choice((0, len(pending), chance.randint(0, len(pending)))) if chance else len(pending)


@dataclass
class _File:
    """A file's content that is on the disk, and the changes that may be lost."""

    content: bytearray
    pending: list[Call] = field(default_factory=list)

    def sync(self) -> None:
        for call in self.pending:
            _apply(self.content, call)
        self.pending.clear()

    def after(self, chance: random.Random | None) -> bytes:
        kept = _num_kept(self.pending, chance)
        content = bytearray(self.content)
        # The length may be written before the data, which are then zeros.
        is_blank = chance is not None and chance.random() < 0.3
        for call in self.pending[:kept]:
            _apply(content, call, is_blank=is_blank)
        return bytes(content)


def _apply(content: bytearray, call: Call, *, is_blank: bool = False) -> None:
    if call.name == "truncate":
        del content[call.first :]
        content.extend(bytes(call.first - len(content)))
        return
    content.extend(bytes(max(0, call.first - len(content))))
    content[call.first : call.first + call.size] = bytes(call.size) if is_blank else call.data


@dataclass
class _Folder:
    """The names in a folder that are on the disk, each of a file or folder by number, and the changes that may be lost.

    A change may concern two names at once, as a renaming does.
    """

    names: dict[str, int] = field(default_factory=dict)
    pending: list[dict[str, int | None]] = field(default_factory=list)

    def current(self) -> dict[str, int]:
        return _renamed(self.names, self.pending)

    def sync(self) -> None:
        self.names, self.pending = self.current(), []


def _renamed(names: dict[str, int], changes: list[dict[str, int | None]]) -> dict[str, int]:
    after: dict[str, int | None] = dict(names)
    for change in changes:
        after.update(change)
    return {name: number for name, number in after.items() if number is not None}


class Disk:
    """A folder's files as they are on the disk, while recorded calls change them.

    Files and folders are numbered, as the number of an inode is used again after its file is removed.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder
        self._files: dict[int, _File] = {}
        self._folders: dict[int, _Folder] = {}
        self._links: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._num_known = 0
        self._root = self._load(folder)

    def _load(self, path: Path) -> int:
        number = self._new(path.lstat().st_ino)
        if path.is_symlink():
            self._links[number] = str(path.readlink())
        elif path.is_dir():
            self._folders[number] = _Folder({each.name: self._load(each) for each in path.iterdir()})
        else:
            self._files[number] = _File(bytearray(path.read_bytes()))
        return number

    def _new(self, inode: int) -> int:
        self._num_known += 1
        self._numbers[inode] = self._num_known
        return self._num_known

    def _folder_of(self, path: Path) -> _Folder:
        number = self._root
        for name in path.parent.relative_to(self._path).parts:
            number = self._folders[number].current()[name]
        return self._folders[number]

    def call(self, call: Call) -> None:
        if call.name in ("create", "mkdir", "symlink"):
            number = self._new(call.inode)
            if call.name == "create":
                self._files[number] = _File(bytearray())
            elif call.name == "mkdir":
                self._folders[number] = _Folder()
            else:
                self._links[number] = call.other
            self._folder_of(call.path).pending.append({call.path.name: number})
        elif call.name == "remove":
            self._folder_of(call.path).pending.append({call.path.name: None})
        elif call.name in ("rename", "link"):
            target, number = Path(call.other), self._numbers[call.inode]
            assert call.name == "link" or target.parent == call.path.parent
            gone = {call.path.name: None} if call.name == "rename" else {}
            self._folder_of(target).pending.append({**gone, target.name: number})
        elif call.name == "sync":
            number = self._numbers[call.inode]
            if number in self._files:
                self._note_unseen_name(call.path, number)
            (self._folders if number in self._folders else self._files)[number].sync()
        else:
            assert call.name in ("write", "truncate"), call.name  # writing through mapped memory cannot be replayed
            self._files[self._numbers[call.inode]].pending.append(call)

    def _note_unseen_name(self, path: Path, number: int) -> None:
        """Rename a file that has another name than recorded: safetensors renames its files past the C library."""
        folder = self._folder_of(path)
        names = folder.current()
        if names.get(path.name) != number:
            folder.pending.append({**{name: None for name, each in names.items() if each == number}, path.name: number})

    def rebuild(self, folder: Path, chance: random.Random | None, start: Path) -> None:
        """Write what a power cut now may leave into a new folder; without a chance nothing is lost.

        Files that are the same as at the start keep their time stamps.
        """
        self._rebuild(self._root, folder, chance, start)

    def _rebuild(self, number: int, path: Path, chance: random.Random | None, start: Path) -> None:
        if number in self._links:
            path.symlink_to(self._links[number])
        elif number in self._folders:
            path.mkdir()
            folder = self._folders[number]
            kept = _num_kept(folder.pending, chance)
            for name, member in sorted(_renamed(folder.names, folder.pending[:kept]).items()):
                self._rebuild(member, path / name, chance, start / name)
        else:
            content = self._files[number].after(chance)
            if start.is_file() and start.read_bytes() == content:
                shutil.copy2(start, path)
            else:
                path.write_bytes(content)
