"""jieba: a dictionary, and a hidden Markov model for words that are not in it."""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

from elmo_zh.files import file_digest
from elmo_zh.text.user_dictionary import load_user_dictionary


def build_jieba(use_hmm: bool, user_dictionary: Path | None) -> Callable[[str], list[str]]:
    """Return jieba with a dictionary of its own, so that no other in the same process changes its words.

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
    if user_dictionary is not None:
        load_user_dictionary(user_dictionary, tokenizer.add_word)

    def segment(sentence: str) -> list[str]:
        tokens: list[str] = tokenizer.lcut(sentence, cut_all=False, HMM=use_hmm)
        return tokens

    return segment


def describe_jieba() -> dict[str, str]:
    """Return jieba's version and the digest of its dictionary."""
    import jieba

    dictionary = Path(jieba.__file__).with_name("dict.txt")
    return {"version": importlib.metadata.version("jieba"), "dictionary": file_digest(dictionary)}
