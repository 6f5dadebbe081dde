"""Choose what is held out: by a hash of each paragraph's text, in parts or one pass, in bounded memory."""

import hashlib
import json
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.run.files import write_json

_HASHES = 2**64
# One text longer than this, such as a book in one line or a much repeated notice, would be most of what is held out.
_MAX_GROUP_SENTENCES = 200
_MAX_GROUP_SHARE = 0.1


@dataclass(frozen=True)
class Paragraph:
    """What the choice needs to know of a paragraph.

    Attributes:
        key: Hash of its characters, 0 to 2^64 - 1; equal for equal texts.
        num_sentences: Its sentences.
        num_tokens: Tokens in all of them.
    """

    key: int
    num_sentences: int
    num_tokens: int


def paragraph_key(sentences: Iterable[str]) -> int:
    """Return the hash of a paragraph's characters, white space left out, so that segmentation does not matter."""
    text = "".join(sentences).replace(" ", "")
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")


@dataclass
class Group:
    """Paragraphs of one text: one of them, and how many there are."""

    paragraph: Paragraph
    copies: int = 1

    @property
    def num_sentences(self) -> int:
        """Sentences of all of them."""
        return self.copies * self.paragraph.num_sentences

    @property
    def num_tokens(self) -> int:
        """Tokens of all of them."""
        return self.copies * self.paragraph.num_tokens


class HeldoutChoice:
    """Take paragraphs one by one, and tell in the end which texts are held out.

    Held out are the paragraphs with the lowest hashes: those below `heldout_share` of the hash range, and more
    of them while there are fewer than `heldout_min_sentences` (or a tenth of all sentences, if that is less); but
    never more than `heldout_max_tokens` or a fifth of the sentences, and never a text that makes up more than 200
    sentences or a tenth of those tokens, alone or by standing there again and again. Paragraphs of equal text fall on
    one side, and the order in which they come does not matter. Only possible candidates are kept in memory: different
    texts of twice what may be needed, since some can turn out to be repeated too often.

    Attributes:
        bound: Texts with this key or a higher one are not kept.
    """

    def __init__(self, config: TextConfig) -> None:
        self._share_end = int(config.heldout_share * _HASHES)
        self._min_sentences = config.heldout_min_sentences if config.heldout_share > 0 else 0
        self._max_tokens = config.heldout_max_tokens
        self._keys: list[int] = []
        self._groups: dict[int, Group] = {}
        self.bound = _HASHES
        self._num_sentences = 0
        # Of different texts only, so that what is kept does not depend on when their copies come.
        self._kept_sentences = 0
        self._kept_tokens = 0

    def add(self, paragraph: Paragraph) -> None:
        """Take a paragraph."""
        self._num_sentences += paragraph.num_sentences
        if paragraph.key < self.bound and not self._is_too_long(Group(paragraph)):
            self._add_group(Group(paragraph))

    def merge(self, groups: Iterable[Group], bound: int, num_sentences: int) -> None:
        """Take what another choice, of another part of the text, kept.

        What is chosen in the end is the same as if all paragraphs had been added to this one.

        Args:
            groups: The other's `candidates`.
            bound: The other's `bound`.
            num_sentences: Of all paragraphs that it was given.
        """
        self._num_sentences += num_sentences
        self.bound = min(self.bound, bound)
        while self._keys and self._keys[-1] >= self.bound:
            self._forget_last()
        for group in groups:
            if group.paragraph.key < self.bound:
                self._add_group(group)

    def _add_group(self, group: Group) -> None:
        key = group.paragraph.key
        if key in self._groups:
            self._groups[key].copies += group.copies
            return
        insort(self._keys, key)
        self._groups[key] = group
        self._kept_sentences += group.paragraph.num_sentences
        self._kept_tokens += group.paragraph.num_tokens
        while self._keys and not self._last_may_be_needed():
            # What comes later with a key as high need not be kept either.
            self.bound = self._keys[-1]
            self._forget_last()

    def _forget_last(self) -> None:
        group = self._groups.pop(self._keys.pop())
        self._kept_sentences -= group.paragraph.num_sentences
        self._kept_tokens -= group.paragraph.num_tokens

    def candidates(self) -> list[Group]:
        """Return what may be held out, by rising keys."""
        return [self._groups[key] for key in self._keys]

    def _last_may_be_needed(self) -> bool:
        last = self._keys[-1]
        before = self._kept_sentences - self._groups[last].paragraph.num_sentences
        return self._kept_tokens <= 2 * self._max_tokens and (
            last < self._share_end or before < 2 * self._min_sentences
        )

    def _is_too_long(self, group: Group) -> bool:
        return group.num_sentences > _MAX_GROUP_SENTENCES or group.num_tokens > _MAX_GROUP_SHARE * self._max_tokens

    def chosen(self) -> list[int]:
        """Return the keys of the texts that are held out, rising."""
        wanted = min(self._min_sentences, self._num_sentences // 10)
        heldout: list[int] = []
        num_sentences = num_tokens = 0
        for group in self.candidates():
            if self._is_too_long(group):
                continue
            if not (
                (group.paragraph.key < self._share_end or num_sentences < wanted)
                and num_tokens + group.num_tokens <= self._max_tokens
                and (num_sentences + group.num_sentences) * 5 <= self._num_sentences
            ):
                break
            heldout.append(group.paragraph.key)
            num_sentences += group.num_sentences
            num_tokens += group.num_tokens
        return heldout


def save_candidates(path: Path, choice: HeldoutChoice) -> None:
    """Write what a choice has kept."""
    groups = [
        [group.paragraph.key, group.paragraph.num_sentences, group.paragraph.num_tokens, group.copies]
        for group in choice.candidates()
    ]
    write_json(path, {"bound": choice.bound, "groups": groups})


def load_candidates(path: Path) -> tuple[int, list[Group]]:
    """Return the bound of a choice and what it had kept."""
    saved = json.loads(path.read_text(encoding="utf-8"))
    groups = [Group(Paragraph(key, sentences, tokens), copies) for key, sentences, tokens, copies in saved["groups"]]
    return saved["bound"], groups
