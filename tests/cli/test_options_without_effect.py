"""Options and settings that would silently have no effect are refused in one line."""

from pathlib import Path

import pytest
from contract.command_line import elmo_zh
from messages import message_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.embed.formats import OutputForm, require_matching_suffix
from elmo_zh.errors import CorpusError, OutputError


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("今天天气很好。\n" * 30, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("embed a.txt --segmented --input-format csv", "Leave out --input-format or --segmented"),
        ("evaluate a.txt --segmented --field review", "Leave out --field or --segmented"),
        ("embed a.txt --set text.segmenter=character", "--set text.segmenter has no effect on embed"),
        ("evaluate a.txt --set text.bad_bytes=replace", "--set text.bad_bytes has no effect on evaluate"),
        ("task fit tag a.txt --output o --set text.segmenter=jieba", "--set text.segmenter has no effect on task fit"),
        ("vocab --run x --init y --from words.txt", "--init and --from both determine the words"),
        ("pipeline a.txt --run x --init y --set vocab.words=w.txt", "--init and vocab.words both determine the words"),
    ],
)
def test_what_is_refused(typed: str, told: str) -> None:
    Path("a.txt").touch()
    answer = elmo_zh(*typed.split())
    assert answer.status == 2
    assert told in answer.stderr.splitlines()[-1]


def test_settings_with_an_effect_are_not_refused(text: Path) -> None:
    settings = ("--set", "text.encoding=utf-8", "--set", "embed.dtype=float16")
    assert "no effect" not in elmo_zh("embed", text, "--model", "missing", *settings).stderr


def test_fields_of_plain_text(text: Path) -> None:
    [source] = find_sources([str(text)]).sources
    told = message_of(CorpusError, lambda: list(input_text(source, TextConfig(field="review")).lines()))
    assert f"--field review has no effect on {text}" in told
    told = elmo_zh("segment", text, "--run", "x", "--field", "review").only_error()
    assert told.startswith(f"{text}: --field review has no effect")
    # A file that has fields gives them an effect.
    text.with_name("a.csv").write_text("id,review\n1,太吵了\n2,服务很好\n", encoding="utf-8")
    assert elmo_zh("segment", text, "a.csv", "--run", "x", "--field", "review").status == 0


def test_the_suffix_of_another_format() -> None:
    told = message_of(OutputError, lambda: require_matching_suffix(Path("x.npy"), OutputForm()))
    assert "--format npy" in told
    for name in ("x", "x.h5", "x.dat"):
        require_matching_suffix(Path(name), OutputForm())
