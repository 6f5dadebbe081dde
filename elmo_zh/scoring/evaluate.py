"""Exact perplexity of text files under a bundle's model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.read import Bundle
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.segmented import iter_line_sentences
from elmo_zh.errors import CorpusError
from elmo_zh.model.bilm import BiLM, State
from elmo_zh.model.precision import choose_device
from elmo_zh.model.softmax import Softmax
from elmo_zh.run.reporter import Progress, Reporter
from elmo_zh.scoring.exact import Figures, TextMeasure, score_sentences, score_stream
from elmo_zh.text.windows import iter_windows
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import UnknownWords

# Sentences scored together. Only these are in memory, however long the text is.
_WINDOW_SENTENCES = 4096


@dataclass(frozen=True, kw_only=True)
class EvaluatedText:
    """Result of an evaluation."""

    figures: Figures  # The exact figures
    num_tokens: int  # Number of words
    num_unknown: int  # Number of words outside the vocabulary
    unknown_words: Mapping[str, int]  # These words, each with its count; of very many the most frequent ones


def evaluate_files(
    bundle: Bundle,
    texts: Sequence[InputText],
    *,
    segmented: bool,
    stateful: bool = False,
    device: str,
    reporter: Reporter,
) -> EvaluatedText:
    """Return the exact figures of texts, and their unknown words.

    If `segmented`, lines are sentences of tokens separated by U+0020; otherwise text is split into sentences,
    normalised and segmented as in training. If `stateful`, the state is carried from sentence to sentence of a file.
    """
    softmax, _ = bundle.require_probabilities()
    bilm, chosen = bundle.bilm, choose_device(device)
    bilm.to(chosen)
    softmax.to(chosen)
    tally = _Tally(bundle)
    preparation = None if segmented else bundle.build_preparation()
    with reporter.progress("evaluate", unit="tokens") as progress:
        for text in texts:
            state = bilm.zero_state(1)
            sentences_of_text = iter_line_sentences(text.lines_if_text(reporter), preparation)
            for window in iter_windows(sentences_of_text, lambda _: 0, most_items=_WINDOW_SENTENCES):
                lexicon = bundle.build_lexicon()
                sentences = [np.asarray(lexicon.encode(tokens)) for tokens in window]
                if stateful:
                    nats, state = _score_stateful(bilm, softmax, lexicon, sentences, state, progress)
                else:
                    nats = score_sentences(bilm, softmax, lexicon, sentences, progress)
                tally.add(window, nats)
    if not tally.num_sentences:
        raise CorpusError(f"{', '.join(text.name for text in texts)}: no sentence to score. Give a file with text.")
    if tally.num_cut:
        reporter.note(f"{tally.num_cut:,} words are longer than the model reads and were truncated.")
    return tally.result()


def _score_stateful(
    bilm: BiLM,
    softmax: Softmax,
    lexicon: Lexicon,
    sentences: Sequence[NDArray[Any]],
    state: State,
    progress: Progress,
) -> tuple[tuple[float, float], State]:
    """Return the total cost of consecutive sentences under each LM, and the state at the end."""
    totals = np.zeros(2)
    for sentence in sentences:
        nats, state = score_stream(bilm, softmax, lexicon, sentence, state)
        totals += nats
        progress.update(len(sentence) + 1)
    return (float(totals[0]), float(totals[1])), state


class _Tally:
    """Running totals of the costs and counts of a text."""

    def __init__(self, bundle: Bundle) -> None:
        self._lexicon, self._spelling = bundle.build_lexicon(), bundle.spelling
        self._nats = np.zeros(2)
        self.num_sentences = self._num_tokens = self._num_unknown = self._num_characters = 0
        self._spelling_nats = 0.0
        self._unknown_words = UnknownWords[str]()
        self.num_cut = 0

    def add(self, sentences: Sequence[Sequence[str]], nats: tuple[float, float]) -> None:
        """Add sentences and their cost under each LM."""
        self._nats += nats
        self.num_sentences += len(sentences)
        self._num_tokens += sum(len(tokens) for tokens in sentences)
        self._num_characters += sum(len(token) for tokens in sentences for token in tokens)
        unknown = [token for tokens in sentences for token in tokens if token not in self._lexicon.vocabulary]
        self.num_cut += sum(self._lexicon.is_cut(token) for tokens in sentences for token in tokens)
        self._num_unknown += len(unknown)
        self._unknown_words.add(unknown)
        self._spelling_nats += sum(self._spelling.nats(token) for token in unknown)

    def result(self) -> EvaluatedText:
        """Return the exact figures of everything added so far."""
        measure = TextMeasure(
            num_predictions=self._num_tokens + self.num_sentences,
            num_tokens=self._num_tokens,
            num_unknown=self._num_unknown,
            num_characters=self._num_characters + self.num_sentences,
            spelling_nats=self._spelling_nats,
        )
        return EvaluatedText(
            figures=Figures.build(measure, float(self._nats[0]), float(self._nats[1])),
            num_tokens=self._num_tokens,
            num_unknown=self._num_unknown,
            unknown_words=dict(self._unknown_words.counts),
        )
