"""gensim's Word2Vec on the run's text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import Word2vecConfig
from elmo_zh.corpus.segmented import iter_sentences
from elmo_zh.run.reporter import Progress
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, Vocabulary


@dataclass(frozen=True)
class _CountedSentences:
    """Restartable sentences for gensim that move a progress count."""

    files: Sequence[Path]
    progress: Progress

    def __iter__(self) -> Iterator[list[str]]:
        for sentence in iter_sentences(self.files):
            self.progress.update(len(sentence))
            yield sentence


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
    return np.asarray(model.wv[words], np.float32)
