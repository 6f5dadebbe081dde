"""Texts of which no line is left out: what `embed` and `evaluate` read."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from messages import Heard
from packed import tar_of, zip_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import InputText, Members, input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.corpus.text_files import iter_lines

REVIEWS = ("房间很干净，\n服务也好。", "", "太吵了", "早餐“不错”")


def opened(path: Path, *, segmented: bool = False, **settings: str) -> InputText:
    [source] = find_sources([str(path)]).sources
    return input_text(source, TextConfig(**settings), segmented=segmented)


def lines_of(path: Path, *, segmented: bool = False, **settings: str) -> list[str]:
    return [record.line for record in opened(path, segmented=segmented, **settings).records()]


def notes_of(path: Path, **settings: str) -> list[str]:
    heard = Heard()
    assert list(opened(path, **settings).records(heard)) is not None
    return [note.replace(str(path), path.name) for note in heard.notes]


def csv_of(texts: tuple[str, ...]) -> str:
    rows = [f'{number},"{text}"' for number, text in enumerate(texts)]
    return "\r\n".join(("id,review", *rows, ""))


@pytest.mark.parametrize(
    "text", ["", "\n", "好\n\n", "好\r\n\r\n坏", "好\r坏\r\n", "好\n\r", "\ufeff好\n\u2028坏\x85\x0b\x00\n"]
)
def test_plain_text_has_the_lines_of_its_bytes(tmp_path: Path, text: str) -> None:
    """As they were numbered before other formats were read: LF alone ends a line, and no line is split."""
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode())
    assert lines_of(path) == lines_of(path, segmented=True) == list(iter_lines(path))
    assert notes_of(path) == []


@pytest.mark.parametrize("encoding", ["auto", "utf-8"])
def test_a_line_with_the_character_that_marks_bad_bytes_is_kept(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("一\n二\ufdd0\n三\n", encoding="utf-8")
    assert lines_of(path, encoding=encoding) == ["一", "二\ufdd0", "三"]


def test_a_table_in_gb18030_is_one_line_for_each_row(tmp_path: Path) -> None:
    path = tmp_path / "hotel.csv"
    path.write_bytes((csv_of(REVIEWS) + "4\r\n\r\n5,最后\r\n").encode("gb18030"))
    assert lines_of(path) == ["房间很干净， 服务也好。", "", "太吵了", "早餐“不错”", "", "最后"]
    assert notes_of(path) == [
        "Reading hotel.csv: csv, GB18030, --field 2 (review)",
        "hotel.csv: records without the chosen field become empty lines (1 of 6). To choose other fields: --field NAME",
    ]
    # As text it is what its bytes are, the header and all.
    assert lines_of(path, format="text") == [*csv_of(REVIEWS).replace("\r\n", "\n").split("\n")[:-1], "4", "", "5,最后"]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    ("around", "field"),
    [(lambda items: items, "text"), (lambda items: {"version": "1", "tags": ["甲", "乙"], "data": items}, "data.text")],
)
def test_the_items_of_a_json_array_are_lines(
    tmp_path: Path, indent: int | None, around: Callable[[object], object], field: str
) -> None:
    path = tmp_path / "a.json"
    items = [{"id": 1}, {"text": "今天"}, {"text": ["我\n吃", "苹果"], "more": [1, [2]]}, {"text": "完"}, {"id": 5}]
    path.write_text(json.dumps(around(items), indent=indent), encoding="utf-8")
    assert lines_of(path) == ["", "今天", "我 吃 苹果", "完", ""]
    assert notes_of(path)[0] == f"Reading a.json: json, UTF-8, --field {field}"


def test_a_line_of_an_archive_has_a_place_in_its_member(tmp_path: Path) -> None:
    texts = {"一/a.txt": "今天\n\n很好\n", "empty.txt": "", "一/b.txt": "很好", "b\n.txt": "热\n"}
    members = {name: text.encode() for name, text in texts.items()}
    zip_of(tmp_path / "x.zip", members)
    tar_of(tmp_path / "x.tar.gz", members, "w:gz")
    expected = [("一/a.txt", 0), ("一/a.txt", 1), ("一/a.txt", 2), ("一/b.txt", 0), ("b\\n.txt", 0)]
    for name in ("x.zip", "x.tar.gz"):
        text = opened(tmp_path / name)
        assert [record.line for record in text.records()] == ["今天", "", "很好", "很好", "热"]
        assert [text.place(line) for line in range(5)] == [(f"{text.name}/{member}", line) for member, line in expected]
        restored = Members.restored(json.loads(msgspec.json.encode(text.members)))
        assert restored == text.members
        with pytest.raises(ValueError, match="out of order"):
            Members.restored(msgspec.to_builtins(text.members[::-1]))
    (tmp_path / "a.txt").write_text("今天\n很好\n", encoding="utf-8")
    plain = opened(tmp_path / "a.txt")
    assert [record.line for record in plain.records()] == ["今天", "很好"]
    assert plain.place(1) == (plain.name, 1)
