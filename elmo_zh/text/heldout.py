"""Choose what is held out: by a hash of each paragraph's text, in one pass and bounded memory."""

import hashlib
from bisect import insort
from dataclasses import dataclass

from elmo_zh.config import TextConfig

_HASHES = 2**64
# A paragraph longer than this, such as a book in one line, would be most of what is held out.
_MAX_PARAGRAPH_SENTENCES = 200
_MAX_PARAGRAPH_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A segmented paragraph.

    Attributes:
        key: Hash of its characters, 0 to 2^64 - 1; equal for equal texts.
        sentences: One segmented sentence each, tokens joined by U+0020.
        num_tokens: Tokens in all of them.
    """

    key: int
    sentences: tuple[str, ...]
    num_tokens: int


def paragraph_key(sentences: tuple[str, ...]) -> int:
    """Return the hash of a paragraph's characters, white space left out, so that segmentation does not matter."""
    text = "".join(sentences).replace(" ", "")
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")


class HeldoutChoice:
    """Take paragraphs one by one and give each back as training or held-out text.

    Held out are the paragraphs with the lowest hashes: those below `heldout_share` of the hash range, and more
    of them while there are fewer than `heldout_min_sentences` (or a tenth of all sentences, if that is less); but
    never more than `heldout_max_tokens` or a fifth of the sentences, and never a paragraph of more than 200 sentences
    or a tenth of those tokens. Paragraphs of equal text fall on one side,
    and the order in which they come does not matter. Only possible candidates are kept in memory.
    """

    def __init__(self, config: TextConfig) -> None:
        self._share_end = int(config.heldout_share * _HASHES)
        self._min_sentences = config.heldout_min_sentences if config.heldout_share > 0 else 0
        self._max_tokens = config.heldout_max_tokens
        self._keys: list[int] = []
        self._groups: dict[int, list[Paragraph]] = {}
        self._bound = _HASHES
        self._num_sentences = 0
        self._kept_sentences = 0
        self._kept_tokens = 0

    def add(self, paragraph: Paragraph) -> list[Paragraph]:
        """Take a paragraph; return those, this one or earlier ones, that are now known to be training text."""
        self._num_sentences += len(paragraph.sentences)
        if paragraph.key >= self._bound or self._is_too_long(paragraph):
            return [paragraph]
        if paragraph.key not in self._groups:
            insort(self._keys, paragraph.key)
        self._groups.setdefault(paragraph.key, []).append(paragraph)
        self._kept_sentences += len(paragraph.sentences)
        self._kept_tokens += paragraph.num_tokens
        released: list[Paragraph] = []
        while self._keys and not self._last_may_stay(self._min_sentences):
            self._bound = self._keys[-1]
            released.extend(self._drop_last())
        return released

    def _is_too_long(self, paragraph: Paragraph) -> bool:
        return (
            len(paragraph.sentences) > _MAX_PARAGRAPH_SENTENCES
            or paragraph.num_tokens > _MAX_PARAGRAPH_SHARE * self._max_tokens
        )

    def finish(self) -> tuple[list[Paragraph], list[Paragraph]]:
        """Return the held-out paragraphs and those kept until now that turn out to be training text."""
        wanted = min(self._min_sentences, self._num_sentences // 10)
        released: list[Paragraph] = []
        while self._keys and not (self._last_may_stay(wanted) and self._kept_sentences * 5 <= self._num_sentences):
            released.extend(self._drop_last())
        return [paragraph for key in self._keys for paragraph in self._groups[key]], released

    def _last_may_stay(self, wanted_sentences: int) -> bool:
        last = self._keys[-1]
        before = self._kept_sentences - sum(len(paragraph.sentences) for paragraph in self._groups[last])
        return self._kept_tokens <= self._max_tokens and (last < self._share_end or before < wanted_sentences)

    def _drop_last(self) -> list[Paragraph]:
        group = self._groups.pop(self._keys.pop())
        self._kept_sentences -= sum(len(paragraph.sentences) for paragraph in group)
        self._kept_tokens -= sum(paragraph.num_tokens for paragraph in group)
        return group
