"""Compressed files, archives, sheets and Parquet, sound and hostile; files that are no text."""

import bz2
import gzip
import importlib
import io
import lzma
import re
import tarfile
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from corpus.readers.reading import PACKERS, read
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import message_of
from packed import tar_of, zip_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus import packing
from elmo_zh.corpus import packing as module
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.packing import compression_of, unpacked
from elmo_zh.corpus.sources import find_sources
from elmo_zh.errors import CorpusError

# 4 bytes that the decompressor is to skip, as pzstd writes before each frame.
SKIPPED = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"


def unpack(data: bytes, suffix: str) -> bytes:
    return unpacked(io.BytesIO(data), suffix, "a.txt", len(data)).read()


@pytest.mark.parametrize("suffix", PACKERS)
@settings(deadline=None)
@given(parts=st.lists(st.binary(max_size=300), max_size=4), zeros=st.integers(0, 9), size=st.integers(1, 70))
def test_streams_one_after_the_other_read_in_any_steps(suffix: str, parts: list[bytes], zeros: int, size: int) -> None:
    skipped = SKIPPED if suffix == ".zst" and parts else b""
    data = skipped + b"".join(map(PACKERS[suffix], parts)) + bytes(zeros if parts else 0)
    assert compression_of(data[:6]) == (suffix if data else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_INPUT_BYTES", size)
        patch.setattr(module, "_BUFFER_BYTES", size)
        assert unpack(data, suffix) == b"".join(parts)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_second_stream_that_is_damaged_is_not_taken_for_the_end(suffix: str) -> None:
    first, second = PACKERS[suffix](b"x" * 101), PACKERS[suffix](b"y" * 103)
    for rest in (b"?" + second[1:], b"garbage", b"\0\0?"):
        place = len(first) + len(rest) - len(rest.lstrip(b"\0"))
        told = message_of(CorpusError, lambda rest=rest: unpack(first + rest, suffix))
        assert told.startswith("a.txt is damaged (")
        assert suffix == ".gz" or f"(byte {place})" in told
    told = message_of(CorpusError, lambda: unpack(first + second[:-1], suffix))
    assert told.startswith("a.txt is damaged (")


def test_an_xz_file_that_asks_for_much_memory() -> None:
    data = lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**30}])
    assert "Memory usage limit exceeded" in message_of(CorpusError, lambda: unpack(data, ".xz"))


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
    tally = Tally()
    assert read(path, tally) == EXPECTED
    assert sum(form.files for form in tally.read_as) == 5
    assert {reason: (found.count, found.examples) for reason, found in tally.passed_over.items()} == {
        "files whose names do not suggest text": (1, [f"{path}: cat.png"]),
        "hidden files in archives": (2, [f"{path}: .hidden/x.txt", f"{path}: __MACOSX/x.txt"]),
        "not text in UTF-8, GB18030 or Big5, and no byte order mark was found": (1, [f"{path}: noise"]),
    }
    assert sorted(tmp_path.rglob("*")) == before


def test_names_of_chinese_windows(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", {"abcd.png": b""})
    path.write_bytes(path.read_bytes().replace(b"abcd.png", "新闻".encode("gbk") + b".png"))
    tally = Tally()
    read(path, tally)
    assert tally.passed_over["files whose names do not suggest text"].examples == [f"{path}: 新闻.png"]


def test_damaged_archives_and_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = zip_of(tmp_path / "a.zip", {"a.txt": "今天下雨。\n".encode() * 301}, zipfile.ZIP_STORED).read_bytes()
    sheet = excel_file(tmp_path / "whole.xlsx", 一=[["内容"], ["今天天气很好。"]])
    with zipfile.ZipFile(sheet) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.xml"] = members["xl/worksheets/sheet1.xml"][:-30]
    cut_sheet = zip_of(tmp_path / "cut.xlsx", members).read_bytes()
    damaged = {"a.zip": whole[:-30], "a.xlsx": whole[:-30], "b.xlsx": cut_sheet}
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        told = message_of(CorpusError, lambda name=name: read(tmp_path / name))
        assert re.match(rf"{tmp_path}/{name}.* is damaged \(", told)
    (tmp_path / "a.zip").write_bytes(whole[:500] + b"xxx" + whole[503:])
    told = message_of(CorpusError, lambda: read(tmp_path / "a.zip"))
    assert told.startswith(f"{tmp_path}/a.zip: a.txt is damaged (")
    monkeypatch.setattr("elmo_zh.corpus.packing._MOST_EXCEL_BYTES", 2**10)
    assert "too large to be read in its format (Excel, 1,024)" in message_of(UnsuitableError, lambda: read(sheet))


def test_links_and_devices_are_passed_over(tmp_path: Path) -> None:
    others = [tarfile.TarInfo(f"{number}.txt") for number in range(4)]
    for info, kind in zip(others, (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE), strict=True):
        info.type, info.linkname = kind, "/etc/passwd"
    tally = Tally()
    assert read(tar_of(tmp_path / "a.tar", {}, "w", *others), tally) == []
    assert tally.passed_over["links and other special members of archives"].count == 4


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
    assert told.startswith(f"{path}: {member} is itself an archive or a compressed file. Unpack the outer archive")


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


HEADS = {
    b"%PDF-1.7\n%\xe2\xe3": "PDF. ",
    b"\xff\xd8\xff\xe0\0\x10JFIF": "PNG, JPEG, GIF, TIFF. ",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "DOC, RTF. ",
    b"\x7fELF\2\1\1": "ELF, Mach-O. ",
    b"SQLite format 3\0": "SQLite. ",
}


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a"])
@pytest.mark.parametrize("encoding", ["auto", "gb18030"])
def test_what_is_no_text_is_refused_whatever_its_name(tmp_path: Path, name: str, encoding: str) -> None:
    for head, told in HEADS.items():
        path = tmp_path / name
        path.write_bytes(head + "正文。".encode() * 9)

        assert message_of(UnsuitableError, lambda: read(path, encoding=encoding)).startswith(f"{path}: {told}")  # noqa: B023


def excel_file(path: Path, **sheets: list[list[object]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet_is_a_table(tmp_path: Path) -> None:
    """Commas, quotes, line ends and blank rows in it do no harm, nor do semicolons in the header."""
    rows = [["号", "病历;主诉;现病史"], [1, '患者"胸闷",3天;\n复查。'], [], [2.5, "发热。"], [None, None]]
    path = excel_file(tmp_path / "a.xlsx", 门诊=rows, 空=[])
    assert read(path, field="病历;主诉;现病史") == ['患者"胸闷",3天;', "复查。", "发热。"]
    assert read(path, field="号") == ["1", "2.5"]


def test_a_parquet_file_is_a_table(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    rows = {"text": ["今天。\n好", None], "day": [date(2020, 3, 7), None], "n": [{"a": 1}, None]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == ["今天。", "好"]
    [source] = find_sources([str(tmp_path)]).sources
    records = [(record.line, dict(record.columns)) for record in input_text(source, TextConfig()).records()]
    assert records == [("今天。 好", {"day": "2020-03-07", "n.a": "1"}), ("", {})]
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    assert "b.parquet is damaged" in message_of(CorpusError, lambda: read(tmp_path / "b.parquet"))
