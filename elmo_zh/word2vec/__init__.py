"""Train word vectors on the run's text with gensim or with our own code in torch (`negative_sampling`)."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import Word2vecConfig
from elmo_zh.corpus.text_files import iter_sentences
from elmo_zh.errors import RunError
from elmo_zh.invocation import needs
from elmo_zh.run.reporter import Progress, Reporter
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, UNKNOWN_ID
from elmo_zh.word2vec.vectors import TrainingJob, WordVectors


@dataclass(frozen=True)
class _CountedSentences:
    """Restartable sentences for gensim; reading them updates the progress.

    gensim would wait forever if reading failed in its thread, so an error ends the sentences early, and is kept.
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


def _train_with_gensim(job: TrainingJob, progress: Progress) -> NDArray[np.float32]:
    from gensim.models import Word2Vec  # takes seconds

    config, counts = job.config, job.counts
    model = Word2Vec(
        vector_size=job.dimension,
        window=config.window,
        sg=int(config.algorithm == "skipgram"),
        negative=config.negative,
        epochs=config.epochs,
        min_count=1,
        workers=config.num_workers,
        seed=config.seed,
    )
    words = [job.vocabulary.tokens[row] for row in job.rows]
    model.build_vocab_from_freq(
        {word: counts[row] for word, row in zip(words, job.rows, strict=True)}, corpus_count=counts[BEGIN_ID]
    )
    sentences = _CountedSentences(job.files, progress)
    model.train(corpus_iterable=sentences, total_examples=counts[BEGIN_ID], epochs=config.epochs)
    if sentences.errors:
        raise sentences.errors[0]
    return np.asarray(model.wv[words], np.float32)


# More epochs give better initial rows, but cost time: this many tokens take about five minutes.
_MOST_TOKENS = 125_000_000
_MOST_EPOCHS, _LEAST_EPOCHS = 15, 5


def choose_epochs(config: Word2vecConfig, num_tokens: float) -> Word2vecConfig:
    """Return the settings with a number of epochs, chosen by the length of the training text unless they have one.

    15 epochs instead of 5 give a better start: a perplexity of 89.0 instead of 95.9 after training on 1 MB of news, and
    66.0 instead of 72.8 after 3 million of 8.3 million tokens (docs/log.md, 2026-11-23).
    """
    if config.epochs:
        return config
    epochs = round(_MOST_TOKENS / max(1.0, num_tokens))
    return replace(config, epochs=min(_MOST_EPOCHS, max(_LEAST_EPOCHS, epochs)))


def chosen_implementation(config: Word2vecConfig) -> str:
    """Return "gensim" or "torch"; "auto" means gensim if installed. Raise RunError if gensim is set but missing."""
    has_gensim = find_spec("gensim") is not None
    if config.implementation == "gensim" and not has_gensim:
        raise RunError(needs("word2vec.implementation = gensim", "gensim", "train"))
    if config.implementation == "auto":
        return "gensim" if has_gensim else "torch"
    return config.implementation


def train_word2vec(job: TrainingJob, reporter: Reporter) -> WordVectors:
    """Train vectors for the words in the vocabulary on segmented files.

    The result is deterministic with one worker or with torch. A word that does not occur gets no vector.
    """
    train_rows = _train_with_gensim
    if chosen_implementation(job.config) == "torch":
        # torch takes seconds to import.
        from elmo_zh.word2vec.negative_sampling import train_rows
    job = replace(job, config=choose_epochs(job.config, sum(job.counts[UNKNOWN_ID:])))
    with reporter.progress("word2vec", unit="tokens", total=job.num_tokens) as progress:
        vectors = train_rows(job, progress)
    return WordVectors(rows=job.rows, vectors=vectors)
