"""LineScore: the cost of one line under a model, and as a record in a file."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from elmo_zh.training.scoring import TextMeasure


class TokenScore(NamedTuple):
    """The cost of one token of a line.

    Attributes:
        token: The token.
        start: Its first character in the line as given.
        end: The character after its last one.
        forward_nats: Its surprisal under the forward LM, which reads what stands before it, in nats.
        backward_nats: Its surprisal under the backward LM, which reads what stands after it, in nats.
        is_unknown: Whether it is outside the vocabulary; the surprisal is then that of <UNK>.
    """

    token: str
    start: int
    end: int
    forward_nats: float
    backward_nats: float
    is_unknown: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LineScore:
    """The exact cost of a line under a model.

    Attributes:
        num_sentences: Number of its sentences that have a token: 0 for an empty line.
        num_tokens: Number of tokens.
        num_unknown: Number of tokens outside the vocabulary.
        num_characters: Number of characters in the tokens, plus one for each sentence end.
        forward_nats: Cost under the forward LM, in nats: of every token and of each sentence's </S>.
        backward_nats: Cost under the backward LM, in nats: of every token and of each sentence's <S>.
        spelling_nats: Cost of spelling the unknown words, in nats.
        tokens: The cost of each token, if it was asked for.
    """

    num_sentences: int
    num_tokens: int
    num_unknown: int
    num_characters: int
    forward_nats: float
    backward_nats: float
    spelling_nats: float
    tokens: tuple[TokenScore, ...] | None = None

    @property
    def measure(self) -> TextMeasure:
        """The counts that the figures are computed from."""
        return TextMeasure(
            num_predictions=self.num_tokens + self.num_sentences,
            num_tokens=self.num_tokens,
            num_unknown=self.num_unknown,
            num_characters=self.num_characters,
            spelling_nats=self.spelling_nats,
        )

    @property
    def mean_nats(self) -> float:
        """Mean cost of the two directions, in nats."""
        return (self.forward_nats + self.backward_nats) / 2

    @property
    def bits_per_character(self) -> float | None:
        """Cost of the line and of spelling its unknown words, in bits per character; None for an empty line."""
        return self.measure.bits_per_character(self.mean_nats) if self.num_sentences else None

    @property
    def perplexity(self) -> float | None:
        """Perplexity, geometric mean of the two directions; None for an empty line."""
        return self.measure.perplexity(self.mean_nats) if self.num_sentences else None

    def as_record(self) -> list[Any]:
        """Return the values as JSON values, from which `of_record` makes the same score."""
        return [getattr(self, field.name) for field in fields(self)]

    @classmethod
    def of_record(cls, record: Sequence[Any]) -> "LineScore":
        """Return the score that `as_record` made this of."""
        values = dict(zip((field.name for field in fields(cls)), record, strict=True))
        if values["tokens"] is not None:
            values["tokens"] = tuple(TokenScore(*token) for token in values["tokens"])
        return cls(**values)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredLine:
    """A line of a text with its score.

    Attributes:
        text_number: Number of its text, from 0.
        number: Number of the line in its text, from 0.
        score: Its cost.
        difference: Bits per character under this model minus those under the other one; None without another model,
            and for an empty line.
    """

    text_number: int
    number: int
    score: LineScore
    difference: float | None = None

    def as_record(self) -> list[Any]:
        """Return the values as JSON values, from which `of_record` makes the same."""
        return [self.text_number, self.number, self.difference, self.score.as_record()]

    @classmethod
    def of_record(cls, record: Sequence[Any]) -> "ScoredLine":
        """Return the line that `as_record` made this of."""
        text_number, number, difference, score = record
        return cls(text_number=text_number, number=number, difference=difference, score=LineScore.of_record(score))
