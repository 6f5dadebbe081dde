"""The segmenter jieba: a dictionary, plus a hidden Markov model for words that are not in it."""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

from elmo_zh.config import TextConfig
from elmo_zh.run.files import file_digest
from elmo_zh.text.segmenters.jieba_cut import JiebaCut, Words
from elmo_zh.text.segmenters.long_runs import limit_runs
from elmo_zh.text.segmenters.user_dictionary import load_user_dictionary

TAKES_USER_DICTIONARY = True
# First letters of jieba's tags of conjunctions, adverbs, numbers, prepositions, classifiers, pronouns and the like.
_FUNCTION_TAGS = "cdefhkmopqrtuwxy"
# jieba's words, by the name of their file, while a segmenter has them: 100 MB, and half a second to read them.
_in_use: WeakValueDictionary[str, Words] = WeakValueDictionary()


def build(config: TextConfig, user_dictionary: Path | None) -> Callable[[str], list[str]]:
    """Return jieba with its own dictionary, unaffected by other uses of jieba in the same process.

    The words are jieba's, found in half the time (`elmo_zh.text.segmenters.jieba_cut`).
    """
    words = _words_of_jieba()
    never_found: set[str] = set()
    if user_dictionary is not None:
        words = _with_words_of_user(words, user_dictionary, never_found)
    return limit_runs(JiebaCut(words, config.jieba_hmm, never_found))


def _words_of_jieba() -> Words:
    import jieba

    words = _in_use.get(jieba.DEFAULT_DICT_NAME)
    if words is None:
        words = Words.of(*read_dictionary(jieba.Tokenizer().get_dict_file()))
        _in_use[jieba.DEFAULT_DICT_NAME] = words
    return words


def _with_words_of_user(words: Words, path: Path, never_found: set[str]) -> Words:
    """Return the words plus a user dictionary's words; words that must not be found are added to `never_found`."""
    import jieba

    class Tokenizer(jieba.Tokenizer):  # type: ignore[misc]
        """jieba without its cache file, which it would unmarshal from the shared temporary folder."""

        def initialize(self, *_: object) -> None:
            if not self.initialized:  # type: ignore[has-type]
                self.FREQ, self.total = dict(words.counts), words.total
                self.initialized = True

    tokenizer = Tokenizer()
    tokenizer.initialize()
    load_user_dictionary(path, _word_adder(tokenizer, never_found))
    return Words.of(tokenizer.FREQ, tokenizer.total)


def read_dictionary(file: IO[bytes]) -> tuple[dict[str, int], int]:
    """Return each word with its count, and the sum, like `jieba.Tokenizer.gen_pfdict` but in half the time.

    Prefixes that are not words themselves have the count 0. The file is closed.
    """
    with file:
        fields = file.read().decode("utf-8").split()
    words, counts = fields[0::3], [int(count) for count in fields[1::3]]
    found = dict(zip(words, counts, strict=True))
    for word in words:
        # The beginnings of a word that is there have been added, or will be.
        beginning = word[:-1]
        while beginning and beginning not in found:
            found[beginning] = 0
            beginning = beginning[:-1]
    return found, sum(counts)


def jieba_function_words() -> frozenset[str]:
    """Return the words in jieba's dictionary that are function words by their tags, such as 我们, 一个 and 因为."""
    import jieba

    with jieba.Tokenizer().get_dict_file() as file:
        fields = file.read().decode("utf-8").split()
    return frozenset(word for word, tag in zip(fields[0::3], fields[2::3], strict=True) if tag[0] in _FUNCTION_TAGS)


def _word_adder(tokenizer: Any, never_found: set[str]) -> Callable[[str, int | None, str | None], None]:
    """Return the function that adds a word; it collects words of count 0, which must not become tokens.

    jieba itself keeps one list of these for all its tokenizers.
    """
    from jieba import finalseg

    def add_word(word: str, count: int | None, tag: str | None) -> None:
        is_known = word in finalseg.Force_Split_Words
        tokenizer.add_word(word, count, tag)
        if word in finalseg.Force_Split_Words:
            never_found.add(word)
            if not is_known:
                finalseg.Force_Split_Words.discard(word)

    return add_word


def describe() -> dict[str, str]:
    """Return jieba's version and the digest of its dictionary."""
    import jieba

    dictionary = Path(jieba.__file__).with_name("dict.txt")
    return {"version": importlib.metadata.version("jieba"), "dictionary": file_digest(dictionary)}
