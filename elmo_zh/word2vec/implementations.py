"""Train word vectors on the run's text, by gensim or by our own code in torch."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from elmo_zh.config import Word2vecConfig
from elmo_zh.errors import RunError
from elmo_zh.run.reporter import Reporter
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary
from elmo_zh.word2vec.vectors import WordVectors

# More epochs give better initial rows, but cost time: so many tokens take some five minutes.
_MOST_TOKENS = 125_000_000
_MOST_EPOCHS, _LEAST_EPOCHS = 15, 5


def choose_epochs(config: Word2vecConfig, num_tokens: float) -> Word2vecConfig:
    """Return the settings, with the epochs chosen by the length of the training text if they leave them open.

    With 15 epochs instead of 5, training from scratch on 1 MB of news ends at a perplexity of 89.0 instead of 95.9, and
    on 8.3 million tokens stands at 66.0 instead of 72.8 after 3 million (docs/log.md, 2026-11-23). Text of up to 8.3
    million tokens has 15, of 25 million and more 5.
    """
    if config.epochs:
        return config
    epochs = round(_MOST_TOKENS / max(1.0, num_tokens))
    return replace(config, epochs=min(_MOST_EPOCHS, max(_LEAST_EPOCHS, epochs)))


def chosen_implementation(config: Word2vecConfig) -> str:
    """Return "gensim" or "torch"; "auto" means gensim where it is installed."""
    has_gensim = find_spec("gensim") is not None
    if config.implementation == "gensim" and not has_gensim:
        raise RunError(
            "word2vec.implementation is gensim, which is not installed here; there are wheels for Python 3.11 to 3.13."
            " Use --set word2vec.implementation=torch"
        )
    if config.implementation == "auto":
        return "gensim" if has_gensim else "torch"
    return config.implementation


def train_word2vec(
    train_files: Sequence[Path],
    vocabulary: Vocabulary,
    counts: Sequence[int],
    dimension: int,
    config: Word2vecConfig,
    reporter: Reporter,
) -> WordVectors:
    """Train vectors for the vocabulary's words on segmented files.

    The result is the same every time with the torch implementation, and with gensim if it has one worker.

    Args:
        train_files: Segmented training text, never the held-out part.
        vocabulary: The words. Specials and words that the text lacks get no vector.
        counts: How often each row occurs in the text; that of <S> is the number of sentences.
        dimension: Length of each vector.
        config: The settings.
        reporter: Where progress goes.
    """
    # gensim and torch take seconds to import, so only the chosen one is.
    if chosen_implementation(config) == "gensim":
        from elmo_zh.word2vec.gensim_training import train_rows
    else:
        from elmo_zh.word2vec.torch_training import train_rows
    # Counts fall, so words of another corpus that this text lacks come last.
    rows = np.array([row for row in range(len(SPECIALS), len(vocabulary)) if counts[row]], np.int64)
    num_tokens = sum(counts[UNKNOWN_ID:])
    config = choose_epochs(config, num_tokens)
    with reporter.progress("word2vec", unit="tokens", total=config.epochs * num_tokens) as progress:
        vectors = train_rows(rows, train_files, vocabulary, counts, dimension, config, progress)
    return WordVectors(rows=rows, vectors=vectors)
