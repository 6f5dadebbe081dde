"""The vocabulary: which words have a row, and the files vocab.data and vocab.counts."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import VocabConfig
from elmo_zh.errors import RunError
from elmo_zh.files import atomic_path
from elmo_zh.reporter import Reporter
from elmo_zh.text.corpus import iter_lines
from elmo_zh.text.segment import iter_sentences

BEGIN, END, UNKNOWN = SPECIALS = ("<S>", "</S>", "<UNK>")
BEGIN_ID, END_ID, UNKNOWN_ID = range(3)


class Vocabulary:
    """Tokens and their ids: id r is line r of vocab.data, the specials first, then by falling count."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tuple(tokens)
        # A token of the text that is spelled like a special is an unknown word, never the special itself.
        self._ids = {token: row for row, token in enumerate(self.tokens) if row >= len(SPECIALS)}

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of text tokens, that of <UNK> for words outside the vocabulary."""
        ids = self._ids
        return [ids.get(token, UNKNOWN_ID) for token in tokens]

    def digest(self) -> str:
        """Return the SHA-256 of vocab.data as this vocabulary is written."""
        content = "".join(f"{token}\n" for token in self.tokens)
        return f"sha256:{hashlib.sha256(content.encode('utf-8')).hexdigest()}"

    def save(self, path: Path) -> None:
        """Write vocab.data: one token a line."""
        with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{token}\n" for token in self.tokens)


def load_vocabulary(path: Path) -> Vocabulary:
    """Read vocab.data.

    Raises:
        RunError: If the specials are not the first three lines, a token stands twice or a line is empty.
    """
    tokens = list(iter_lines(path, drop_mark=False))
    if tuple(tokens[:3]) != SPECIALS:
        raise RunError(
            f"{path}: the first three lines are {[token[:20] for token in tokens[:3]]}, expected {list(SPECIALS)}."
            " Without them unknown words cannot be told from padding; make the file with: elmo-zh vocab"
        )
    if len(set(tokens)) != len(tokens) or "" in tokens:
        token, count = Counter(tokens).most_common(1)[0]
        what = f"the token {token!r} stands {count} times" if count > 1 else "a line is empty"
        raise RunError(f"{path}: {what}, so rows and words would not agree. Make the file with: elmo-zh vocab")
    return Vocabulary(tokens)


@dataclass(frozen=True, kw_only=True)
class VocabularyCounts:
    """A vocabulary and how often its tokens stand in the training text.

    Attributes:
        vocabulary: The tokens.
        counts: One for each row. <S> and </S> count sentences, <UNK> counts words outside the vocabulary.
        num_distinct_words: Different words in the training text, known or not.
        unknown_words: The words outside the vocabulary with their counts.
    """

    vocabulary: Vocabulary
    counts: Sequence[int]
    num_distinct_words: int
    unknown_words: Mapping[str, int]

    @property
    def coverage(self) -> float:
        """Share of the training tokens that are in the vocabulary."""
        known = sum(self.counts[len(SPECIALS) :])
        return known / max(1, known + self.counts[UNKNOWN_ID])

    @property
    def num_absent(self) -> int:
        """Words of the vocabulary that do not stand in the training text."""
        return list(self.counts[len(SPECIALS) :]).count(0)


def build_vocabulary(
    train_files: Sequence[Path], config: VocabConfig, reporter: Reporter, given: Iterable[str] = ()
) -> VocabularyCounts:
    """Count the tokens of segmented files and rank words by falling count, ties in the order of their code points.

    Args:
        train_files: Segmented training text.
        config: Which words get a row: the most frequent, and with `words` none but the given ones.
        reporter: Where to tell.
        given: Words that get a row in any case, also those that the text lacks; their count is then 0.
    """
    counter: Counter[str] = Counter()
    num_sentences = 0
    with reporter.progress("vocab", unit="tokens") as progress:
        for sentence in iter_sentences(train_files):
            counter.update(sentence)
            num_sentences += 1
            progress.update(len(sentence))
    words = _choose_words(counter, config, set(given) - set(SPECIALS))
    kept = set(words)
    unknown = {word: counter[word] for word in sorted(counter, key=_rank(counter)) if word not in kept}
    return VocabularyCounts(
        vocabulary=Vocabulary((*SPECIALS, *words)),
        counts=(num_sentences, num_sentences, sum(unknown.values()), *(counter[word] for word in words)),
        num_distinct_words=len(counter),
        unknown_words=unknown,
    )


def _choose_words(counter: Counter[str], config: VocabConfig, given: set[str]) -> list[str]:
    """Return the given words and, unless they are all there may be, the most frequent others, as rows want them."""
    added: list[str] = []
    if not config.words:
        others = counter.keys() - given - set(SPECIALS)
        frequent = sorted((word for word in others if counter[word] >= config.min_count), key=_rank(counter))
        added = frequent[: max(0, config.size - len(SPECIALS) - len(given))] if config.size else frequent
    return sorted([*given, *added], key=_rank(counter))


def _rank(counter: Counter[str]) -> Callable[[str], tuple[int, str]]:
    return lambda word: (-counter[word], word)


def load_words(path: Path) -> list[str]:
    """Read a list of words, one a line, each once; specials and empty lines are passed over.

    Raises:
        RunError: If there is no word.
    """
    words = dict.fromkeys(line for line in iter_lines(path) if line and line not in SPECIALS)
    if not words:
        raise RunError(f"{path} holds no word. Give a file with one word a line.")
    return list(words)


def require_words(built: VocabularyCounts, config: VocabConfig, text: Path, source: Path | None) -> None:
    """Raise RunError if no word of `text`, the training text's folder, has a row; `source` gave words, if any did."""
    if len(built.vocabulary) == len(SPECIALS):
        raise RunError(
            f"No word stands {config.min_count} times in {text}, so the vocabulary would be empty."
            " Give more text, or --set vocab.min_count=1"
        )
    if not built.coverage:
        raise RunError(
            f"No word of {source} stands in {text}. Is it one word a line, of the same language, script and segmenter?"
        )


