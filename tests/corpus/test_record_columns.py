"""The columns and fields beside the text of a record reach the commands that number lines."""

import json
from pathlib import Path

import pytest
from packed import zip_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources

TEXT = "今天天气很好，\n我们去公园散步。"
LINE = TEXT.replace("\n", " ")
NEWS = {
    "text": TEXT,
    "year": 2020,
    "by": {"name": "鲁迅\ud800", "age": 2.5},
    "tags": ["风", "雨"],
    "draft": True,
    "x": None,
}
NEWS_COLUMNS = {"year": "2020", "by.name": "鲁迅\ufffd", "by.age": "2.5", "tags": "风 雨"}


def records_of(path: Path, content: str, **settings: str) -> list[tuple[str, dict[str, str]]]:
    path.write_text(content)
    [source] = find_sources([str(path)]).sources
    return [(record.line, dict(record.columns)) for record in input_text(source, TextConfig(**settings)).records()]


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.csv", f'id,text,year\n7,"{TEXT}",2020\n8\n', [{"id": "7", "year": "2020"}, {"id": "8"}]),
        ("a.tsv", f"2020\t{LINE}\n2021\t{LINE}\t多\n", [{"column 1": "2020"}, {"column 1": "2021", "column 3": "多"}]),
        ("a.jsonl", f'{json.dumps(NEWS)}\n{{"text": "好", "year": "?"}}\n', [NEWS_COLUMNS, {"year": "?"}]),
        ("a.txt", f"{LINE}\n\n", [{}, {}]),
    ],
)
def test_columns_of_numbered_lines(tmp_path: Path, name: str, content: str, columns: list[dict[str, str]]) -> None:
    records = records_of(tmp_path / name, content)
    assert [found for _, found in records] == columns
    assert records[0][0] == LINE


def test_columns_of_json_are_those_of_the_item(tmp_path: Path) -> None:
    """What stands before or after the array of records belongs to none of them."""
    content = json.dumps({"source": "报", "news": [NEWS, {"year": 1999}, NEWS], "count": 3, "about": "新闻"})
    records = records_of(tmp_path / "a.json", content, field="news.text")
    columns = {f"news.{path}": value for path, value in NEWS_COLUMNS.items()}
    assert records == [(LINE, columns), ("", {"news.year": "1999"}), (LINE, columns)]


def test_columns_of_an_archive(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", {"1.csv": f'text,year\n"{TEXT}",2020\n', "2.txt": "好\n"})
    [source] = find_sources([str(path)]).sources
    assert [dict(record.columns) for record in input_text(source, TextConfig()).records()] == [{"year": "2020"}, {}]
