"""Corpora of every kind, by the command line: what is told, what is recorded, what is refused."""

import gzip
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import elmo_zh, record_of, succeed

from elmo_zh.config.text_section import CORPUS, LATER
from elmo_zh.invocation import install_line

pytestmark = pytest.mark.usefixtures("empty_folder")

FAST = ("--set", "text.segmenter=character", "--set", "text.heldout_share=0", "--set", "text.num_workers=1")


def segment(*arguments: str | Path, run: str = "run", stdin: bytes = b"") -> Mapping[str, Any]:
    result = elmo_zh("segment", *arguments, "--run", run, *FAST, "--json", stdin=stdin).result()
    assert isinstance(result, dict)
    return result


def record(run: str = "run") -> Mapping[str, Any]:
    return dict(record_of(Path(run), "segment"))


def written(run: str = "run") -> str:
    return Path(run, "segmented", "train-00000.txt").read_text(encoding="utf-8")


def mixed_folder() -> Path:
    folder = Path("c")
    folder.mkdir()
    (folder / "a.txt").write_bytes("今天下雨，路上的行人都打着伞。\n".encode("gb18030"))
    (folder / "b.csv").write_text("id,review\n1,好。\n", encoding="utf-8-sig")
    (folder / "c.jsonl.gz").write_bytes(gzip.compress('{"text": "苹果。\\n香蕉。"}\n{"x": 1}\n'.encode()))
    (folder / "d.txt").write_bytes("山水。\n花".encode() + b"\xba\xc3\n")
    (folder / "e.json").write_text('{"name": "x"}', encoding="utf-8")
    (folder / "f.png").write_bytes(b"\x89PNG")
    return folder


def test_a_folder_of_many_kinds_whose_record_accounts_for_every_character() -> None:
    answer = succeed("segment", mixed_folder(), "--run", "run", *FAST)
    for line in (
        "Skipped (files whose names do not suggest text): f.png",
        "Read 1 file as text in GB18030.",
        "Read 1 file as csv in UTF-8, column 2 (review).",
        "Read 1 file as jsonl in UTF-8, text.",
        "Skipped (cannot tell which field holds the text: name): c/e.json",
        "Characters kept: 26. Characters left out: lines with undecodable bytes: 3.",
    ):
        assert line in answer.stderr.splitlines()
    assert "Warning: Left out because of bytes that cannot be decoded: 1 line." in answer.stderr
    lines = ["今 天 下 雨 ， 路 上 的 行 人 都 打 着 伞 。", "好 。", "苹 果 。", "香 蕉 。", "山 水 。"]
    assert written().splitlines() == lines
    found = record()
    counts = {"characters": 29, "kept_characters": 26, "dropped": {"lines with undecodable bytes": 3}, "documents": 4}
    assert {name: found["counts"][name] for name in counts} == counts
    assert found["sources"]["d.txt"] == {
        "read_as": [{"format": "text", "encoding": "utf-8", "files": 1}],
        "documents": 1,
        "characters": 6,
        "kept_characters": 3,
        "dropped": {"lines with undecodable bytes": {"items": 1, "characters": 3}},
    }
    assert found["sources"]["c.jsonl.gz"]["dropped"] == {
        "records without the text field": {"items": 1, "characters": 0}
    }
    assert sorted(found["passed_over"]) == [
        "cannot tell which field holds the text: name",
        "files whose names do not suggest text",
    ]
    for source in found["sources"].values():
        dropped = sum(entry["characters"] for entry in source["dropped"].values())
        assert source["characters"] == source["kept_characters"] + dropped


