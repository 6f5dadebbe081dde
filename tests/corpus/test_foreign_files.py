"""Files that are no text are recognised by their first bytes, and the sheets of Excel files are tables."""

import importlib
import zipfile
from datetime import date
from pathlib import Path

import pytest
from corpus.readers.reading import read
from messages import message_of
from packed import zip_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.errors import CorpusError

HEADS = {
    b"%PDF-1.7\n%\xe2\xe3": "a PDF file. ",
    b"\xff\xd8\xff\xe0\0\x10JFIF": "an image. ",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an office document. ",
    b"\x7fELF\2\1\1": "a compiled program. ",
    b"SQLite format 3\0": "an SQLite database. ",
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


def test_damaged_and_huge_excel_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = excel_file(tmp_path / "a.xlsx", 一=[["内容"], ["今天天气很好。"]])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.xml"] = members["xl/worksheets/sheet1.xml"][:-30]
    damaged = zip_of(tmp_path / "b.xlsx", members)
    assert "b.xlsx is damaged or truncated" in message_of(CorpusError, lambda: read(damaged))
    monkeypatch.setattr("elmo_zh.corpus.packing._MOST_EXCEL_BYTES", 2**10)
    assert "Save each sheet as CSV" in message_of(UnsuitableError, lambda: read(path))


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
