"""jieba: a dictionary, and a hidden Markov model for words that are not in it."""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elmo_zh.run.files import file_digest
from elmo_zh.text.segmenters.jieba_cut import JiebaCut
from elmo_zh.text.segmenters.user_dictionary import load_user_dictionary


def build_jieba(use_hmm: bool, user_dictionary: Path | None) -> Callable[[str], list[str]]:
    """Return jieba with a dictionary of its own, so that no other in the same process changes its words.

    The words are jieba's, found in half the time (`elmo_zh.text.segmenters.jieba_cut`).

    Raises:
        CorpusError: If the user dictionary cannot be read.
    """
    import jieba

    class Tokenizer(jieba.Tokenizer):  # type: ignore[misc]
        """jieba without the cache file that it would unmarshal from the shared temporary folder."""

        def initialize(self, *_: object) -> None:
            if not self.initialized:  # type: ignore[has-type]
                self.FREQ, self.total = self.gen_pfdict(self.get_dict_file())
                self.initialized = True

    tokenizer = Tokenizer()
    tokenizer.initialize()
    never_found: set[str] = set()
    if user_dictionary is not None:
        load_user_dictionary(user_dictionary, _word_adder(tokenizer, never_found))
    return JiebaCut(tokenizer, use_hmm, never_found)


def _word_adder(tokenizer: Any, never_found: set[str]) -> Callable[[str, int | None, str | None], None]:
    """Return the function that adds a word, and takes down those of count 0, which are never to be found.

    jieba itself takes them down for all its tokenizers together.
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


def describe_jieba() -> dict[str, str]:
    """Return jieba's version and the digest of its dictionary."""
    import jieba

    dictionary = Path(jieba.__file__).with_name("dict.txt")
    return {"version": importlib.metadata.version("jieba"), "dictionary": file_digest(dictionary)}
