"""What a power cut may leave, as power_cut.py works it out: cases worked by hand."""

import random
from pathlib import Path

from faults.power_cut import Call, Disk


def call(name: str, inode: int, path: Path, *, other: str = "", first: int = 0, data: bytes = b"") -> Call:
    return Call(name, inode, first, len(data), path, other, data)


def outcomes(disk: Disk, folder: Path, start: Path) -> set[frozenset[tuple[str, bytes]]]:
    """Return every content that a disk may have after a power cut now, as found in a hundred tries."""
    found = set()
    for seed in range(100):
        made = folder / f"{seed}"
        disk.rebuild(made, random.Random(seed), start)
        found.add(frozenset((path.name, path.read_bytes()) for path in made.iterdir()))
    return found


def test_what_may_be_left_of_a_file_that_is_written_synced_and_renamed(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (start / "a").write_bytes(b"old")
    disk, inode, new = Disk(start), start.stat().st_ino, start / "a.unfinished"

    def left(*found: dict[str, bytes]) -> bool:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return outcomes(disk, folder, start) == {frozenset(names.items()) for names in found}

    old = {"a": b"old"}
    empty, zeros, whole = ({**old, "a.unfinished": content} for content in (b"", b"\0\0\0", b"new"))
    disk.call(call("create", 1_000_001, new))
    assert left(old, empty)
    disk.call(call("write", 1_000_001, new, data=b"new"))
    assert left(old, empty, zeros, whole)
    disk.call(call("sync", 1_000_001, new))
    assert left(old, whole)
    disk.call(call("rename", 1_000_001, new, other=str(start / "a")))
    assert left(old, whole, {"a": b"new"})
    disk.call(call("sync", inode, start))
    assert left({"a": b"new"})
    disk.call(call("remove", 0, start / "a"))
    assert left({"a": b"new"}, {})


def test_without_syncing_a_renamed_file_may_be_empty(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    disk, inode, new = Disk(start), start.stat().st_ino, start / "a.unfinished"
    disk.call(call("create", 1_000_001, new))
    disk.call(call("write", 1_000_001, new, data=b"new"))
    disk.call(call("rename", 1_000_001, new, other=str(start / "a")))
    disk.call(call("sync", inode, start))
    (tmp_path / "made").mkdir()
    found = outcomes(disk, tmp_path / "made", start)
    assert {frozenset({("a", content)}) for content in (b"", b"\0\0\0", b"new")} == found
