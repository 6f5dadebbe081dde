"""LineScorer: computes the exact log-probability of lines under a model's forward and backward LMs."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.checks import check_strings
from elmo_zh.embed.text_tokens import require_sentences
from elmo_zh.scoring import TextCost, costs_from, sentence_costs
from elmo_zh.text.normalise import split_segmented
from elmo_zh.text.preparation import TokenisedLine, align_sentences, find_tokens
from elmo_zh.vocabulary.lexicon import Lexicon

_NO_OFFSETS = np.zeros((0, 2), np.int32)


class TokenScore(NamedTuple):
    """The surprisal of one token in a line, under both LMs."""

    token: str
    start: int  # its first character in the line as given
    end: int  # one past its last character
    forward_nats: float  # its surprisal under the forward LM, which has read the text before it, in nats
    backward_nats: float  # its surprisal under the backward LM, which has read the text after it, in nats
    is_unknown: bool  # whether it is outside the vocabulary; the surprisal then belongs to <UNK>


@dataclass(frozen=True, kw_only=True)
class LineScore(TextCost):
    """The exact cost of a line under a model; an empty line has no sentences."""

    unknown: tuple[str, ...] = ()  # the tokens outside the vocabulary
    num_cut: int = 0  # number of tokens truncated because they are longer than the model reads
    tokens: tuple[TokenScore, ...] | None = None  # the cost of each token, if requested

    @property
    def slln_lp(self) -> float | None:
        """Log-probability with spelling, divided by the square root of the number of predictions; None if empty.

        The sub-linear length normalised log-probability of Liu et al. (2024), ZhoBLiMP, with their exponent 0.5.
        """
        if not self.num_sentences:
            return None
        return -(self.mean_nats + self.spelling_nats) / math.sqrt(self.num_predictions)

    @property
    def bits_per_character(self) -> float | None:
        """Cost of the line in bits per character, including the spelling of unknown words; None for an empty line."""
        return self.figures().bits_per_character if self.num_sentences else None

    @property
    def perplexity(self) -> float | None:
        """Perplexity, the geometric mean of both directions; None for an empty line."""
        return self.figures().perplexity if self.num_sentences else None


class LineScorer:
    """Computes the exact cost of lines; `score` starts each sentence from the same state.

        scorer = LineScorer.load("runs/latest/model")
        [line] = scorer.score(["今天天气很好"])
        line.forward_nats, line.backward_nats, line.bits_per_character

    Attributes:
        bundle: The model.
        by_token: Whether the cost of each token is kept.
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        segmented: bool = False,
        split_sentences: bool = False,
        by_token: bool = False,
        user_dictionary: Path | None = None,
    ) -> None:
        """Prepare a model for scoring.

        Args:
            bundle: The model.
            segmented: Lines are tokens separated by spaces, looked up as they are; unknown tokens are split if the
                model was trained with text.split_unknown. Raw lines are normalised and segmented instead.
            split_sentences: Raw lines are split into sentences as in training; a line's cost is the sum over them.
            by_token: Keep the cost of each token.
            user_dictionary: File with words of your own that the segmenter keeps whole, in jieba's format.

        Raises:
            BundleError: If the bundle has no softmax, or cannot read lines in this way.
        """
        self.bundle = bundle
        self.by_token = by_token
        self.reading = {"segmented": segmented, "split_sentences": split_sentences, "by_token": by_token}
        self._vocabulary = bundle.require_probabilities()
        if split_sentences:
            require_sentences(bundle)
        self._user_dictionary = user_dictionary
        self._preparation = None if segmented else bundle.build_preparation(user_dictionary)

    @classmethod
    def load(cls, path: str | Path, **reading: Any) -> "LineScorer":
        """Load a bundle from its folder, or an installed model by its name; `reading` goes to `LineScorer`."""
        return cls(load_bundle(find_bundle(path)), **reading)

    def __repr__(self) -> str:
        shape = self.bundle.shape
        size = f"{shape.num_layers + 1} layers, dimension {2 * shape.projection_dim}"
        return f"<LineScorer of {self.bundle.path}: {size}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder and the reading settings, but not the weights."""
        place = self.bundle.path.absolute(), self.bundle.digest
        return _load_same, (*place, {**self.reading, "user_dictionary": self._user_dictionary})

    def score(self, lines: Iterable[str]) -> list[LineScore]:
        """Return the cost of each line; equal lines are scored only once.

        Args:
            lines: Strings. They are scored together, so pass a few thousand at a time.

        Raises:
            TypeError: If `lines` is a single string, or an item is not a string.
        """
        checked = check_strings(lines, "score", "lines")
        scores = self._score_distinct(list(dict.fromkeys(checked)))
        return [scores[line] for line in checked]

    def _score_distinct(self, lines: Sequence[str]) -> dict[str, LineScore]:
        split = [self._sentences(line) for line in lines]
        lexicon = self.bundle.build_lexicon()
        sentences = [line.tokens for found in split for line in found]
        ids = [np.asarray(lexicon.encode(tokens)) for tokens in sentences]
        costs = iter(sentence_costs(self.bundle.weights, lexicon, ids))
        scores = [self._line_score(found, [next(costs) for _ in found], lexicon) for found in split]
        return dict(zip(lines, scores, strict=True))

    def iter_stream(self, lines: Iterable[str]) -> Iterator[LineScore]:
        """Yield the cost of each line in a text, carrying the state over from sentence to sentence."""
        state = self.bundle.weights.reader.zero_state(1)
        for line in lines:
            sentences, costs, lexicon = self._sentences(line), [], self.bundle.build_lexicon()
            for sentence in sentences:
                ids = np.asarray(lexicon.encode(sentence.tokens))
                found, state = costs_from(self.bundle.weights, lexicon, ids, state)
                costs.append(found)
            yield self._line_score(sentences, costs, lexicon)

    def _sentences(self, line: str) -> list[TokenisedLine]:
        """Return the sentences of a line that have tokens, with token offsets if needed."""
        preparation, split = self._preparation, self.reading["split_sentences"]
        if preparation is None:
            tokens = split_segmented(line, self.bundle.text)
            if self.bundle.text is not None and self.bundle.text.split_unknown:
                tokens = self._vocabulary.split(tokens)
            found = [TokenisedLine(tokens, find_tokens(line, tokens) if self.by_token else _NO_OFFSETS)]
        elif self.by_token:
            found = list(align_sentences(line, preparation.prepare, split=split, segmented=preparation.keeps_tokens))
        else:
            token_lists = preparation.sentences(line) if split else [preparation.tokens(line)]
            found = [TokenisedLine(tokens, _NO_OFFSETS) for tokens in token_lists]
        return [sentence for sentence in found if sentence.tokens]

    def _line_score(
        self, sentences: Sequence[TokenisedLine], costs: Sequence[NDArray[np.float64]], lexicon: Lexicon
    ) -> LineScore:
        tokens = [token for sentence in sentences for token in sentence.tokens]
        unknown = tuple(token for token in tokens if token not in self._vocabulary)
        totals = [[float(nats) for nats in cost.sum(axis=1)] for cost in costs]
        return LineScore(
            num_sentences=len(sentences),
            num_tokens=len(tokens),
            num_unknown=len(unknown),
            unknown=unknown,
            num_cut=sum(map(lexicon.is_cut, tokens)),
            num_characters=sum(map(len, tokens)) + len(sentences),
            forward_nats=sum((forward for forward, _ in totals), 0.0),
            backward_nats=sum((backward for _, backward in totals), 0.0),
            spelling_nats=sum((self.bundle.spelling.nats(token) for token in unknown), 0.0),
            tokens=tuple(self._token_scores(sentences, costs)) if self.by_token else None,
        )

    def _token_scores(
        self, sentences: Sequence[TokenisedLine], costs: Sequence[NDArray[np.float64]]
    ) -> Iterator[TokenScore]:
        for sentence, (forward, backward) in zip(sentences, costs, strict=True):
            for place, (token, (start, end)) in enumerate(zip(sentence.tokens, sentence.offsets.tolist(), strict=True)):
                is_unknown = token not in self._vocabulary
                yield TokenScore(token, start, end, float(forward[place]), float(backward[place]), is_unknown)


def _load_same(path: Path, digest: str, settings: dict[str, Any]) -> LineScorer:
    return LineScorer(load_bundle(path, digest), **settings)
