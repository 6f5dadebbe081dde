"""Choose the held-out text: by a hash of each paragraph's text, in bounded memory, shard by shard or in one pass."""

import hashlib
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.run.files import read_json, write_json

_HASHES = 2**64
# A longer text, such as a book in one line or an often repeated notice, would be most of the held-out text.
_MAX_TEXT_SENTENCES = 200
_MAX_TEXT_FRACTION = 0.1


@dataclass(frozen=True)
class Paragraph:
    """Description of a paragraph, for the choice.

    Attributes:
        key: Hash of its characters, 0 to 2^64 - 1; equal for equal texts.
        num_sentences: Number of its sentences.
        num_tokens: Number of tokens in all of them.
    """

    key: int
    num_sentences: int
    num_tokens: int


def paragraph_key(sentences: Iterable[str]) -> int:
    """Return the hash of a paragraph's characters, without white space so that segmentation does not matter."""
    text = "".join(sentences).replace(" ", "")
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")


@dataclass
class EqualParagraphs:
    """All paragraphs of equal text: one of them, and the number of copies."""

    paragraph: Paragraph
    copies: int = 1

    @property
    def num_sentences(self) -> int:
        """Number of sentences in all copies."""
        return self.copies * self.paragraph.num_sentences

    @property
    def num_tokens(self) -> int:
        """Number of tokens in all copies."""
        return self.copies * self.paragraph.num_tokens


class HeldoutChoice:
    """Takes paragraphs one by one and then says which texts are held out.

    The paragraphs with the lowest hashes are held out: those in the lowest `heldout_share` of the hash range, and more
    while there are fewer than `heldout_min_sentences` (or a tenth of all sentences, if that is less). Never held out
    are more than `heldout_max_tokens`, more than a fifth of the sentences, or a text whose copies together have more
    than 200 sentences or a tenth of those tokens. All paragraphs of equal text are on the same side, and the order in
    which paragraphs are added does not matter. Only possible candidates stay in memory: different texts of up to twice
    the size that may be needed, since some may turn out to be repeated too often.

    Attributes:
        bound: Texts with this key or a higher one are not kept.
    """

    def __init__(self, config: TextConfig) -> None:
        self._share_end = int(config.heldout_share * _HASHES)
        self._min_sentences = config.heldout_min_sentences if config.heldout_share > 0 else 0
        self._max_tokens = config.heldout_max_tokens
        self._keys: list[int] = []
        self._texts: dict[int, EqualParagraphs] = {}
        self.bound = _HASHES
        self._num_sentences = 0
        # Each different text counts once, so that what is kept does not depend on when its copies are added.
        self._kept_sentences = 0
        self._kept_tokens = 0

    def add(self, paragraph: Paragraph) -> None:
        """Add a paragraph."""
        self._num_sentences += paragraph.num_sentences
        if paragraph.key < self.bound and not self._is_too_long(EqualParagraphs(paragraph)):
            self._add_text(EqualParagraphs(paragraph))

    def merge(self, candidates: Iterable[EqualParagraphs], bound: int, num_sentences: int) -> None:
        """Add what a choice of another shard of the text has kept.

        The final choice is the same as if all paragraphs had been added to this one.

        Args:
            candidates: The other choice's `candidates`.
            bound: The other choice's `bound`.
            num_sentences: Number of sentences in all paragraphs that were added to the other choice.
        """
        self._num_sentences += num_sentences
        self.bound = min(self.bound, bound)
        while self._keys and self._keys[-1] >= self.bound:
            self._drop_last()
        for text in candidates:
            if text.paragraph.key < self.bound:
                self._add_text(text)

    def _add_text(self, text: EqualParagraphs) -> None:
        key = text.paragraph.key
        if key in self._texts:
            self._texts[key].copies += text.copies
            return
        insort(self._keys, key)
        self._texts[key] = text
        self._kept_sentences += text.paragraph.num_sentences
        self._kept_tokens += text.paragraph.num_tokens
        while self._keys and not self._last_may_be_needed():
            # A later text with a key this high is not needed either.
            self.bound = self._keys[-1]
            self._drop_last()

    def _drop_last(self) -> None:
        text = self._texts.pop(self._keys.pop())
        self._kept_sentences -= text.paragraph.num_sentences
        self._kept_tokens -= text.paragraph.num_tokens

    def candidates(self) -> list[EqualParagraphs]:
        """Return the texts that may be held out, sorted by key."""
        return [self._texts[key] for key in self._keys]

    def _last_may_be_needed(self) -> bool:
        last = self._keys[-1]
        before = self._kept_sentences - self._texts[last].paragraph.num_sentences
        return self._kept_tokens <= 2 * self._max_tokens and (
            last < self._share_end or before < 2 * self._min_sentences
        )

    def _is_too_long(self, text: EqualParagraphs) -> bool:
        return text.num_sentences > _MAX_TEXT_SENTENCES or text.num_tokens > _MAX_TEXT_FRACTION * self._max_tokens

    def chosen(self) -> list[int]:
        """Return the keys of the held-out texts, sorted."""
        wanted = min(self._min_sentences, self._num_sentences // 10)
        heldout: list[int] = []
        num_sentences = num_tokens = 0
        for text in self.candidates():
            if self._is_too_long(text):
                continue
            if not (
                (text.paragraph.key < self._share_end or num_sentences < wanted)
                and num_tokens + text.num_tokens <= self._max_tokens
                and (num_sentences + text.num_sentences) * 5 <= self._num_sentences
            ):
                break
            heldout.append(text.paragraph.key)
            num_sentences += text.num_sentences
            num_tokens += text.num_tokens
        return heldout


def save_candidates(path: Path, choice: HeldoutChoice) -> None:
    """Write what a choice has kept."""
    rows = [
        [text.paragraph.key, text.paragraph.num_sentences, text.paragraph.num_tokens, text.copies]
        for text in choice.candidates()
    ]
    write_json(path, {"bound": choice.bound, "groups": rows})


def load_candidates(path: Path) -> tuple[int, list[EqualParagraphs]]:
    """Return the bound of a choice and what it has kept."""
    saved = read_json(path)
    candidates = [
        EqualParagraphs(Paragraph(key, sentences, tokens), copies) for key, sentences, tokens, copies in saved["groups"]
    ]
    return saved["bound"], candidates
