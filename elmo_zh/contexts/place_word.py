"""Find a word in a sentence, and cut the sentence so that the word is one token."""

from dataclasses import dataclass

from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import ElmoZhError


@dataclass(frozen=True)
class PlacedWord:
    """A sentence with one of its tokens.

    Attributes:
        tokens: The tokens of the sentence.
        place: The place of the word among them.
        is_recut: Whether the segmenter cuts the sentence in another way, in which the word is no token.
    """

    tokens: list[str]
    place: int
    is_recut: bool

    @property
    def token(self) -> str:
        """The word, as the model reads it."""
        return self.tokens[self.place]


def place_word(embedder: ElmoEmbedder, word: str, sentence: str, *, segmented: bool = False) -> PlacedWord:
    """Return the tokens of a sentence, one of which is the word: at its first occurrence as a token, else at its first.

    Where the segmenter cuts the sentence in another way, the text before the word and the text after it are segmented
    each by itself.

    Args:
        embedder: The model, which knows how raw text is segmented.
        word: The word, as in the sentence, or as the model reads it.
        sentence: The raw sentence.
        segmented: Its tokens are separated by spaces.

    Raises:
        ElmoZhError: If the word is not in the sentence.
        BundleError: If the bundle's segmenter is not installed, or not known.
    """
    tokens = embedder.prepare(sentence, segmented=segmented).tokens
    token = word if segmented else "".join(embedder.tokens(word))
    if token and token in tokens:
        return PlacedWord(tokens, tokens.index(token), is_recut=False)
    start = -1 if segmented or not token else sentence.find(word)
    if start < 0:
        shown = f" ({' '.join(tokens)})" if segmented else ""
        kind = "one of the tokens of" if segmented else "in"
        raise ElmoZhError(f"{word} is not {kind} the sentence {sentence!r}{shown}. Give a sentence that has the word.")
    before, after = embedder.tokens(sentence[:start]), embedder.tokens(sentence[start + len(word) :])
    return PlacedWord([*before, token, *after], len(before), is_recut=True)
