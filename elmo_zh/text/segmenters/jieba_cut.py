"""jieba's segmentation in fewer steps, with jieba's own dictionary and hidden Markov model.

The words equal `jieba.Tokenizer.cut`'s (jieba 0.42.1), which builds a graph of all words in a run and then finds
the best path. Here both are one loop, logarithms are taken once per dictionary word, and results of the hidden Markov
model are cached. Weights are added in the same order, so ties are resolved the same way.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import log


class NewWords:
    """Finds words in a run of characters; words in `never_found` are split into characters again."""

    def __init__(self, never_found: Collection[str] = ()) -> None:
        from jieba import finalseg

        self._never_found = frozenset(never_found)
        self._han, self._latin = finalseg.re_han, finalseg.re_skip
        self._least = least = finalseg.MIN_FLOAT
        self._emitted = [finalseg.emit_P[state] for state in "BMES"]
        self._first = [finalseg.start_P[state] for state in "BMES"]
        # Possible transitions: from B and M to E and M, from E and S to B and S.
        moves = ("BE", "BM", "ME", "MM", "EB", "ES", "SB", "SS")
        self._moves = [finalseg.trans_P[move[0]].get(move[1], least) for move in moves]

    def __call__(self, run: str) -> tuple[str, ...]:
        """Return the words."""
        return tuple(self._iter_words(run))

    def _iter_words(self, run: str) -> Iterator[str]:
        # The pattern is a group, so runs of Han characters have odd indices.
        for number, part in enumerate(self._han.split(run)):
            if number % 2:
                yield from self._words_of_run(part)
            else:
                yield from filter(None, self._latin.split(part))

    def _words_of_run(self, run: str) -> Iterator[str]:
        start = 0
        for end in self._word_ends(run):
            word = run[start:end]
            if word in self._never_found:
                yield from word
            else:
                yield word
            start = end

    def _word_ends(self, run: str) -> list[int]:
        """Return where each word ends on the most likely path through a run."""
        least = self._least
        begins, middles, ends, singles = self._emitted
        be, bm, me, mm, eb, es, sb, ss = self._moves
        b, m, e, s = (start + some.get(run[0], least) for start, some in zip(self._first, self._emitted, strict=True))
        # For each position: whether B came from S, M from M, E from M and S from S.
        came: list[tuple[bool, bool, bool, bool]] = []
        for character in run[1:]:
            emitted_b, emitted_m = begins.get(character, least), middles.get(character, least)
            emitted_e, emitted_s = ends.get(character, least), singles.get(character, least)
            b_from_e, b_from_s = e + eb + emitted_b, s + sb + emitted_b
            m_from_b, m_from_m = b + bm + emitted_m, m + mm + emitted_m
            e_from_b, e_from_m = b + be + emitted_e, m + me + emitted_e
            s_from_e, s_from_s = e + es + emitted_s, s + ss + emitted_s
            steps = b_from_s >= b_from_e, m_from_m >= m_from_b, e_from_m >= e_from_b, s_from_s >= s_from_e
            came.append(steps)
            b = b_from_s if steps[0] else b_from_e
            m = m_from_m if steps[1] else m_from_b
            e = e_from_m if steps[2] else e_from_b
            s = s_from_s if steps[3] else s_from_e
        return _follow_back(came, "S" if s >= e else "E")


def _follow_back(came: list[tuple[bool, bool, bool, bool]], state: str) -> list[int]:
    """Return the index after each word, traced back from the last state through the predecessor of each state."""
    ends = []
    for place in range(len(came), -1, -1):
        if state in "ES":
            ends.append(place + 1)
        if place:
            b_from_s, m_from_m, e_from_m, s_from_s = came[place - 1]
            if state in "BS":
                state = "S" if (b_from_s if state == "B" else s_from_s) else "E"
            else:
                state = "M" if (m_from_m if state == "M" else e_from_m) else "B"
    return ends[::-1]


# Cached runs of single characters: most occur again and again. About 10 MB.
_CACHED_RUNS = 2**15


@dataclass(frozen=True, eq=False)
class Words:
    """The words of a dictionary that no longer changes.

    Attributes:
        counts: The count of each word; 0 for a prefix that is not a word itself.
        weights: The logarithm of each word's share of the total; None for such a prefix.
        weight_of_others: The weight of a character that is not a word.
    """

    counts: Mapping[str, int]
    total: int
    weights: Mapping[str, float | None]
    weight_of_others: float

    @classmethod
    def of(cls, counts: Mapping[str, int], total: int) -> "Words":
        """Return words with their counts: FREQ and total of an initialised `jieba.Tokenizer`."""
        log_total = log(total)
        # Many words share few counts.
        of_count = {count: log(count) - log_total if count else None for count in set(counts.values())}
        weights = dict(zip(counts, map(of_count.__getitem__, counts.values()), strict=True))
        return cls(counts, total, weights, log(1) - log_total)


class JiebaCut:
    """A segmenter with the same results as `lcut(sentence, HMM=use_hmm)` of a `jieba.Tokenizer` with the same words.

    The hidden Markov model finds words that are not in the dictionary, except those `never_found`.
    """

    def __init__(self, words: Words, use_hmm: bool, never_found: Collection[str] = ()) -> None:
        from jieba import re_eng, re_han_default, re_skip_default

        self._runs, self._white_space, self._latin = re_han_default, re_skip_default, re_eng
        self._words = words
        self._new_words = lru_cache(_CACHED_RUNS)(NewWords(never_found))
        self._cut_run: Callable[[str, list[str]], None] = self._cut_with_hmm if use_hmm else self._cut_without_hmm

    def __call__(self, sentence: str) -> list[str]:
        """Return the words of a sentence; every white space character is a word of its own."""
        words: list[str] = []
        # The pattern is a group, so the runs that words are made of have odd indices.
        for number, run in enumerate(self._runs.split(sentence)):
            if number % 2:
                self._cut_run(run, words)
            elif run:
                for part in self._white_space.split(run):
                    if self._white_space.match(part):
                        words.append(part)
                    else:
                        words.extend(part)
        return words

    def _best_ends(self, run: str) -> list[int]:
        """Return, for each position in a run, the end of the word that starts there on the best path."""
        weights, length = self._words.weights, len(run)
        ends, scores = [0] * length, [0.0] * (length + 1)
        for start in range(length - 1, -1, -1):
            end, best_end, best = start + 1, 0, 0.0
            part = run[start]
            while part in weights:
                weight = weights[part]
                if weight is not None:
                    score = weight + scores[end]
                    if not best_end or score >= best:
                        best, best_end = score, end
                if end == length:
                    break
                end += 1
                part = run[start:end]
            if not best_end:
                best, best_end = self._words.weight_of_others + scores[start + 1], start + 1
            scores[start], ends[start] = best, best_end
        return ends

    def _cut_with_hmm(self, run: str, words: list[str]) -> None:
        ends, length = self._best_ends(run), len(run)
        # Start of the current single characters, which go to the model together.
        place = begun = 0
        while place < length:
            end = ends[place]
            if end - place > 1:
                if begun < place:
                    self._add_singles(run[begun:place], words)
                words.append(run[place:end])
                begun = end
            place = end
        if begun < length:
            self._add_singles(run[begun:], words)

    def _add_singles(self, run: str, words: list[str]) -> None:
        if len(run) == 1:
            words.append(run)
        elif self._words.counts.get(run):
            words.extend(run)
        else:
            words.extend(self._new_words(run))

    def _cut_without_hmm(self, run: str, words: list[str]) -> None:
        ends, length = self._best_ends(run), len(run)
        place, latin = 0, ""
        while place < length:
            end = ends[place]
            word = run[place:end]
            if len(word) == 1 and self._latin.match(word):
                latin += word
            else:
                words.extend(filter(None, (latin, word)))
                latin = ""
            place = end
        if latin:
            words.append(latin)
