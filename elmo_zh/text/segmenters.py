"""Segmenters: from a normalised sentence to its tokens."""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.errors import CorpusError
from elmo_zh.files import file_digest

Segmenter = Callable[[str], list[str]]


def build_segmenter(config: TextConfig, user_dictionary: Path | None = None) -> Segmenter:
    """Return the function from a normalised sentence to its tokens.

    No token is empty or holds U+0020, and together they hold all other characters of the sentence in order.

    Args:
        config: Names the segmenter.
        user_dictionary: A jieba user dictionary, or None.

    Raises:
        CorpusError: If the user dictionary cannot be read.
    """
    if config.segmenter == "jieba":
        return _build_jieba(config.jieba_hmm, user_dictionary)
    if config.segmenter == "character":
        return lambda sentence: [character for character in sentence if character != " "]
    return split_tokens


def split_tokens(sentence: str) -> list[str]:
    """Return the tokens of segmented text: split at U+0020 and nothing else."""
    return [token for token in sentence.split(" ") if token]


def _build_jieba(use_hmm: bool, user_dictionary: Path | None) -> Segmenter:
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
        try:
            with user_dictionary.open("rb") as file:
                tokenizer.load_userdict(file)
        except (ValueError, OSError) as error:
            raise CorpusError(
                f"{user_dictionary} is not a jieba user dictionary ({error})."
                " Each line is a word, then optionally a count and a tag, split by spaces, in UTF-8."
            ) from None

    def segment(sentence: str) -> list[str]:
        tokens = tokenizer.lcut(sentence, cut_all=False, HMM=use_hmm)
        # jieba passes white space on as tokens, and joins some runs of signs with a space between them.
        return [token for piece in tokens for token in piece.split(" ") if token]

    return segment


def describe_segmenter(config: TextConfig, user_dictionary: Path | None = None) -> dict[str, str]:
    """Return name, version and dictionary digest: what has to be equal for equal tokens."""
    described = {"name": config.segmenter, "version": "1"}
    if config.segmenter == "jieba":
        import jieba

        described["version"] = importlib.metadata.version("jieba")
        described["dictionary"] = file_digest(Path(jieba.__file__).with_name("dict.txt"))
    if user_dictionary is not None:
        described["user_dictionary"] = file_digest(user_dictionary)
    return described