def test_fields_that_were_not_read_are_reported() -> None:
    records = [{"text": "今天天气很好。"}] * 2 + [{"note": "下雨了。", "title": "雨"}] * 3
    Path("a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    answer = elmo_zh("segment", "a.jsonl", "--run", "run", *FAST)
    for line in (
        "Fields with Chinese text that were not read: note, title. To choose the fields to read: --field NAME",
        "Characters kept: 14. Characters left out: records without the text field: 15.",
        "Warning: a.jsonl: 3 of 5 records lack the field that was read. Specify the right field with --field, or"
        " several fields: --field text,content",
    ):
        assert line in answer.stderr.splitlines()


def test_options_are_settings_of_the_run() -> None:
    Path("a.csv").write_text("id,title,body\n1,甲,乙\n", encoding="gb18030")
    segment("a.csv", "--field", "title,body", "--encoding", "gb18030", "--format", "csv", "--bad-bytes", "replace")
    assert written() == "甲\n乙\n"
    config = Path("run/config.toml").read_text(encoding="utf-8")
    for line in ('field = "title,body"', 'encoding = "gb18030"', 'format = "csv"', 'bad_bytes = "replace"'):
        assert f"\n{line}\n" in config
    assert segment("a.csv")["skipped"]
    assert not segment("a.csv", "--field", "body")["skipped"]
    assert written() == "乙\n"


def test_records_of_plain_text_name_no_setting_of_reading_and_cleaning() -> None:
    """So that a run made before there were such settings goes on."""
    Path("a.txt").write_text("山水。\n", encoding="utf-8")
    segment("a.txt")
    assert not {*CORPUS, *LATER} & set(record()["settings"])


def test_standard_input_is_digested_like_a_file() -> None:
    text = "今天下雨。\n".encode()
    assert not segment("-", stdin=text)["skipped"]
    assert list(record()["inputs"]) == list(record()["sources"]) == ["standard input"]
    assert segment("-", stdin=text)["skipped"]
    assert not segment("-", stdin=text * 2)["skipped"]
    assert written() == "今 天 下 雨 。\n" * 2
    assert sorted(path.name for path in Path("run").iterdir()) == [
        "config.toml",
        "corpus_report.md",
        "segmented",
        "stages",
    ]


def test_nothing_readable_is_an_error() -> None:
    folder = Path("c")
    folder.mkdir()
    (folder / "a.json").write_text('{"name": "x"}', encoding="utf-8")
    told = elmo_zh("segment", folder, "--run", "run", *FAST).only_error()
    assert told.startswith("c/a.json: no text found (0 lines, none kept; skipped (cannot tell which field holds the ")
    assert " field holds the text: name): 1). Use files" in told
    told = elmo_zh("segment", folder / "a.json", "--run", "run", *FAST).only_error()
    assert told == "c/a.json: cannot tell which field holds the text: name. Choose one or more: --field NAME"
    assert not Path("run/segmented").exists()


@pytest.mark.parametrize("name", ["klingon", "hex"])
@pytest.mark.parametrize("words", [("--encoding", "{}"), ("--set", "text.encoding={}")])
def test_encodings_that_there_are_not(name: str, words: tuple[str, str]) -> None:
    Path("a.txt").write_text("山水。\n", encoding="utf-8")
    told = elmo_zh("segment", "a.txt", "--run", "run", *(word.format(name) for word in words)).only_error(2)
    problem = f"{name!r} is unknown to Python; expected auto or a name such as gb18030"
    change = "Change --encoding." if words[0] == "--encoding" else "Change this with --set or in the config file."
    assert told == f"text.encoding = {problem}. {change}"


def test_an_empty_file_is_told() -> None:
    Path("a.txt").write_text("山水。\n" * 30, encoding="utf-8")
    Path("b.txt").touch()
    answer = elmo_zh("segment", "a.txt", "b.txt", "--run", "run", *FAST)
    assert "Warning: The corpus contains 1 empty file: b.txt.\n" in answer.stderr


def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.html").write_text("<p>山水。", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "lxml.etree", None)
    told = elmo_zh("segment", "a.html", "--run", "run", *FAST).only_error()
    assert told.startswith("a.html: HTML needs lxml")
    assert told.endswith(f"which is not installed. Install it with: {install_line('corpus')}")
