"""The vocabulary and its files, vocab.data and vocab.counts."""

import hashlib
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Generic, TypeVar

from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.invocation import command, program
from elmo_zh.language import _
from elmo_zh.run.files import atomic_path
from elmo_zh.text.entries import Entries
from elmo_zh.text.script import HAN

BEGIN, END, UNKNOWN = SPECIALS = ("<S>", "</S>", "<UNK>")
BEGIN_ID, END_ID, UNKNOWN_ID = range(3)


class Vocabulary:
    """Tokens and their ids, which are line numbers in vocab.data, from 0: special tokens, then words."""

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
    """Read vocab.data; raise RunError if it lacks the special tokens, repeats a token, or has an empty line."""
    tokens = list(iter_lines(path, drop_mark=False))
    if tuple(tokens[:3]) != SPECIALS:
        raise RunError.unexpected(f"{path}: {[token[:20] for token in tokens[:3]]}", list(SPECIALS))
    known = {""}
    for number, token in enumerate(tokens, start=1):
        if token in known:
            message = _(
                "{path}: line {number} is empty or repeats an earlier line. Correct it or, in a run, recreate the file"
                " with: {command}"
            )
            raise RunError(message.format(path=path, number=number, command=f"{program()} vocab"))
        known.add(token)
    return Vocabulary(tokens)


def load_words(path: Path, entries: Entries | None = None) -> dict[str, int]:
    """Return the words of a file, one per line, with their first line numbers; skip special tokens and empty lines.

    `entries` prepares the words as the text is, and counts those that cannot occur in it.

    Raises:
        RunError: If there are no words.
    """
    lines = [(line, number) for number, line in enumerate(iter_lines(path), 1) if line.strip() and line not in SPECIALS]
    if entries is not None:
        prepared = ((entries.prepare(line, number), number) for line, number in lines)
        lines = [(word, number) for word, number in prepared if word]
    if not lines:
        raise RunError(_("{path} contains no words. Use a file with one word per line.").format(path=path))
    words: dict[str, int] = {}
    for word, number in lines:
        words.setdefault(word, number)
    return words


def prepare_vocabulary(vocabulary: Vocabulary, entries: Entries) -> Vocabulary:
    """Return the vocabulary of another program with its words prepared as the text is; rows stay where they are."""
    tokens, known = list(vocabulary.tokens), set(vocabulary.tokens)
    for row, word in islice(enumerate(vocabulary.tokens), len(SPECIALS), None):
        prepared = entries.prepare(word, row + 1) or word
        if prepared in known and prepared != word:
            entries.leave_out(row + 1, word, _("becomes {word}, which is another entry").format(word=prepared))
        else:
            tokens[row] = prepared
            known.add(prepared)
    return Vocabulary(tokens)


def is_word(token: str) -> bool:
    """Return whether a token has a letter, digit or Han character, unlike punctuation, symbols and emoji."""
    return any(character.isalnum() for character in token)


def save_counts(path: Path, counts: Iterable[tuple[str, int]]) -> None:
    """Write lines of word or character TAB count."""
    with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{name}\t{count}\n" for name, count in counts)


# No count of words has more digits, and Python refuses to parse thousands of them.
_MOST_DIGITS = 18


def iter_counts(path: Path) -> Iterator[tuple[str, int]]:
    """Yield what is before the last tab of each line, and the count after it, or -1 if that is not a count."""
    for line in iter_lines(path, drop_mark=False):
        name, _tab, count = line.rpartition("\t")
        yield name, int(count) if count.isdecimal() and len(count) <= _MOST_DIGITS else -1


def load_counts(path: Path, vocabulary: Vocabulary) -> list[int]:
    """Read vocab.counts; raise RunError unless its lines match the vocabulary and the counts of its words descend."""
    rows = list(iter_counts(path))
    counts = [count for _, count in rows]
    is_sorted = all(before >= after for before, after in pairwise(counts[len(SPECIALS) :]))
    if not is_sorted or -1 in counts or tuple(token for token, _ in rows) != vocabulary.tokens:
        raise RunError.unfit(path, "vocab.data", command("vocab", "--run", path.parent, "--force"))
    return counts


Word = TypeVar("Word", bound=Hashable)


class BoundedCounts(Generic[Word]):
    """Counts of frequent words, never too high; with too many words, rare ones are dropped (Manku and Motwani 2002)."""

    def __init__(self, most: int = 100_000) -> None:
        """Keep at most `most` distinct words."""
        self._most = most
        self.counts: Counter[Word] = Counter()

    def add(self, words: Iterable[Word] | Mapping[Word, int]) -> None:
        """Count more words, or add existing counts for them."""
        self.counts.update(words)
        if len(self.counts) > self._most:
            self.counts = Counter(dict(self.counts.most_common(self._most // 2)))
