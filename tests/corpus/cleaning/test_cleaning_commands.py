"""Dirty text by the command line: what is written, told and recorded, and what embedding takes over."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import Answer, record_of, settings, succeed

from elmo_zh.config import TextConfig
from elmo_zh.text.normalise import build_normaliser

pytestmark = pytest.mark.usefixtures("empty_folder")

FAST = ("--set", "text.segmenter=character", "--set", "text.heldout_share=0", "--set", "text.num_workers=1")
GARBLED = "今天，天气好。".encode().decode("latin-1")
DIRTY = ("<p>山<b>水</b>。&nbsp;</p>", "", "{{模板}}", "軟\u200b體　Ａ１。", GARBLED, "no Chinese at all", "长" * 53)


def segment(*changes: str, run: str = "run") -> Answer:
    Path("a.txt").write_text("\n".join(DIRTY) + "\n", encoding="utf-8")
    return succeed("segment", "a.txt", "--run", run, *FAST, *settings(*(f"text.{change}" for change in changes)))


def record(run: str = "run") -> Mapping[str, Any]:
    return dict(record_of(Path(run), "segment"))


def written(run: str = "run") -> list[str]:
    return Path(run, "segmented", "train-00000.txt").read_text(encoding="utf-8").replace(" ", "").splitlines()


def test_defaults() -> None:
    told = segment().stderr.splitlines()
    garbled = build_normaliser(TextConfig())(GARBLED).replace(" ", "")
    assert written() == ["山水。", "軟體A1。", garbled, "noChineseatall", "长" * 53]
    assert "text.remove_markup changed 1 line and removed 17 characters." in told
    assert any(line.startswith("Warning: 1 line may have been decoded with the wrong encoding. ") for line in told)
    found = record()
    assert not {"remove_markup", "script", "min_han_share"} & set(found["settings"])
    assert found["changed"]["remove_markup"]["examples"] == [["<p>山<b>水</b>。&nbsp;</p>", " 山水。\\xa0 "]]
    assert found["dropped"]["lines of markup only"] == {"lines": 1, "characters": 6, "examples": ["{{模板}}"]}
    assert found["noticed"]["lines that look wrongly decoded"]["lines"] == 1
    assert "- `{{模板}}`" in Path("run/corpus_report.md").read_text(encoding="utf-8").splitlines()


def test_everything_switched_on_accounts_for_every_character() -> None:
    changes = ("repair_mojibake=true", "min_han_share=0.3", "max_line_characters=50", "script=simplified")
    segment(*changes)
    assert written() == ["山水。", "软体A1。", "今天，天气好。"]
    found = record()
    assert found["counts"]["characters"] == sum(map(len, DIRTY))
    assert found["counts"]["dropped"] == {
        "lines of markup only": 6,
        "lines too long": 53,
        "lines with too little Chinese": 17,
    }
    assert found["counts"]["kept_characters"] == sum(map(len, DIRTY)) - 76
    characters = found["counts"]["kept_characters"]
    for entry in found["changed"].values():
        assert entry["characters_in"] == characters
        characters = entry["characters_out"]
    assert list(found["changed"]) == [
        "repair_mojibake", "remove_markup", "fold_fullwidth", "remove_control", "script", "collapse_whitespace"
    ]  # fmt: skip
    assert characters == len("山水。软体 A1。今天，天气好。")
    assert {name: found["settings"][name] for name in ("script", "min_han_share")} == {
        "script": "simplified",
        "min_han_share": 0.3,
    }
    # Typing it again does nothing, also without its report, and another setting of cleaning is another corpus.
    Path("run/corpus_report.md").unlink()
    assert "nothing has changed, skipped" in segment(*changes).stderr
    assert "segment runs again: text.min_han_share 0.3 -> 0.0." in segment(*changes, "min_han_share=0").stderr
