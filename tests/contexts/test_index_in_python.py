"""ContextIndex.build: an index made from Python is the one that the command makes."""

from pathlib import Path
from typing import Any

import pytest
from contexts.texts import LINES, files_of, write_text
from contract.command_line import succeed
from messages import Heard

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.errors import ElmoZhError

pytestmark = [
    pytest.mark.usefixtures("tmp_path"),
    pytest.mark.filterwarnings("ignore:.* are outside the model's vocabulary"),
]


@pytest.mark.parametrize(
    ("given", "typed"),
    [
        ({}, ()),
        (
            {"layers": "top", "min_count": 1, "max_per_word": 2, "seed": 5, "segmented": True},
            ("--layers", "top", "--min-count", "1", "--max-per-word", "2", "--seed", "5", "--segmented"),
        ),
        (
            {"layers": [2, 0], "words": ["齉", " 苹果", "，"], "split_sentences": True},
            ("--layers", "0,2", "--words", "words.txt", "--split-sentences"),
        ),
    ],
)
def test_the_bytes_are_those_of_the_command(model: Path, given: dict[str, Any], typed: tuple[str, ...]) -> None:
    Path("texts").mkdir()
    for name in ("a.txt", "b.txt"):
        write_text(Path("texts", name), LINES)
    write_text(Path("words.txt"), ["齉", " 苹果", "，"])
    succeed("index", "texts", "--model", model, "--output", "typed.index", *typed)
    index = ContextIndex.build(ElmoEmbedder.load(model, "cpu"), "texts", "given.index", **given)
    assert files_of(index.path) == files_of(Path("typed.index"))
    assert (index.path, len(index)) == (Path("given.index"), len(ContextIndex.load("typed.index")))


def test_what_the_user_should_look_at_is_a_warning(embedder: ElmoEmbedder) -> None:
    Path("texts").mkdir()
    Path("texts", "a-noise").write_bytes(bytes(range(256)) * 9)
    with pytest.raises(ElmoZhError, match="no text found"):
        ContextIndex.build(embedder, "texts", "index", reporter=Heard())
    write_text(Path("texts", "b.txt"), LINES)
    words = ["苹果", "没有", "贵"]
    with pytest.warns(UserWarning, match="Skipped|words: not among") as caught:
        index = ContextIndex.build(embedder, "texts", "index", words=words, layers=1)
    assert [text["name"] for text in index.info["texts"]] == ["texts/b.txt"]
    skipped, missing = (str(each.message) for each in caught)
    assert "texts/a-noise" in skipped
    assert missing.endswith("没有")
    reporter = Heard()
    ContextIndex.build(embedder, ["texts"], "index", words=words, layers=1, force=True, reporter=reporter)
    assert reporter.warnings == [skipped, missing]
