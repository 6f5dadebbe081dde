"""Initial token embeddings: word2vec vectors trained with gensim on the training text, or read from a file."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import Word2vecConfig
from elmo_zh.corpus.files import iter_lines
from elmo_zh.corpus.segmented import iter_sentences
from elmo_zh.errors import RunError
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import Progress, Reporter
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, SPECIALS, UNKNOWN_ID, Vocabulary


@dataclass(frozen=True)
class _CountedSentences:
    """Restartable sentences for gensim that update a progress count."""

    files: Sequence[Path]
    progress: Progress

    def __iter__(self) -> Iterator[list[str]]:
        for sentence in iter_sentences(self.files):
            self.progress.update(len(sentence))
            yield sentence


def train_word2vec(
    train_files: Sequence[Path],
    vocabulary: Vocabulary,
    counts: Sequence[int],
    dimension: int,
    config: Word2vecConfig,
    reporter: Reporter,
) -> "WordVectors":
    """Train vectors for the vocabulary's words on segmented files.

    Args:
        train_files: Segmented training text, without the held-out text.
        vocabulary: Words to train vectors for, except special tokens and words that do not occur in the text.
        counts: Count of each row in the text; that of <S> is the number of sentences.
        dimension: Dimension of the vectors.
        config: Settings of word2vec; with one worker the result is reproducible.
        reporter: Receives progress.

    Raises:
        RunError: If gensim is not installed.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise RunError(
            f"word2vec needs gensim, which is not installed for Python {sys.version_info[0]}.{sys.version_info[1]}."
            " Start from random embeddings with --set word2vec.enabled=false, or use Python 3.13: make clean, then"
            " make train PYTHON=python3.13"
        ) from None

    model = Word2Vec(
        vector_size=dimension,
        window=config.window,
        sg=int(config.algorithm == "skipgram"),
        negative=config.negative,
        epochs=config.epochs,
        min_count=1,
        workers=config.num_workers,
        seed=config.seed,
    )
    # Counts are in descending order, so words of another corpus that do not occur in this text come last.
    rows = [row for row in range(len(SPECIALS), len(vocabulary)) if counts[row]]
    words = [vocabulary.tokens[row] for row in rows]
    model.build_vocab_from_freq({vocabulary.tokens[row]: counts[row] for row in rows}, corpus_count=counts[BEGIN_ID])
    num_tokens = config.epochs * sum(counts[UNKNOWN_ID:])
    with reporter.progress("word2vec", unit="tokens", total=num_tokens) as progress:
        sentences = _CountedSentences(train_files, progress)
        model.train(corpus_iterable=sentences, total_examples=counts[BEGIN_ID], epochs=config.epochs)
    return WordVectors(rows=np.array(rows, np.int64), vectors=np.asarray(model.wv[words], np.float32))


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """Vectors for some rows of a vocabulary.

    Attributes:
        rows: Row numbers, int64, shape (num_found,).
        vectors: Vectors of these rows, float32, shape (num_found, dimension).
    """

    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]


def save_word_vectors(path: Path, vocabulary: Vocabulary, vectors: WordVectors) -> None:
    """Write vectors in word2vec's text format, with enough digits for exact float32 values."""
    with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(vectors.rows)} {vectors.vectors.shape[1]}\n")
        for row, vector in zip(vectors.rows, vectors.vectors, strict=True):
            file.write(f"{vocabulary.tokens[row]} {' '.join(map(str, vector))}\n")


def load_word_vectors(path: Path, vocabulary: Vocabulary, dimension: int) -> WordVectors:
    """Read the vectors of the vocabulary's words from a file in word2vec's text format, plain or compressed.

    Rows are matched by word, never by position. Words that are not in the vocabulary are ignored.

    Raises:
        RunError: If a line does not have `dimension` numbers, or contains anything but finite numbers.
    """
    rows_by_word = {word: row for row, word in enumerate(vocabulary.tokens) if row >= len(SPECIALS)}
    found: dict[int, NDArray[np.float32]] = {}
    for number, line in enumerate(iter_lines(path), start=1):
        word, *numbers = line.rstrip(" ").split(" ")
        if number == 1 and len(numbers) == 1 and word.isdecimal() and (dimension != 1 or numbers == ["1"]):
            continue  # the header: number of words and dimension
        if len(numbers) != dimension:
            raise RunError(
                f"{path}: line {number} has {len(numbers)} numbers, but token embeddings have {dimension}."
                " Give vectors of that width, or set model.projection_dim to the file's."
            )
        row = rows_by_word.get(word)
        if row is not None and row not in found:
            found[row] = _parse_vector(numbers, path, number)
    rows = np.array(sorted(found), np.int64)
    vectors = np.array([found[row] for row in rows], np.float32).reshape(len(rows), dimension)
    return WordVectors(rows=rows, vectors=vectors)


def _parse_vector(numbers: Sequence[str], path: Path, line: int) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            vector = np.array(numbers, np.float32)
    except ValueError:
        vector = np.full(1, np.nan, np.float32)
    if not np.isfinite(vector).all():
        raise RunError(
            f"{path}: line {line} contains something that is not a finite number. Correct or remove the line."
        )
    return vector