def report_given_words(
    built: VocabularyCounts, config: VocabConfig, num_given: int, source: Path, reporter: Reporter
) -> None:
    """Tell what became of the words of a bundle or a file, and whether other words of the text got a row."""
    rows = len(built.vocabulary)
    num_added = rows - len(SPECIALS) - num_given
    added = "no others have a row" if config.words else f"{num_added:,} words of the text are added"
    reporter.note(
        f"vocab: of the {num_given:,} words of {source}, {built.num_absent:,} do not stand in the text; {added}."
    )
    others = ((word, count) for word, count in built.unknown_words.items() if word not in SPECIALS)
    left_out = sum(count >= config.min_count for _, count in others)
    if config.init and left_out and not num_added:
        reporter.warn(
            f"vocab.size = {config.size} leaves no room beside the {rows} rows of {source}, so {left_out:,} words of"
            f" the text get none. To give them rows: --set vocab.size={rows + left_out}"
        )


def save_counts(vocabulary: Vocabulary, counts: Sequence[int], path: Path) -> None:
    """Write vocab.counts: token TAB count, in the order of the vocabulary."""
    with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        for token, count in zip(vocabulary.tokens, counts, strict=True):
            file.write(f"{token}\t{count}\n")


def load_counts(path: Path, vocabulary: Vocabulary) -> list[int]:
    """Read vocab.counts and check it against the vocabulary.

    Raises:
        RunError: If its tokens are not the vocabulary's, a count is no number, or counts do not fall.
    """
    counts: list[int] = []
    remedy = f"Make both files again with: elmo-zh vocab --run {path.parent} --force"
    for row, line in enumerate(iter_lines(path, drop_mark=False)):
        token, _, number = line.rpartition("\t")
        if row >= len(vocabulary) or token != vocabulary.tokens[row] or not number.isdecimal():
            raise RunError(f"{path}: line {row + 1} ({line!r}) does not belong to the vocabulary. {remedy}")
        counts.append(int(number))
        if row > len(SPECIALS) and counts[row] > counts[row - 1]:
            raise RunError(f"{path}: line {row + 1}: counts do not fall, as sampling negatives needs. {remedy}")
    if len(counts) != len(vocabulary):
        raise RunError(f"{path}: {len(counts)} lines, but the vocabulary has {len(vocabulary)}. {remedy}")
    return counts
