"""Archives, sound and hostile."""

import bz2
import gzip
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from corpus.readers.reading import read
from messages import message_of
from packed import tar_of, zip_of

from elmo_zh.corpus import packing
from elmo_zh.corpus.counts import PassedOver, Tally
from elmo_zh.errors import CorpusError

MEMBERS = {
    "b/二.txt": "二。\n".encode(),
    "a.csv": "id,text\n1,一。\n".encode(),
    "c/d.txt": "三。\n".encode(),
    "e.human": "四。\n".encode("gb18030") * 50,
    "cat.png": b"\x89PNG",
    ".hidden/x.txt": "藏".encode(),
    "__MACOSX/x.txt": b"\0",
    "noise": bytes(range(256)),
    "../../../escape.txt": "五。\n".encode(),
}
EXPECTED = ["二。", "一。", "三。", *["四。"] * 50, "五。"]


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2", "named-otherwise.txt"])
def test_members_in_order_and_what_is_passed_over(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "a.zip":
        zip_of(path, MEMBERS)
    else:
        tar_of(path, MEMBERS, "w:" + (name.split(".")[-1] if name.count(".") == 2 else ""))
    before = sorted(tmp_path.rglob("*"))
    tally, passed_over = Tally(), PassedOver()
    assert read(path, tally, passed_over) == EXPECTED
    assert sum(tally.forms.values()) == 5
    assert passed_over.described() == {
        "files whose names do not suggest text": {"count": 1, "names": [f"{path}: cat.png"]},
        "hidden files in archives": {"count": 2, "names": [f"{path}: .hidden/x.txt", f"{path}: __MACOSX/x.txt"]},
        "not text in UTF-8, GB18030 or Big5, and no byte order mark was found": {
            "count": 1,
            "names": [f"{path}: noise"],
        },
    }
    assert sorted(tmp_path.rglob("*")) == before


def test_names_of_chinese_windows(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", {"abcd.png": b""})
    path.write_bytes(path.read_bytes().replace(b"abcd.png", "新闻".encode("gbk") + b".png"))
    passed_over = PassedOver()
    read(path, passed_over=passed_over)
    assert passed_over.names["files whose names do not suggest text"] == [f"{path}: 新闻.png"]


def test_damaged_zip_archives(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", {"a.txt": "今天下雨。\n".encode() * 301}, zipfile.ZIP_STORED)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert message_of(CorpusError, lambda: read(path)).startswith(f"{path} is damaged or truncated (")
    sheets = path.rename(tmp_path / "a.xlsx")
    assert message_of(CorpusError, lambda: read(sheets)).startswith(f"{sheets} is damaged or truncated (")
    path.write_bytes(whole[:500] + b"xxx" + whole[503:])
    assert message_of(CorpusError, lambda: read(path)).startswith(f"{path}: a.txt is damaged or truncated (")


def test_links_and_devices_are_passed_over(tmp_path: Path) -> None:
    others = [tarfile.TarInfo(f"{number}.txt") for number in range(4)]
    for info, kind in zip(others, (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE), strict=True):
        info.type, info.linkname = kind, "/etc/passwd"
    passed_over = PassedOver()
    assert read(tar_of(tmp_path / "a.tar", {}, "w", *others), passed_over=passed_over) == []
    assert passed_over.counts == {"links and other special members of archives": 4}


@pytest.mark.parametrize("name", ["a.zip", "a.txt.gz", "a.txt.bz2", "a.tar.gz"])
def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(packing, "ALWAYS_ALLOWED_BYTES", 2**20)
    data = bytes(2**23)
    path = tmp_path / name
    if name == "a.zip":
        zip_of(path, {"a.txt": data})
    elif name == "a.tar.gz":
        tar_of(path, {"a.txt": data}, "w:gz")
    else:
        path.write_bytes(gzip.compress(data) if name.endswith("gz") else bz2.compress(data))
    assert f"{path} unpacks to more than 250 times its size" in message_of(CorpusError, lambda: read(path))


@pytest.mark.parametrize("pack", [zip_of, tar_of])
@pytest.mark.parametrize("member", ["b/inner.tar.gz", "c.txt"])
def test_what_is_packed_twice_is_refused(tmp_path: Path, pack: Callable[..., Path], member: str) -> None:
    """Whether the name says so or the first bytes."""
    path = pack(tmp_path / "a", {"a.txt": b"x", member: gzip.compress(b"y")})
    told = message_of(CorpusError, lambda: read(path))
    assert told.startswith(f"{path}: {member} is packed again inside an archive. Unpack the archive")


def test_memory_does_not_hold_the_members_of_a_tar_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    real = tarfile.TarFile.next

    def counted(archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        kept.append(len(archive.members))  # type: ignore[attr-defined]
        return real(archive)

    path = tar_of(tmp_path / "a.tar", {f"{number}.txt": b"x\n" for number in range(31)})
    monkeypatch.setattr(tarfile.TarFile, "next", counted)
    assert len(read(path)) == 31
    assert len(kept) > 31
    assert max(kept) <= 1
