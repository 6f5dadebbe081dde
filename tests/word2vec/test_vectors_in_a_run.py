"""The stage word2vec with a file of vectors: coverage is judged, and no table that cannot be trained is written."""

from pathlib import Path

import pytest
from contract.command_line import elmo_zh, settings

WORDS = [f"词{number}" for number in range(40)]
OPTIONS = settings(
    "text.segmenter=whitespace",
    "text.heldout_share=0",
    "vocab.min_count=1",
    "model.projection_dim=3",
    "text.num_workers=1",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    (folder / "a.txt").write_text("".join(f"{word} {word} ＡＰＰ 好\n" for word in WORDS), encoding="utf-8")
    assert elmo_zh("segment", folder / "a.txt", "--run", folder / "run", *OPTIONS).status == 0
    assert elmo_zh("vocab", "--run", folder / "run").status == 0
    return folder / "run"


@pytest.mark.parametrize(
    ("rows", "covered", "is_warned"),
    [
        (["词1 1 2 3", "词2 1 2 4", "ＡＰＰ 0 0 1"], 3, False),
        (["词1 1 2 3", "词2 1 2 4"], 0, True),
        ([f"{word} 0.5 0.5 0.5" for word in WORDS], 0, True),
        (["没有 1 2 3"], 0, True),
    ],
)
def test_few_or_equal_vectors_are_no_start(
    run: Path, tmp_path: Path, rows: list[str], covered: int, is_warned: bool
) -> None:
    vectors = tmp_path / "given.vec"
    vectors.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    answer = elmo_zh("word2vec", "--run", run, "--from", vectors, "--json")
    assert answer.result()["covered"] == covered
    assert ("the file is not used" in answer.stderr) is is_warned
    lines = (run / "word2vec.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == f"{covered} 3"
    assert ("APP 0.0 0.0 1.0" in lines) is not is_warned
