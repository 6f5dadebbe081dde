"""Corpora of every kind, by the command line: what is told, what is recorded, what is refused."""

import gzip
from pathlib import Path

from contract.command_line import record_of, succeed

FAST = ("--set", "text.segmenter=character", "--set", "text.heldout_share=0", "--set", "text.num_workers=1")


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
        "Reading 1 file: text, GB18030",
        "Reading 1 file: csv, UTF-8, --field 2 (review)",
        "Reading 1 file: jsonl, UTF-8, --field text",
        "Skipped (cannot tell which column or field holds the text): c/e.json",
        "Characters kept: 26. Characters left out: lines with undecodable bytes: 3.",
    ):
        assert line in answer.stderr.splitlines()
    assert "Warning: Left out because of bytes that cannot be decoded: 1 line." in answer.stderr
    lines = ["今 天 下 雨 ， 路 上 的 行 人 都 打 着 伞 。", "好 。", "苹 果 。", "香 蕉 。", "山 水 。"]
    assert Path("run/segmented/train-00000.txt").read_text(encoding="utf-8").splitlines() == lines
    found = record_of(Path("run"), "segment")
    counts = {"characters": 29, "kept_characters": 26, "dropped": {"lines with undecodable bytes": 3}}
    assert {name: found["counts"][name] for name in counts} == counts
    assert found["sources"]["d.txt"] == {
        "read_as": [{"format": "text", "encoding": "utf-8", "field": "", "files": 1}],
        "characters": 6,
        "kept_characters": 3,
        "dropped": {"lines with undecodable bytes": {"count": 1, "characters": 3}},
    }
    assert found["sources"]["c.jsonl.gz"]["dropped"] == {
        "records without the text field": {"count": 1, "characters": 0}
    }
    assert sorted(found["passed_over"]) == [
        "cannot tell which column or field holds the text",
        "files whose names do not suggest text",
    ]
    for source in found["sources"].values():
        dropped = sum(entry["characters"] for entry in source["dropped"].values())
        assert source["characters"] == source["kept_characters"] + dropped
