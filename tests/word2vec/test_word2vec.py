"""Initial token embeddings: filled in by word, from the training text or from a file."""

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from messages import message_of

from elmo_zh.config import VocabConfig, Word2vecConfig
from elmo_zh.errors import RunError
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.vocabulary.selection import VocabularyCounts, count_words, select_vocabulary
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary
from elmo_zh.word2vec import choose_epochs, chosen_implementation, train_word2vec
from elmo_zh.word2vec.vectors import TrainingJob, WordVectors, load_word_vectors, save_word_vectors

VOCABULARY = Vocabulary((*SPECIALS, "好", "天气", "苹果", "全\u3000角"))
# Each numeral stands among its own kind of words only; 𠀀 and the specials' spellings are no words of the vocabulary.
TEXT = [
    *["红 苹果 甜 水果", "红 梨\u3000子 甜 水果", "黄 苹果 甜 水果", "黄 梨\u3000子 甜 水果"] * 23,
    *["大 汽车 快 马路", "大 火车\u2028头 快 马路", "小 汽车 快 马路", "小 火车\u2028头 快 马路"] * 23,
    "<S> <UNK> </S> 𠀀",
]


HAS_GENSIM = importlib.util.find_spec("gensim") is not None
with_each_implementation = pytest.mark.parametrize(
    "implementation",
    [pytest.param("gensim", marks=pytest.mark.skipif(not HAS_GENSIM, reason="gensim is not installed")), "torch"],
)


def segmented(folder: Path) -> tuple[list[Path], VocabularyCounts]:
    path = folder / "train-00000.txt"
    path.write_text("".join(f"{line}\n" for line in TEXT), encoding="utf-8", newline="\n")
    counted = count_words([path], Work(folder / "parts", SilentReporter()))
    return [path], select_vocabulary(counted, VocabConfig(size=0, min_count=2))


def train(folder: Path, missing: Sequence[Path] = (), **changes: Any) -> tuple[VocabularyCounts, WordVectors]:
    files, built = segmented(folder)
    config = replace(Word2vecConfig(epochs=7, window=3, negative=3), **changes)
    job = TrainingJob(
        files=[*files, *missing], vocabulary=built.vocabulary, counts=built.counts, dimension=11, config=config
    )
    return built, train_word2vec(job, SilentReporter())


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.parametrize(
    ("num_tokens", "epochs"), [(0, 15), (8_300_000, 15), (12_500_000, 10), (25_000_000, 5), (10**9, 5)]
)
def test_epochs_depend_on_the_length_of_the_text(num_tokens: int, epochs: int) -> None:
    assert choose_epochs(Word2vecConfig(), num_tokens) == Word2vecConfig(epochs=epochs)
    assert choose_epochs(Word2vecConfig(epochs=3), num_tokens).epochs == 3


@with_each_implementation
@pytest.mark.parametrize("algorithm", ["cbow", "skipgram"])
def test_the_vectors_are_those_of_the_words(tmp_path: Path, implementation: str, algorithm: str) -> None:
    """Words that stand in the same places are alike, those of the other topic are not."""
    built, found = train(tmp_path, implementation=implementation, algorithm=algorithm, epochs=211)
    assert found.rows.tolist() == list(range(3, len(built.vocabulary)))
    assert (found.vectors.shape, found.vectors.dtype) == ((len(found.rows), 11), np.float32)
    vector = dict(zip(built.vocabulary.tokens[3:], found.vectors, strict=True))
    for word, like, unlike in (("苹果", "梨\u3000子", "汽车"), ("汽车", "火车\u2028头", "苹果"), ("红", "黄", "小")):
        assert cosine(vector[word], vector[like]) > 0.8
        assert cosine(vector[word], vector[unlike]) < 0.4


@with_each_implementation
def test_one_worker_gives_the_same_every_time(tmp_path: Path, implementation: str) -> None:
    _, one = train(tmp_path, implementation=implementation)
    _, again = train(tmp_path, implementation=implementation)
    _, other_seed = train(tmp_path, implementation=implementation, seed=2)
    _, skipgram = train(tmp_path, implementation=implementation, algorithm="skipgram")
    np.testing.assert_array_equal(one.vectors, again.vectors)
    assert (one.vectors != other_seed.vectors).any()
    assert (one.vectors != skipgram.vectors).any()


@with_each_implementation
def test_an_error_while_the_text_is_read_is_raised(tmp_path: Path, implementation: str) -> None:
    """gensim reads it in a thread of its own, and used to wait forever."""
    with pytest.raises(FileNotFoundError):
        train(tmp_path, [tmp_path / "gone"], implementation=implementation)


@pytest.mark.usefixtures("threads_as_before")
@pytest.mark.parametrize("algorithm", ["cbow", "skipgram"])
def test_torch_gives_the_same_whatever_the_number_of_threads(tmp_path: Path, algorithm: str) -> None:
    found = []
    for num_threads in (1, 2):
        torch.set_num_threads(num_threads)
        found.append(train(tmp_path, implementation="torch", algorithm=algorithm)[1].vectors)
        assert torch.get_num_threads() == num_threads
    np.testing.assert_array_equal(*found)


def test_auto_means_gensim_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, expected in ((object(), "gensim"), (None, "torch")):
        monkeypatch.setattr("elmo_zh.word2vec.find_spec", lambda name, found=found: found)
        assert chosen_implementation(Word2vecConfig()) == expected
        assert chosen_implementation(Word2vecConfig(implementation="torch")) == "torch"
    told = message_of(RunError, lambda: chosen_implementation(Word2vecConfig(implementation="gensim")))
    assert told.startswith("word2vec.implementation = gensim needs gensim, which is not installed.")


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_saved_vectors_come_back_exactly(tmp_path: Path, dimension: int) -> None:
    vocabulary = Vocabulary((*SPECIALS, "好", "3", "全\u3000角", "行\u2028分"))  # 3 as in the header, too
    values = np.random.default_rng(5).normal(0, 1e-3, (3, dimension)).astype(np.float32)
    values[0, 0], values[1, 0], values[2, 0] = np.float32(1) / 3, np.finfo(np.float32).tiny, -1e30
    save_word_vectors(tmp_path / "word2vec.txt", vocabulary, WordVectors(rows=np.array([3, 5, 6]), vectors=values))
    loaded = load_word_vectors(tmp_path / "word2vec.txt", vocabulary, dimension)
    assert loaded.rows.tolist() == [3, 5, 6]
    np.testing.assert_array_equal(loaded.vectors, values)


@pytest.mark.parametrize("line", ["好 1 2", "好 1 2 3 4", "坏 1 2 3", "好 1 nan 3", "好 1 x 3", ""])
def test_a_damaged_line_of_our_own_file(tmp_path: Path, line: str) -> None:
    path = tmp_path / "word2vec.txt"
    path.write_text(f"2 3\n苹果 1 2 3\n{line}\n", encoding="utf-8")
    told = message_of(RunError, lambda: load_word_vectors(path, VOCABULARY, 3))
    assert told.startswith(f"{path} is damaged (line 3).")
    path.write_text("2 3\n苹果 1 2 3\n", encoding="utf-8")
    assert "announces 2 words, but it has 1" in message_of(RunError, lambda: load_word_vectors(path, VOCABULARY, 3))
