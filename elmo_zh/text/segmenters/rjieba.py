"""The segmenter rjieba: jieba written in Rust, many times faster, and corrected to return almost the same tokens.

A comparison on real text (docs/segmenters.md) showed two main differences from jieba: the package keeps Latin letters
and digits together across signs (F-16, 1.2.3), and its runs of Han include characters that jieba does not know. This
module corrects both.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_zh.config import TextConfig
from elmo_zh.errors import ConfigError
from elmo_zh.invocation import needs
from elmo_zh.text.segmenters.jieba import limit_runs
from elmo_zh.text.segmenters.user_dictionary import keep_latin_words, load_user_dictionary

if TYPE_CHECKING:
    from rjieba import Jieba

TAKES_USER_DICTIONARY = True

# Characters that are Han for rjieba only; jieba knows U+4E00 to U+9FD5 and makes a token of each other character.
_RARE_HAN = "\u3400-\u4dbf\u9fd6-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RARE_HAN_CHARACTER = re.compile(f"([{_RARE_HAN}])")
_MAY_DIFFER = re.compile(rf"[#%&+\-._{_RARE_HAN}]")
# jieba's rule for text that is neither in its dictionary nor Han: each match, and the text between two, is a token.
_LATIN_TOKEN = re.compile(r"([a-zA-Z0-9]+(?:\.[0-9]+)?%?)")


def build(config: TextConfig, user_dictionary: Path | None) -> Callable[[str], list[str]]:
    """Return rjieba's segmenter, with its two main differences from jieba corrected."""
    try:
        from rjieba import Jieba
    except ImportError:
        raise _missing() from None
    rjieba, use_hmm = Jieba(), config.jieba_hmm
    if user_dictionary is not None:
        load_user_dictionary(user_dictionary, config, rjieba.add_word)

    def segment(sentence: str) -> list[str]:
        if not _MAY_DIFFER.search(sentence):
            return rjieba.cut(sentence, use_hmm)
        tokens = [token for part in _RARE_HAN_CHARACTER.split(sentence) for token in rjieba.cut(part, use_hmm)]
        return list(_iter_split_at_signs(tokens, rjieba)) if use_hmm else tokens

    return limit_runs(segment if user_dictionary is None else keep_latin_words(segment))


def _iter_split_at_signs(tokens: list[str], rjieba: Jieba) -> Iterator[str]:
    for token in tokens:
        if len(token) > 1 and _MAY_DIFFER.search(token) and not rjieba.has_word(token):
            yield from filter(None, _LATIN_TOKEN.split(token))
        else:
            yield token


def describe() -> dict[str, str]:
    """Return rjieba's version, which also identifies the dictionary compiled into the package."""
    try:
        return {"version": importlib.metadata.version("rjieba")}
    except importlib.metadata.PackageNotFoundError:
        raise _missing() from None


def _missing() -> ConfigError:
    return ConfigError(needs("text.segmenter = rjieba", "rjieba", "rjieba"))
