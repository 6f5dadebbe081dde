"""Segmenters: from a normalised sentence to its tokens."""

from collections.abc import Callable
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.run.files import file_digest
from elmo_zh.text.script import describe_script
from elmo_zh.text.segmenters.jieba import build_jieba, describe_jieba
from elmo_zh.text.segmenters.long_runs import limit_runs
from elmo_zh.text.segmenters.rjieba import build_rjieba, describe_rjieba

Segmenter = Callable[[str], list[str]]


def build_segmenter(config: TextConfig, user_dictionary: Path | None = None) -> Segmenter:
    """Return the function from a normalised sentence to its tokens.

    No token is empty or holds U+0020, and together they hold all other characters of the sentence in order. Time and
    memory are in proportion to the sentence's length.

    Args:
        config: Names the segmenter.
        user_dictionary: A jieba user dictionary, or None; for jieba and rjieba only.

    Raises:
        ConfigError: If the segmenter's package is not installed.
        CorpusError: If the user dictionary cannot be read.
    """
    if config.segmenter == "character":
        return lambda sentence: [character for character in sentence if character != " "]
    if config.segmenter == "whitespace":
        return split_tokens
    build = build_rjieba if config.segmenter == "rjieba" else build_jieba
    segment = limit_runs(build(config.jieba_hmm, user_dictionary))

    def segment_words(sentence: str) -> list[str]:
        words = segment(sentence)
        # Both pass white space on, each character as a token of its own.
        return [word for word in words if word != " "] if " " in sentence else words

    return segment_words


def split_tokens(sentence: str) -> list[str]:
    """Return the tokens of segmented text: split at U+0020 and nothing else."""
    return [token for token in sentence.split(" ") if token]


def describe_segmenter(config: TextConfig, user_dictionary: Path | None = None) -> dict[str, str]:
    """Return name, version and dictionary digest: what has to be equal for equal tokens.

    What converts the script has words and a version of its own.

    Raises:
        ConfigError: If the segmenter's package is not installed.
    """
    described = {"name": config.segmenter, "version": "1", **describe_script(config.script)}
    if config.segmenter == "jieba":
        described |= describe_jieba()
    elif config.segmenter == "rjieba":
        described |= describe_rjieba()
    if user_dictionary is not None:
        described["user_dictionary"] = file_digest(user_dictionary)
    return described
