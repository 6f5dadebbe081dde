"""Read sentences ahead, so that those of similar length are computed together, in bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from elmo_zh.checks import check_list, check_sentence
from elmo_zh.text.alignment import TokenisedLine

# Enough to batch sentences of similar length and to reuse words, and soon computed.
WINDOW_SENTENCES, WINDOW_TOKENS = 2000, 20_000


@dataclass
class Window:
    """Consecutive sentences.

    Attributes:
        lines: The sentences, segmented.
        num_tokens: Number of their tokens.
        segmented: Whether any of them was given as tokens.
    """

    lines: list[TokenisedLine] = field(default_factory=list)
    num_tokens: int = 0
    segmented: bool = False

    @property
    def is_full(self) -> bool:
        """Whether the sentences can be computed."""
        return len(self.lines) >= WINDOW_SENTENCES or self.num_tokens >= WINDOW_TOKENS

    def add(self, sentence: str | Sequence[str], prepare: Callable[[str], TokenisedLine]) -> None:
        """Add a raw sentence, which `prepare` segments, or one of tokens."""
        line = prepare(sentence) if isinstance(sentence, str) else TokenisedLine.of_tokens(sentence)
        self.lines.append(line)
        self.num_tokens += len(line.tokens)
        self.segmented |= not isinstance(sentence, str)


def iter_windows(sentences: object, prepare: Callable[[str], TokenisedLine], call: str) -> Iterator[Window]:
    """Yield the sentences of an iterable in windows, the last one perhaps empty.

    Args:
        sentences: Raw sentences as strings, segmented ones as lists of tokens.
        prepare: Segments a raw sentence.
        call: The function that the user called, for messages.

    Raises:
        TypeError: If a single string is given, or anything but strings and lists of tokens.
    """
    window = Window()
    for place, given in enumerate(check_list(sentences, call, "sentences", "a list of sentences")):
        window.add(check_sentence(given, call, f"sentences[{place}]"), prepare)
        if window.is_full:
            yield window
            window = Window()
    yield window
