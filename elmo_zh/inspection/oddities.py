"""Oddities of a run that the user should look at, and what to do about each."""

from collections.abc import Iterator, Mapping
from typing import Any

from elmo_zh.config.privacy import is_private
from elmo_zh.corpus.cleaning.examples import shortened
from elmo_zh.inspection.segmented_text import LONG_SENTENCE_TOKENS, LONG_TOKEN_CHARACTERS, TextSurvey

# In modern text segmented by words about a third of the tokens are single characters, in classical text most.
_MANY_SINGLE = 0.65
_FEW_HAN = 0.5
_LITTLE_COVERAGE = 0.9
_MANY_COPIES, _MANY_COPIES_FRACTION = 20, 0.0005
_MUCH_DROPPED = 0.5
_LEAST_HELDOUT, _MOST_HELDOUT = 0.001, 0.15
_EMPTY, _HALVED = "sources with nothing kept", "sources with most of their text left out"
_HELDOUT, _UNKNOWN = "unusual share of held-out tokens", "tokens outside the vocabulary, which is full"
_RARE = "tokens too rare for the vocabulary"
_REPEATED = "sentences that stand there again and again"
_HAN, _SINGLE = "share of Han characters is low", "share of single-character tokens is high"
# What to do about each.
_ADVICE = {
    _EMPTY: "Look at the file, its format (--format) and field (--field), or leave it out.",
    _HALVED: "The table of sources names the reasons; see docs/corpora.md for the options.",
    _HELDOUT: "Perplexity is measured on it. See text.heldout_share, text.heldout_min_sentences,"
    " text.heldout_max_tokens.",
    "sentences with U+FFFD": "Bytes did not decode, here or before you got the text. Name the encoding (--encoding), or"
    " leave such lines out: --bad-bytes skip-line",
    "sentences that look wrongly decoded": "The file was decoded wrongly before you got it: fetch the original, or"
    " clean it.",
    "sentences with private characters": "They come from fonts of one program; replace or remove them.",
    "long sentences": f"Longer than {LONG_SENTENCE_TOKENS} tokens: lists, tables or text without sentence ends. Split"
    " the lines.",
    "long tokens": f"Longer than {LONG_TOKEN_CHARACTERS} characters: addresses, codes or formulas. Remove them before"
    " segmenting.",
    _REPEATED: "Notices, headers or copies of documents teach nothing new. Remove them.",
    _HAN: "Is it the right text, column (--field) and encoding?",
    _SINGLE: "Classical text is like that, and text.segmenter=character. Otherwise the text is spaced out or of a field"
    " that the dictionary lacks: --set text.user_dictionary=FILE",
    _UNKNOWN: "Each word outside becomes <UNK>, since the vocabulary is full. For more rows, in a new run:"
    " --set vocab.size=...",
    _RARE: "Each word outside becomes <UNK>, since it occurs less than vocab.min_count times. More text helps, or"
    " character mode in a new run: --set model.mode=character",
}
_Found = Iterator[tuple[str, float, str]]


def find_oddities(
    survey: TextSurvey | None,
    sources: Mapping[str, Any],
    counts: Mapping[str, Any],
    coverage: float | None,
    *,
    is_vocabulary_full: bool = True,
) -> list[dict[str, Any]]:
    """Return the oddities of a run: what, count (of them, or a fraction), example, advice.

    The survey or the coverage is None where there is no training text or no vocabulary.
    """
    found = [*_of_record(sources, counts)]
    if survey is not None and survey.num_tokens:
        found += _of_text(survey)
    if coverage is not None and coverage < _LITTLE_COVERAGE:
        found.append((_UNKNOWN if is_vocabulary_full else _RARE, round(1 - coverage, 4), ""))
    return [
        {"what": what, "count": count, "example": "" if is_private() else each, "advice": _ADVICE[what]}
        for what, count, each in found
    ]


def _of_record(sources: Mapping[str, Any], counts: Mapping[str, Any]) -> _Found:
    kept = {name: source["kept_characters"] / max(1, source["characters"]) for name, source in sources.items()}
    if empty := [name for name, fraction in kept.items() if not fraction]:
        yield _EMPTY, len(empty), empty[0]
    if halved := [name for name, fraction in kept.items() if 0 < fraction < 1 - _MUCH_DROPPED]:
        yield _HALVED, len(halved), halved[0]
    if counts:
        heldout = counts["heldout_tokens"] / max(1, counts["heldout_tokens"] + counts["train_tokens"])
        if not _LEAST_HELDOUT <= heldout <= _MOST_HELDOUT:
            yield _HELDOUT, round(heldout, 6), ""


def _of_text(survey: TextSurvey) -> _Found:
    for kind in (kind for kind in _ADVICE if survey.odd.counts[kind]):
        yield kind, survey.odd.counts[kind], survey.odd.examples[kind]
    least = max(_MANY_COPIES, _MANY_COPIES_FRACTION * survey.num_sentences)
    if repeated := [(line, count) for line, count in survey.repeated.most_common(1000) if count >= least]:
        line, most = repeated[0]
        yield _REPEATED, sum(count for _, count in repeated), f"{most:,} times: {shortened(line)}"
    example = shortened("".join(survey.sentences[:1]))
    if (han := survey.kinds.fractions()["characters"]["Han"]) < _FEW_HAN:
        yield _HAN, round(han, 4), example
    if (single := survey.single_han_tokens / survey.num_tokens) > _MANY_SINGLE:
        yield _SINGLE, round(single, 4), example
