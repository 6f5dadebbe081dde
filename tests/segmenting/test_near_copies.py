"""Near copies are on one side of the split, or counted where the corpus has too little else."""

import random
from pathlib import Path

import pytest
from segmenting.test_segment_corpus import CHARACTERS, corpus_of, files_of, segment

from elmo_zh.config import TextConfig
from elmo_zh.segmenting.heldout import signatures

RANDOM = random.Random(5)


def invented(length: int) -> str:
    return "".join(chr(0x4E00 + RANDOM.randrange(3000)) for _ in range(length))


def runs(text: str) -> set[str]:
    return {text[start : start + 3] for start in range(len(text) - 2)}


def test_signatures_estimate_the_jaccard_index_of_runs() -> None:
    errors = []
    for _ in range(300):
        text = invented(RANDOM.randrange(20, 150))
        place = RANDOM.randrange(len(text))
        other = text[:place] + invented(RANDOM.randrange(40))
        first, second = signatures([text, other])
        jaccard = len(runs(text) & runs(other)) / len(runs(text) | runs(other))
        errors.append(sum(first == second) / 16 - jaccard if len(other) >= 10 else 0.0)
    assert abs(sum(errors) / 300) < 0.02
    assert max(map(abs, errors)) < 0.5


def test_a_signature_is_the_texts_own() -> None:
    texts = [invented(length) for length in (31, 7, 1, 10, 12_007, 53)]
    together, alone = signatures(texts), [signatures([text])[0] for text in texts]
    assert (together == alone).all()
    assert [bool(row.any()) for row in together] == [True, False, False, True, True, True]
    end = invented(24_000)  # compared whole: of the first 10,000 characters, most differ
    first, second = signatures([invented(6_000) + end for _ in "12"])
    assert (first == second).sum() >= 9


@pytest.mark.parametrize("shard_bytes", [0, 3_000])
def test_near_copies_are_not_held_out(tmp_path: Path, shard_bytes: int) -> None:
    RANDOM.seed(7)  # the similarity is an estimate: with one seed in four, a note is not recognised
    new = [invented(41) for _ in range(300)]
    # Each in five versions, which differ in a number and a name.
    notes = [
        f"{invented(2)}在{RANDOM.randrange(99)}日{text}" for text in (invented(37) for _ in range(60)) for _ in "12345"
    ]
    lines = RANDOM.sample(new + notes, 600)
    config = TextConfig(segmenter="character", num_workers=1, heldout_min_sentences=53, shard_bytes=shard_bytes)
    counts = segment(corpus_of(tmp_path / "corpus", "\n".join(lines)), tmp_path / "out", config)
    heldout = files_of(tmp_path / "out")["heldout-00000.txt"].replace(" ", "").splitlines()
    assert len(heldout) == 53
    assert set(heldout) <= set(new)
    assert counts.near_copies_heldout == 0


def test_a_corpus_of_near_copies_is_held_out_and_counted(tmp_path: Path) -> None:
    text = invented(37)
    corpus = corpus_of(tmp_path / "corpus", "\n".join(f"{invented(2)}在{day}日{text}" for day in range(200)))
    counts = segment(corpus, tmp_path / "out", CHARACTERS)
    assert (counts.near_copies_heldout, counts.heldout_sentences) == (20, 20)
