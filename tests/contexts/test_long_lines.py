"""Very long lines: cut in indexes, refused where they would fill the memory."""

from pathlib import Path

import pytest
from drawn_bundles import TOKENS, write_model

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.config import TextConfig

WORDS = ("我们", "说", "今天", "天气", "很", "好")
TEXT = TextConfig(segmenter="character")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles") / "model"
    return write_model(folder, TOKENS, words=WORDS, text=TEXT, with_softmax=True)


@pytest.mark.parametrize("segmented", [False, True])
def test_an_index_cuts_long_sentences(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segmented: bool
) -> None:
    for module in ("contexts.build_index", "text.sentences"):
        monkeypatch.setattr(f"elmo_zh.{module}.LONGEST_SENTENCE", 7)
    line = "说 很 好 很 好 我们 好" if segmented else "说很好很好。好很好很说好很说"
    path = tmp_path / "a.txt"
    path.write_text(f"好\n{line}\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"a\.txt: long lines or sentences are read in pieces of at most 7 characters"):
        index = ContextIndex.build(
            ElmoEmbedder.load(model, "cpu"), path, tmp_path / "index", segmented=segmented, min_count=1
        )
    found = [index.occurrence(int(number)) for number in index.occurrences("好")]
    lines = [index.line(each.line) for each in found]
    pieces = ["好", "说 很 好 ", "很 好 我们 ", "好"] if segmented else ["好", *["说很好很好。"] * 2]
    assert [each.text for each in lines][: len(pieces)] == pieces
    in_raw_line = [line[each.start + row.start] for each, row in zip(found[1:], lines[1:], strict=True)]
    assert in_raw_line == ["好"] * (line.count("好"))
    assert max(len(each.text) for each in lines) <= 7
