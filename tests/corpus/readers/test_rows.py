"""The rows of tables and the records of JSON: their texts, other columns and places."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from corpus.readers.reading import dropped_of, items_of, lines_from, read, text_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.readers import rows as module
from elmo_zh.corpus.readers.formats import CorpusFormat
from elmo_zh.corpus.readers.row_texts import CSV, JSON, JSON_LINES, TSV, WITHOUT_FIELD
from elmo_zh.corpus.readers.rows import NOT_JSON
from elmo_zh.corpus.sources import find_sources
from elmo_zh.errors import CorpusError
from elmo_zh.text.preparation import TextPreparation


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        *((CSV.read, f"id{sign}text\n1{sign}苹果\n", ["苹果"]) for sign in ",\t;|"),
        (CSV.read, 'label,review\n1,"他：""好,真好。""\n第二行"\n0,一般\n', ['他："好,真好。"', "第二行", "一般"]),
        (TSV.read, "id\ttitle_zh\n1\t苹果\n2\t香蕉\n", ["苹果", "香蕉"]),  # a header in English is no text
        (TSV.read, '"苹果\t1\n香"蕉"\t2\n', ['"苹果', '香"蕉"']),
        (CSV.read, 'id,text\n1,"苹果\n香蕉"', ["苹果", "香蕉"]),
        (CSV.read, "id,text\r1,苹果\r2,香蕉\r", ["苹果", "香蕉"]),
        (TSV.read, "id\ttext\r1\t苹果\r2\t香蕉\r", ["苹果", "香蕉"]),
        (CSV.read, "id,text\n1,苹\0果\n", ["苹\0果"]),
        *((read, blank, []) for read in (CSV.read, TSV.read) for blank in ("", "\n\n", "\r\r", "\r\n\r\n\r\n")),
    ],
)
def test_delimiters_quotes_and_line_ends(read: Callable[..., Any], text: str, expected: list[str]) -> None:
    assert lines_from(read, text) == expected
    assert bool([*read(replace(text_of(text), is_numbered=True), TextConfig(), Tally())]) == bool(expected)


LONG = "今天天气很好，我们去公园散步，然后回家吃饭。"


@pytest.mark.parametrize(
    ("header", "row", "field", "others"),
    [
        ("编号,评分,评论内容", f"1,5,{LONG}", "column 3 (评论内容)", set()),  # known by its name
        ("编号,评分,说的话", f"1,4.5,{LONG}", "column 3 (说的话)", set()),  # or by numbers below another name
        ("text,content,title", f"id-17,{LONG},公园", "column 2 (content)", {"column 3 (title)"}),
        ("text,story", f"公园,{LONG}", "column 2 (story)", {"column 1 (text)"}),
    ],
)
def test_the_column_with_the_text(header: str, row: str, field: str, others: set[str]) -> None:
    tally = Tally()
    assert lines_from(CSV.read, f"{header}\n{row}\n{row}\n", tally) == [LONG, LONG]
    assert (tally.read_field, set(tally.other_fields)) == (field, others)


def json_lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


PARTLY = [{"text": LONG}, {"note": "甲乙", "tags": ["丙", "丁戊"]}, {"text": LONG}]
SQUAD = {"title": "公园", "context": LONG, "qas": [{"question": "去哪里？", "answers": [{"text": "公园"}]}]}


@pytest.mark.parametrize(
    ("records", "field", "others"),
    [
        ([{"text": LONG}] * 7 + [{"TEXT": "短的。"}], "text", {"TEXT"}),
        ([{"TEXT": LONG}] * 7 + [{"text": "短"}], "TEXT", {"text"}),
        ([{"TEXT": LONG, "text": LONG}], "text", {"TEXT"}),
        ([{"body": LONG, "picture": {"text": "公园"}}], "body", {"picture.text"}),
        ([{"text": "id-17", "content": LONG}], "content", set()),
        ([{"text": LONG, "content": LONG}], "text", {"content"}),
        ([SQUAD], "context", {"title", "qas.question", "qas.answers.text"}),
        ([{"text": LONG, "html": LONG * 3}], "text", {"html"}),
    ],
)
def test_the_field_with_the_text(records: list[Any], field: str, others: set[str]) -> None:
    for reader, text in ((JSON_LINES.read, json_lines(*records)), (JSON.read, json.dumps(records))):
        tally = Tally()
        assert lines_from(reader, text, tally)[0].endswith(LONG)
        assert (tally.read_field, set(tally.other_fields)) == (field, others)


UNCLEAR = {"text": "公园", "story": LONG}
# The last two would take much memory if the cell went on.
PROBLEMS = [
    (CSV, "sentence1,sentence2\n今天下雨,明天刮风\n", "", "(sentence1, sentence2). Choose one or more: --field NAME"),
    (JSON_LINES, json_lines(UNCLEAR), "", "(story, text). Choose one or more: --field NAME"),
    (JSON, json.dumps([UNCLEAR]), "", "(story, text). Choose one or more: --field NAME"),
    *(
        (CSV, "id,text\n1,苹果\n", field, f"has no column or field {field!r}. Its first row, or its fields: id, text. ")
        for field in ("body", "3", "0")
    ),
    *(
        (CSV, f'id,text\n1,苹果\n2,"{rest}', "", "perhaps a quote is not closed")
        for rest in ("香蕉\n" * 61, '香","\n' * 61)
    ),
]


@pytest.mark.parametrize(("kind", "text", "field", "problem"), PROBLEMS)
def test_tables_that_are_not_clear(
    monkeypatch: pytest.MonkeyPatch, kind: CorpusFormat, text: str, field: str, problem: str
) -> None:
    monkeypatch.setattr(module, "LONGEST_CELL", 101)
    told = message_of(CorpusError, lambda: lines_from(kind.read, text, field=field))
    assert problem in told
    assert told.startswith("a.txt")


def test_a_key_that_stands_twice_loses_nothing() -> None:
    text = '{"text": "一", "text": ["二", "三"], "id": 1, "text": "四"}'
    for reader, content in ((JSON_LINES.read, f"{text}\n"), (JSON.read, f"[{text}]")):
        assert lines_from(reader, content) == ["一", "二", "三", "四"]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (JSON_LINES.read, json_lines(*PARTLY)),
        (JSON.read, json.dumps(PARTLY)),
        (CSV.read, f"id,text\n1,{LONG}\n甲乙丙丁戊\n2,{LONG}\n"),
    ],
)
def test_records_that_were_not_read_are_counted_with_their_characters(read: Callable[..., Any], text: str) -> None:
    tally = Tally()
    assert lines_from(read, text, tally) == [LONG, LONG]
    assert list(zip(dropped_of(tally).values(), items_of(tally).values(), strict=True)) == [(5, 1)]
    assert tally.characters == 5


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("data.parts.body", ["一", "二", "三"]),
        ("title, data.parts.body", ["题", "一", "二", "三"]),
        ("data.tags", ["甲", "乙", "丙"]),
        ("a.b", ["点"]),
    ],
)
def test_paths_and_lists(field: str, expected: list[str]) -> None:
    text = json_lines(
        {"data": {"parts": [{"body": "一"}, {"body": "二"}], "tags": ["甲", ["乙", "丙"]]}, "title": "题", "a.b": "点"},
        {"data": {"parts": {"body": "三"}}},
    )
    assert lines_from(JSON_LINES.read, text, field=field) == expected


def test_a_record_among_others_of_another_kind_does_not_choose_the_field() -> None:
    tally = Tally()
    text = json_lines(
        "裸", {"text": "一"}, None, {"text": None}, {"text": {"a": "x"}}, [], 12, {"text": ["二", ["三"]]}
    )
    assert lines_from(JSON_LINES.read, text, tally) == ["一", "二", "三"]
    assert items_of(tally) == {WITHOUT_FIELD: 6}


def test_lines_that_are_no_json_and_records_without_the_field_are_counted() -> None:
    tally = Tally()
    text = json_lines({"text": "一"}) + "{坏的\n" + "[" * 100_000 + "\n" + json_lines({"other": "x"})
    assert lines_from(JSON_LINES.read, text, tally) == ["一"]
    assert items_of(tally) == {NOT_JSON: 2, WITHOUT_FIELD: 1}
    assert dropped_of(tally)[NOT_JSON] == 3 + 100_000


@pytest.mark.parametrize(
    ("value", "field", "expected"),
    [
        ([{"title": "雎", "content": ["关关", "在河"]}, {"content": "a\nb"}], "", ["关关", "在河", "a", "b"]),
        (["一", "二"], "", ["一", "二"]),
        ({"data": [{"paragraphs": [{"context": "甲"}, {"context": "乙"}]}]}, "data.paragraphs.context", ["甲", "乙"]),
        ([{"a": "一", "b": "二"}, {"b": "三"}], "a,b", ["一", "二", "三"]),
        ([[["一"], "二"], ["三"]], "", ["一", "二", "三"]),
        ("一", "", ["一"]),
    ],
)  # fmt: skip
def test_shapes(value: object, field: str, expected: list[str]) -> None:
    for indent in (None, 2):
        assert lines_from(JSON.read, json.dumps(value, indent=indent), field=field) == expected


@pytest.mark.parametrize("text", ['[{"text": "一"', "[1, 2", "nothing", '["一" "二"]', ""])
def test_files_that_are_no_json_or_cut_off(text: str) -> None:
    assert message_of(CorpusError, lambda: lines_from(JSON.read, text)).startswith("a.txt: ")


def test_nesting_and_length_have_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("[" * 100_000, '{"a":' * 100_000):
        assert "nested too deep" in message_of(CorpusError, lambda text=text: lines_from(JSON.read, text))
    monkeypatch.setattr(module, "LONGEST_JSON", 7)
    assert "(JSON, 7)" in message_of(UnsuitableError, lambda: lines_from(JSON.read, '["今天下雨"]'))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, max_examples=53)
@example({"": [None]}, None)
@given(VALUES, st.sampled_from([None, 1]))
def test_any_json(value: Any, indent: int | None) -> None:
    found = module.items_in(module.load_json(text_of(json.dumps(value, indent=indent))))
    assert found == (value if isinstance(value, list) else [value])


@pytest.mark.parametrize(("text", "place"), [('[\n"一",\n"二" "三"]', "line 3"), ('{"text": "一"}\n\n{}', "line 3")])
def test_wrong_json_has_a_place(text: str, place: str) -> None:
    assert place in message_of(CorpusError, lambda: lines_from(JSON.read, text))


def test_halves_of_characters_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    texts = (r"苹\ud800果\n好", r"\ud83d\ude00", r"a\\ud800", r"\udc00")
    path.write_text("[" + ",".join(f'{{"text": "{text}"}}' for text in texts) + "]", encoding="utf-8")
    tally = Tally()
    assert read(path, tally) == ["好", "😀", r"a\ud800"]
    assert dropped_of(tally) == {"lines with undecodable bytes": 4}
    assert read(path, bad_bytes="replace")[0] == "苹\ufffd果"


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
        ("a.csv", f"text,column 3,\n{LINE},甲,乙\n", [{"column 3": "甲", "column 3 (2)": "乙"}]),
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


# Line ends, full and half width, a combining mark, a variant's mark, characters that are surrogate pairs in JSON.
PIECES = (
    "\r\n",
    "\n",
    "\r",
    "\u2028",
    "\x85",
    "。",
    "阿司匹林",
    "ＡＢＣ１",
    "abc 1",
    "ｶﾞ",
    "e\u0301",
    "葛\U000e0100",
    "\U00020000",
    "😀",
)
CELLS = st.lists(st.lists(st.sampled_from(PIECES), min_size=1).map("".join), min_size=1, max_size=5)

PREPARATION = TextPreparation.build(TextConfig())


def table(cells: list[str], line_end: str) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(
        [("text", "n"), *((c, 7) for c in cells)]
    )
    return file.getvalue()


FORMS = {
    "a.csv": lambda cells: table(cells, "\r\n"),
    "b.csv": lambda cells: table(cells, "\n"),
    "c.csv": lambda cells: table(cells, "\r"),
    "a.jsonl": lambda cells: "".join(json.dumps({"text": cell}) + "\r\n" for cell in cells),
    "a.json": lambda cells: json.dumps([{"text": cell, "n": 7} for cell in cells], ensure_ascii=True, indent=1),
}


@pytest.mark.parametrize("name", FORMS)
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=CELLS)
def test_a_line_has_the_places_of_its_cell(tmp_path: Path, name: str, cells: list[str]) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name](cells).encode())
    [source] = find_sources([str(path)]).sources
    lines = [record.line for record in input_text(source, TextConfig(field="text")).records()]
    assert lines == [cell.replace("\r", " ").replace("\n", " ") for cell in cells]
    for cell, line in zip(cells, lines, strict=True):
        found = PREPARATION.prepare(line)
        for token, (start, end) in zip(found.tokens, found.offsets.tolist(), strict=True):
            assert PREPARATION.normalise(cell[start:end]).strip(" ") == token
