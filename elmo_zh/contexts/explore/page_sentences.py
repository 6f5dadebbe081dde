"""The lines of a page with the surprisal of their tokens, and substitutes for the points in them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elmo_zh.checks import Place
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_entries import IndexedLine, Occurrence
from elmo_zh.contexts.line_scorer import LineReading, LineScorer, TokenScore
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.run.reporter import Reporter

# Substitutes that are kept for each point.
NUM_SUBSTITUTES = 8
# Lines or points that are computed between two updates of the progress bar.
_AT_A_TIME = 256


@dataclass(frozen=True)
class PageLine:
    """A line of a page.

    Attributes:
        line: The line.
        tokens: Its tokens with their surprisal, which is NaN if the model has no softmax.
    """

    line: IndexedLine
    tokens: Sequence[TokenScore]

    @property
    def words(self) -> list[str]:
        """The tokens alone."""
        return [token.token for token in self.tokens]


class TokenReader:
    """Reads lines, with the surprisal of each token if the model has a softmax."""

    def __init__(self, embedder: ElmoEmbedder, device: str, *, segmented: bool) -> None:
        """Prepare a model.

        Args:
            embedder: The model.
            device: auto, cpu or cuda.
            segmented: Tokens are split at U+0020; else lines are normalised and segmented.
        """
        self._embedder, self._segmented = embedder, segmented
        self._scorer: LineScorer | None = None
        if has_probabilities(embedder):
            reading = LineReading(segmented=segmented, by_token=True)
            self._scorer = LineScorer(embedder.bundle, device, reading)

    def read(self, texts: Sequence[str]) -> list[Sequence[TokenScore]]:
        """Return the tokens of lines; their surprisal is NaN if the model has no softmax."""
        if self._scorer is None:
            return [list(self._unscored_tokens(text)) for text in texts]
        return [score.tokens or () for score in self._scorer.score(texts)]

    def _unscored_tokens(self, text: str) -> Iterator[TokenScore]:
        prepared = self._embedder.prepare(text, segmented=self._segmented)
        unknown = self._embedder.find_unknown(prepared.tokens).tolist()
        for token, (start, end), is_unknown in zip(prepared.tokens, prepared.offsets.tolist(), unknown, strict=True):
            yield TokenScore(token, start, end, math.nan, math.nan, is_unknown)


def has_probabilities(embedder: ElmoEmbedder) -> bool:
    """Return whether a model can give surprisal and substitutes: those of other programs often lack the softmax."""
    return embedder.bundle.softmax is not None and embedder.bundle.vocabulary is not None


def page_lines(
    index: ContextIndex, embedder: ElmoEmbedder, numbers: Sequence[int], device: str, reporter: Reporter
) -> dict[int, PageLine]:
    """Return the lines of a page by their numbers in the index.

    Args:
        index: The index that has them.
        embedder: The model that made the index.
        numbers: The numbers.
        device: auto, cpu or cuda.
        reporter: Shows progress.
    """
    reader = TokenReader(embedder, device, segmented=index.is_segmented)
    found: dict[int, PageLine] = {}
    with reporter.progress("sentences", total=len(numbers), unit="lines") as progress:
        for start in range(0, len(numbers), _AT_A_TIME):
            chosen = numbers[start : start + _AT_A_TIME]
            lines = [index.line(number) for number in chosen]
            tokens = reader.read([line.text for line in lines])
            for number, line, own in zip(chosen, lines, tokens, strict=True):
                found[number] = PageLine(line, own)
            progress.update(len(chosen))
    return found


def point_substitutes(
    lines: Mapping[int, PageLine], embedder: ElmoEmbedder, points: Sequence[Occurrence], reporter: Reporter
) -> list[list[list[Any]]]:
    """Return the substitutes of each point: [word, probability] each, without the point's own word.

    Args:
        lines: The lines of the page, by their numbers in the index.
        embedder: The model, which has a softmax.
        points: The points.
        reporter: Shows progress.
    """
    found: list[list[list[Any]]] = []
    with reporter.progress("substitutes", total=len(points), unit="points") as progress:
        for start in range(0, len(points), _AT_A_TIME):
            chosen = points[start : start + _AT_A_TIME]
            places = [(lines[point.line].words, point.token) for point in chosen]
            found += substitute_records(embedder, places)
            progress.update(len(chosen))
    return found


def substitute_records(embedder: ElmoEmbedder, places: Sequence[Place]) -> list[list[list[Any]]]:
    """Return the substitutes at places: [word, probability] each, without the place's own word."""
    found = []
    for substitutes in embedder.substitutes_many(places, NUM_SUBSTITUTES + 1):
        best = [each for each in substitutes.best if each.word != substitutes.word]
        found.append([[each.word, float(f"{each.probability:.2g}")] for each in best[:NUM_SUBSTITUTES]])
    return found


def token_records(tokens: Sequence[TokenScore]) -> list[list[Any]]:
    """Return [start, end, forward nats, backward nats, 1 if unknown] for each token; NaN becomes None."""
    return [
        [
            token.start,
            token.end,
            *(None if math.isnan(nats) else round(nats, 2) for nats in (token.forward_nats, token.backward_nats)),
            int(token.is_unknown),
        ]
        for token in tokens
    ]
