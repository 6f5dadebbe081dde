"""jieba's segmentation with jieba's own dictionary and hidden Markov model, in fewer steps.

The words are those of `jieba.Tokenizer.cut` (jieba 0.42.1), which builds a graph of all words in a run and then finds
the best path. Here both are one loop, logarithms are taken once per dictionary word, and results of the hidden Markov
model are cached. Weights are added in the same order, so ties are resolved the same way.
"""

from collections.abc import Callable, Collection
from functools import lru_cache
from math import log
from typing import Any

from elmo_zh.text.segmenters.jieba_hmm import NewWords

# Cached runs of single characters: most occur again and again. About 10 MB.
_CACHED_RUNS = 2**15


class JiebaCut:
    """Segmenter that returns what `tokenizer.lcut(sentence, HMM=use_hmm)` returns.

    Args:
        tokenizer: An initialised `jieba.Tokenizer` to which no more words are added.
        use_hmm: Let the hidden Markov model find words that are not in the dictionary.
        never_found: Words that the model must not find.
    """

    def __init__(self, tokenizer: Any, use_hmm: bool, never_found: Collection[str] = ()) -> None:
        from jieba import re_eng, re_han_default, re_skip_default

        self._runs, self._white_space, self._latin = re_han_default, re_skip_default, re_eng
        self._frequencies: dict[str, int] = tokenizer.FREQ
        log_total = log(tokenizer.total)
        # A prefix of words that is not a word itself has no weight.
        # Few counts are those of many words.
        of_count = {count: log(count) - log_total if count else None for count in set(self._frequencies.values())}
        self._weights = {word: of_count[count] for word, count in self._frequencies.items()}
        self._weight_of_others = log(1) - log_total
        self._new_words = lru_cache(_CACHED_RUNS)(NewWords(never_found))
        self._cut_run: Callable[[str, list[str]], None] = self._cut_with_hmm if use_hmm else self._cut_without_hmm

    def __call__(self, sentence: str) -> list[str]:
        """Return the words of a sentence, including white space, each character of it as a word."""
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
        weights, length = self._weights, len(run)
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
                best, best_end = self._weight_of_others + scores[start + 1], start + 1
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
        elif self._frequencies.get(run):
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
