"""Exact perplexity of any text under a bundle's model."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from elmo_zh.bundle.read import Bundle
from elmo_zh.errors import CorpusError
from elmo_zh.model.device import choose_device
from elmo_zh.reporter import Reporter
from elmo_zh.text.corpus import iter_lines
from elmo_zh.text.segmenters import split_tokens
from elmo_zh.training.scoring import Figures, TextMeasure, score_sentences
from elmo_zh.vocabulary import UNKNOWN_ID

# Sentences scored together; only these are in memory, whatever the length of the text.
_WINDOW_SENTENCES = 4096


def evaluate_files(
    bundle: Bundle, files: Sequence[Path], *, segmented: bool, device: str, reporter: Reporter
) -> Figures:
    """Return the exact figures of text files, every sentence from zero state.

    Args:
        bundle: The model.
        files: UTF-8, plain or compressed.
        segmented: One sentence a line, tokens split at U+0020, looked up as they are; else raw text, split into
            sentences, normalised and segmented as in the model's training. Empty lines are no sentences.
        device: auto, cpu or cuda.
        reporter: Where to tell.

    Raises:
        CorpusError: If the files cannot be read or hold no sentence.
        BundleError: If raw text would be segmented otherwise than in training.
    """
    model = bundle.model
    model.to(choose_device(device))
    totals = np.zeros(2)
    num_sentences = num_tokens = num_unknown = num_characters = 0
    spelling_nats = 0.0
    with reporter.progress("evaluate", unit="tokens") as progress:
        for window in _windows(_iter_tokens(bundle, files, segmented=segmented)):
            ids = [np.asarray(bundle.vocabulary.encode(tokens)) for tokens in window]
            totals += score_sentences(model.bilm, model.softmax, ids, progress)
            num_sentences += len(window)
            num_tokens += sum(len(tokens) for tokens in window)
            num_unknown += sum(int(np.count_nonzero(sentence == UNKNOWN_ID)) for sentence in ids)
            num_characters += sum(len(token) for tokens in window for token in tokens)
            unknown = (token for tokens in window for token in tokens if token not in bundle.vocabulary)
            spelling_nats += sum(bundle.spelling.nats(token) for token in unknown)
    if not num_sentences:
        raise CorpusError(f"{', '.join(map(str, files))}: no sentence to score. Give a file with text.")
    measure = TextMeasure(
        num_predictions=num_tokens + num_sentences,
        num_tokens=num_tokens,
        num_unknown=num_unknown,
        num_characters=num_characters + num_sentences,
        spelling_nats=spelling_nats,
    )
    return Figures.build(measure, float(totals[0]), float(totals[1]))


def _iter_tokens(bundle: Bundle, files: Sequence[Path], *, segmented: bool) -> Iterator[list[str]]:
    preparation = None if segmented else bundle.build_preparation()
    for path in files:
        for line in iter_lines(path):
            yield from preparation.sentences(line) if preparation else filter(None, [split_tokens(line)])


def _windows(sentences: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    window: list[list[str]] = []
    for tokens in sentences:
        window.append(tokens)
        if len(window) == _WINDOW_SENTENCES:
            yield window
            window = []
    if window:
        yield window
