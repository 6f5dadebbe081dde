"""Text without a place to rest, in bounded time and memory."""

import re
from collections.abc import Callable, Iterator

# Characters of a run, between white space and punctuation, that are segmented together at most. jieba's hidden Markov
# model takes time and memory that grow with the square of a run without a word. Another limit gives longer runs other
# tokens, so it is not a setting.
RUN_LIMIT = 2_000
# At the end of a piece the text that follows is not known, so tokens in its last characters are not kept. With ten or
# more, few words come out otherwise than from the whole run (docs/segmenters.md).
OVERLAP = 20

_RUN = re.compile(r"[\u4e00-\u9fd5a-zA-Z0-9+#&._%\-]+")


def limit_runs(segment: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return a segmenter that never gives `segment` a run of more than `RUN_LIMIT` characters.

    Text without such a run gets the tokens that `segment` gives to the whole of it. A longer run is segmented piece by
    piece; the next piece begins where the tokens of the one before come within `OVERLAP` characters of its end.

    Args:
        segment: Has to treat each run by itself, and to keep all characters of runs, as jieba does.
    """

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

    return segment_limited


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
