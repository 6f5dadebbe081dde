"""The segmenter jieba: a dictionary, and a hidden Markov model for words that are not in it."""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.run.files import file_digest
from elmo_zh.text.segmenters.jieba_cut import JiebaCut
from elmo_zh.text.segmenters.long_runs import limit_runs
from elmo_zh.text.segmenters.user_dictionary import load_user_dictionary

TAKES_USER_DICTIONARY = True


def build(config: TextConfig, user_dictionary: Path | None) -> Callable[[str], list[str]]:
    """Return jieba with a dictionary of its own, which other uses of jieba in the same process do not change.

    The words are jieba's, found in half the time (`elmo_zh.text.segmenters.jieba_cut`).

    Raises:
        CorpusError: If the user dictionary cannot be read.
    """
    import jieba

    class Tokenizer(jieba.Tokenizer):  # type: ignore[misc]
        """jieba without its cache file, which it would unmarshal from the shared temporary folder."""

        def initialize(self, *_: object) -> None:
            if not self.initialized:  # type: ignore[has-type]
                self.FREQ, self.total = self.gen_pfdict(self.get_dict_file())
                self.initialized = True

    tokenizer = Tokenizer()
    tokenizer.initialize()
    never_found: set[str] = set()
    if user_dictionary is not None:
        load_user_dictionary(user_dictionary, _word_adder(tokenizer, never_found))
    return limit_runs(JiebaCut(tokenizer, config.jieba_hmm, never_found))


def _word_adder(tokenizer: Any, never_found: set[str]) -> Callable[[str, int | None, str | None], None]:
    """Return the function that adds a word; it collects the words of count 0, which must not become tokens.

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
