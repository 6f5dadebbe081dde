"""gensim's Word2Vec on the run's text."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import Word2vecConfig
from elmo_zh.corpus.segmented import iter_sentences
from elmo_zh.run.reporter import Progress
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, Vocabulary


@dataclass(frozen=True)
class _CountedSentences:
    """Restartable sentences for gensim that move a progress count.

    gensim reads them in a thread of its own, and would wait forever for one that ends with an error. So they end early
    instead, and the error is kept.
    """

    files: Sequence[Path]
    progress: Progress
    errors: list[Exception] = field(default_factory=list)

    def __iter__(self) -> Iterator[list[str]]:
        try:
            for sentence in iter_sentences(() if self.errors else self.files):
                self.progress.update(len(sentence))
                yield sentence
        except Exception as error:
            self.errors.append(error)
            logging.getLogger("gensim").setLevel(logging.CRITICAL)  # it would warn of the missing sentences


def train_rows(
    rows: NDArray[np.int64],
    train_files: Sequence[Path],
    vocabulary: Vocabulary,
    counts: Sequence[int],
    dimension: int,
    config: Word2vecConfig,
    progress: Progress,
) -> NDArray[np.float32]:
    """Return trained vectors for rows of the vocabulary, shape (num_rows, dimension); see `train_word2vec`."""
    from gensim.models import Word2Vec

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
    words = [vocabulary.tokens[row] for row in rows]
    model.build_vocab_from_freq(
        {word: counts[row] for word, row in zip(words, rows, strict=True)}, corpus_count=counts[BEGIN_ID]
    )
    sentences = _CountedSentences(train_files, progress)
    model.train(corpus_iterable=sentences, total_examples=counts[BEGIN_ID], epochs=config.epochs)
    if sentences.errors:
        raise sentences.errors[0]
    return np.asarray(model.wv[words], np.float32)
