"""The segmenter jieba: a dictionary, and a hidden Markov model for words that are not in it."""

import importlib.metadata
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

from elmo_zh.config import TextConfig
from elmo_zh.run.files import file_digest
from elmo_zh.text.segmenters.user_dictionary import keep_latin_words, load_user_dictionary

TAKES_USER_DICTIONARY = True
# First letters of jieba's tags for conjunctions, adverbs, numbers, prepositions, classifiers, pronouns and the like.
_FUNCTION_TAGS = "cdefhkmopqrtuwxy"
# jieba with its own dictionary, by the dictionary's file name, kept while a segmenter uses it. It takes 60 MB of memory
# and a third of a second to read.
_in_use: WeakValueDictionary[str, Any] = WeakValueDictionary()

# Runs are the text between white space and punctuation; at most this many characters of a run are segmented together.
# The time and memory of jieba's hidden Markov model grow with the square of a run without known words. A different
# limit would change the tokens of longer runs, so this is not a setting.
RUN_LIMIT = 2_000
# The segmenter does not see the text after a cut, so tokens in the last characters before it are discarded. With an
# overlap of ten or more characters, few words differ from the words of the uncut run (docs/segmenters.md).
OVERLAP = 20

_RUN = re.compile(r"[\u4e00-\u9fd5a-zA-Z0-9+#&._%\-]+")


def build(config: TextConfig, user_dictionary: Path | None) -> Callable[[str], list[str]]:
    """Return jieba's segmenter, unaffected by other uses of jieba in the same process."""
    tokenizer = _tokenizer_of_jieba()
    if user_dictionary is not None:
        tokenizer = _new_tokenizer(dict(tokenizer.FREQ), tokenizer.total)
        load_user_dictionary(user_dictionary, config, tokenizer.add_word)
    cut = partial(tokenizer.lcut, HMM=config.jieba_hmm)
    return limit_runs(cut if user_dictionary is None else keep_latin_words(cut))


def _tokenizer_of_jieba() -> Any:
    import jieba

    tokenizer = _in_use.get(jieba.DEFAULT_DICT_NAME)
    if tokenizer is None:
        tokenizer = _new_tokenizer(*_word_counts())
        _in_use[jieba.DEFAULT_DICT_NAME] = tokenizer
    return tokenizer


def _dictionary_fields() -> list[str]:
    """Return the words, counts and tags of jieba's dictionary: word, count, tag, word, count, tag, ..."""
    import jieba

    with jieba.Tokenizer().get_dict_file() as file:
        return cast(str, file.read().decode("utf-8")).split()


def _word_counts() -> tuple[dict[str, int], int]:
    """Return what jieba's `gen_pfdict` returns, in half the time: word counts (0 for prefixes), and their sum."""
    fields = _dictionary_fields()
    numbers = [int(count) for count in fields[1::3]]
    counts = dict(zip(fields[0::3], numbers, strict=True))
    counts[""] = 0
    for beginning in list(counts):
        while (beginning := beginning[:-1]) not in counts:
            counts[beginning] = 0
    del counts[""]
    return counts, sum(numbers)


def _new_tokenizer(counts: dict[str, int], total: int) -> Any:
    """Return a jieba tokenizer without the cache file, which jieba unmarshals from the shared temporary folder."""
    import jieba

    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total, tokenizer.initialized = counts, total, True
    return tokenizer


def jieba_function_words() -> frozenset[str]:
    """Return the words that jieba's dictionary tags as function words, such as 我们, 一个 and 因为."""
    fields = _dictionary_fields()
    return frozenset(word for word, tag in zip(fields[0::3], fields[2::3], strict=True) if tag[0] in _FUNCTION_TAGS)


def describe() -> dict[str, str]:
    """Return jieba's version and the digest of its dictionary."""
    import jieba

    dictionary = Path(jieba.__file__).with_name("dict.txt")
    return {"version": importlib.metadata.version("jieba"), "dictionary": file_digest(dictionary)}


def limit_runs(segment: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return a segmenter that drops spaces, and cuts runs of more than `RUN_LIMIT` characters for `segment`.

    Text without a longer run gets the tokens that `segment` gives to the whole text. A longer run is segmented in
    windows of `RUN_LIMIT` characters; the next window begins at the first token that reaches into the last `OVERLAP`
    characters. `segment` treats each run by itself and keeps all characters, as jieba does. It may return U+0020 as a
    token.
    """

    def segment_words(sentence: str) -> list[str]:
        words = segment_limited(sentence)
        return [word for word in words if word != " "] if " " in sentence else words

    def segment_limited(sentence: str) -> list[str]:
        if len(sentence) <= RUN_LIMIT:
            return segment(sentence)
        tokens = []
        end = 0
        for run in _RUN.finditer(sentence):
            if run.end() - run.start() > RUN_LIMIT:
                tokens += segment(sentence[end : run.start()])
                tokens += _iter_run_tokens(segment, run[0])
                end = run.end()
        return tokens + segment(sentence[end:])

    return segment_words


def _iter_run_tokens(segment: Callable[[str], list[str]], run: str) -> Iterator[str]:
    start = 0
    while len(run) - start > RUN_LIMIT:
        end_of_kept = start + RUN_LIMIT - OVERLAP
        for index, token in enumerate(segment(run[start : start + RUN_LIMIT])):
            if index > 0 and start + len(token) > end_of_kept:
                break
            yield token
            start += len(token)
    yield from segment(run[start:])
