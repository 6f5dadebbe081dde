"""The vocabulary and its files, vocab.data and vocab.counts."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.invocation import command, program
from elmo_zh.run.files import atomic_path
from elmo_zh.text.han import HAN

BEGIN, END, UNKNOWN = SPECIALS = ("<S>", "</S>", "<UNK>")
BEGIN_ID, END_ID, UNKNOWN_ID = range(3)


class Vocabulary:
    """Tokens and their ids: id r is line r of vocab.data, with special tokens first, then words by descending count."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tuple(tokens)
        # A text token that is spelled like a special token is an unknown word, not the special token.
        self._ids = {token: row for row, token in enumerate(self.tokens) if row >= len(SPECIALS)}
        self._longest = max(map(len, self._ids), default=0)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of text tokens; words outside the vocabulary get the id of <UNK>."""
        ids = self._ids
        return [ids.get(token, UNKNOWN_ID) for token in tokens]

    def split(self, tokens: Iterable[str], kept: Collection[str] = ()) -> list[str]:
        """Return tokens with each unknown one that has Han characters split into known words and single characters.

        Tokens in `kept` stay whole.
        """
        ids = self._ids
        return [
            part
            for token in tokens
            for part in ((token,) if token in ids or token in kept or not HAN.search(token) else self._parts(token))
        ]

    def find_subwords(self, word: str) -> list[str]:
        """Split a word into shorter words of the vocabulary, leaving out characters that are in none."""
        return [part for part in self._parts(word) if part in self and part != word]

    def _parts(self, word: str) -> Iterator[str]:
        """Yield the shorter words of the vocabulary in a word, longest match from the left, and other characters."""
        start = 0
        while start < len(word):
            longest = min(len(word) if start else len(word) - 1, start + self._longest)
            for end in range(longest, start, -1):
                if word[start:end] in self:
                    break
            else:
                end = start + 1
            yield word[start:end]
            start = end

    def digest(self) -> str:
        """Return the SHA-256 of vocab.data as `save` writes it."""
        content = "".join(f"{token}\n" for token in self.tokens)
        return f"sha256:{hashlib.sha256(content.encode('utf-8')).hexdigest()}"

    def save(self, path: Path) -> None:
        """Write vocab.data: one token per line."""
        with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{token}\n" for token in self.tokens)


def load_vocabulary(path: Path) -> Vocabulary:
    """Read vocab.data; raise RunError if it lacks the special tokens, repeats one, or has an empty line."""
    tokens = list(iter_lines(path, drop_mark=False))
    if tuple(tokens[:3]) != SPECIALS:
        raise RunError(
            f"{path}: the first three lines are {[token[:20] for token in tokens[:3]]}; expected {list(SPECIALS)}."
            " Without those lines, unknown words cannot be distinguished from padding. Make the file with:"
            f" {program()} vocab"
        )
    if len(set(tokens)) != len(tokens) or "" in tokens:
        token, count = Counter(tokens).most_common(1)[0]
        problem = f"the token {token!r} occurs {count} times" if count > 1 else "a line is empty"
        raise RunError(f"{path}: {problem}, so rows and words would not match. Make the file with: {program()} vocab")
    return Vocabulary(tokens)


def load_words(path: Path) -> list[str]:
    """Read a list of words, one per line, ignoring duplicates, special tokens and empty lines."""
    words = dict.fromkeys(line for line in iter_lines(path) if line and line not in SPECIALS)
    if not words:
        raise RunError(f"{path} contains no words. Give a file with one word per line.")
    return list(words)


def is_word(token: str) -> bool:
    """Return whether a token has a letter, digit or Han character, unlike punctuation, symbols and emoji."""
    return any(character.isalnum() for character in token)


def save_counts(vocabulary: Vocabulary, counts: Sequence[int], path: Path) -> None:
    """Write vocab.counts: token TAB count, in vocabulary order."""
    with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        for token, count in zip(vocabulary.tokens, counts, strict=True):
            file.write(f"{token}\t{count}\n")


# No count of words has more digits.
_MOST_DIGITS = 18


def is_count(text: str) -> bool:
    """Return whether a text is a number of at most 18 digits; Python refuses to parse thousands of digits."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def load_counts(path: Path, vocabulary: Vocabulary) -> list[int]:
    """Read vocab.counts; raise RunError unless its lines match the vocabulary and its counts descend."""
    counts: list[int] = []
    remedy = f"Make {path.name} and vocab.data again with: {command('vocab', '--run', path.parent, '--force')}"
    for row, line in enumerate(iter_lines(path, drop_mark=False)):
        token, _, number = line.rpartition("\t")
        if row >= len(vocabulary) or token != vocabulary.tokens[row] or not is_count(number):
            raise RunError(f"{path}: line {row + 1} ({line!r:.60}) does not match the vocabulary. {remedy}")
        counts.append(int(number))
        if row > len(SPECIALS) and counts[row] > counts[row - 1]:
            raise RunError(
                f"{path}: line {row + 1}: counts are not in descending order, which negative sampling requires."
                f" {remedy}"
            )
    if len(counts) != len(vocabulary):
        raise RunError(f"{path} has {len(counts)} lines, but the vocabulary has {len(vocabulary)} rows. {remedy}")
    return counts


# How many distinct words `BoundedCounts` counts by default.
MAX_WORDS = 100_000

Word = TypeVar("Word", bound=Hashable)


class BoundedCounts(Generic[Word]):
    """Counts of frequent words, never too high; with too many words, rare ones are dropped (Manku and Motwani 2002)."""

    def __init__(self, most: int = 0, on_drop: Callable[[Word, int], object] = lambda _word, _count: None) -> None:
        """Keep at most `most` distinct words, by default MAX_WORDS; call `on_drop` with each dropped word and count."""
        self._most, self._on_drop = most or MAX_WORDS, on_drop
        self.counts: Counter[Word] = Counter()

    def add(self, words: Iterable[Word] | Mapping[Word, int]) -> None:
        """Count more words, or add existing counts for them."""
        self.counts.update(words)
        if len(self.counts) > self._most:
            ranked = self.counts.most_common()
            self.counts = Counter(dict(ranked[: self._most // 2]))
            for word, count in ranked[self._most // 2 :]:
                self._on_drop(word, count)
