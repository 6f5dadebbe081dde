"""Segment text without white space or punctuation in bounded time and memory."""

import re
from collections.abc import Callable, Iterator

# Runs are the text between white space and punctuation; at most this many characters of a run are segmented together.
# The time and memory of jieba's hidden Markov model grow with the square of a run without known words. A different
# limit would change the tokens of longer runs, so this is not a setting.
RUN_LIMIT = 2_000
# The segmenter does not see the text after a cut, so tokens in the last characters before it are discarded. With an
# overlap of ten or more characters, few words differ from the words of the uncut run (docs/segmenters.md).
OVERLAP = 20

_RUN = re.compile(r"[\u4e00-\u9fd5a-zA-Z0-9+#&._%\-]+")


def limit_runs(segment: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return a segmenter that drops spaces and passes at most `RUN_LIMIT` characters in a row to `segment`.

    Text without a longer run gets the tokens that `segment` gives to the whole text. A longer run is segmented in
    windows of `RUN_LIMIT` characters; the next window begins at the first token within `OVERLAP` characters of the end.
    `segment` treats each run by itself and keeps all characters, as jieba does. It may return U+0020 as a token.
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
