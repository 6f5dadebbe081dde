"""Oddities of a run that the user should look at, and what to do about each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from elmo_zh.corpus.cleaning.examples import shortened
from elmo_zh.inspection.segmented_text import LONG_SENTENCE_TOKENS, LONG_TOKEN_CHARACTERS, TextSurvey

# In modern text segmented by words about a third of the tokens are single characters, in classical text most.
_MANY_SINGLE = 0.65
_FEW_HAN = 0.5
_LITTLE_COVERAGE = 0.9
_MANY_COPIES, _MANY_COPIES_FRACTION = 20, 0.0005
_MUCH_DROPPED = 0.5
_LEAST_HELDOUT, _MOST_HELDOUT = 0.001, 0.15
# How to correct what is odd in text, by kind.
_ADVICE = {
    "sentences with U+FFFD": (
        "Bytes did not decode, here or before you got the text. Name the encoding (--encoding), or leave such lines"
        " out: --bad-bytes skip-line"
    ),
    "sentences that look wrongly decoded": (
        "The file was decoded wrongly before you got it: fetch the original, or clean it."
    ),
    "sentences with private characters": "They come from fonts of one program; replace or remove them.",
    "long sentences": (
        f"Longer than {LONG_SENTENCE_TOKENS} tokens: lists, tables or text without sentence ends. Split the lines."
    ),
    "long tokens": (
        f"Longer than {LONG_TOKEN_CHARACTERS} characters: addresses, codes or formulas. Remove them before segmenting."
    ),
}


@dataclass(frozen=True)
class Oddity:
    """One oddity: what it is, how often it occurs, an example, and what to do about it."""

    what: str
    count: float
    example: str
    advice: str


def find_oddities(
    survey: TextSurvey | None, sources: Mapping[str, Any], counts: Mapping[str, Any], coverage: float | None
) -> list[Oddity]:
    """Return the oddities of a run.

    Args:
        survey: Survey of the segmented training text; None if there is none.
        sources: Sources in the segment stage's record.
        counts: Counts in the segment stage's record.
        coverage: Fraction of the training tokens that are in the vocabulary, if there is one.
    """
    found = [*_of_sources(sources), *_of_split(counts)]
    if survey is not None and survey.num_tokens:
        found += [*_of_text(survey), *_of_tokens(survey)]
    if coverage is not None and coverage < _LITTLE_COVERAGE:
        advice = "Each word outside becomes <UNK>. Give more rows (--set vocab.size=...), or model.mode=character."
        found.append(Oddity("tokens outside the vocabulary", round(1 - coverage, 4), "", advice))
    return found


def _of_sources(sources: Mapping[str, Any]) -> Iterator[Oddity]:
    kept = {name: source["kept_characters"] / max(1, source["characters"]) for name, source in sources.items()}
    if empty := [name for name, fraction in kept.items() if not fraction]:
        advice = "Look at the file, its format (--format) and field (--field), or leave it out."
        yield Oddity("sources with nothing kept", len(empty), empty[0], advice)
    if halved := [name for name, fraction in kept.items() if 0 < fraction < 1 - _MUCH_DROPPED]:
        advice = "The table of sources names the reasons; see docs/corpora.md for the options."
        yield Oddity("sources with most of their text left out", len(halved), halved[0], advice)


def _of_split(counts: Mapping[str, Any]) -> Iterator[Oddity]:
    if not counts:
        return
    heldout = counts["heldout_tokens"] / max(1, counts["heldout_tokens"] + counts["train_tokens"])
    if not _LEAST_HELDOUT <= heldout <= _MOST_HELDOUT:
        advice = (
            "Perplexity is measured on it. See text.heldout_share, text.heldout_min_sentences, text.heldout_max_tokens."
        )
        yield Oddity("unusual share of held-out tokens", round(heldout, 6), "", advice)


def _of_text(survey: TextSurvey) -> Iterator[Oddity]:
    for kind, advice in _ADVICE.items():
        if survey.odd.counts[kind]:
            yield Oddity(kind, survey.odd.counts[kind], survey.odd.examples[kind], advice)
    least = max(_MANY_COPIES, _MANY_COPIES_FRACTION * survey.num_sentences)
    repeated = [(line, count) for line, count in survey.repeated.most_common(1000) if count >= least]
    if repeated:
        line, most = repeated[0]
        yield Oddity(
            "sentences that stand there again and again",
            sum(count for _, count in repeated),
            f"{most:,} times: {shortened(line)}",
            "Notices, headers or copies of documents teach nothing new. Remove them.",
        )


def _of_tokens(survey: TextSurvey) -> Iterator[Oddity]:
    example = shortened("".join(survey.sentences[:1]))
    han = survey.kinds.fractions()["characters"]["Han"]
    if han < _FEW_HAN:
        advice = "Is it the right text, column (--field) and encoding?"
        yield Oddity("share of Han characters is low", round(han, 4), example, advice)
    single = survey.single_han_tokens / survey.num_tokens
    if single > _MANY_SINGLE:
        advice = (
            "Classical text is like that, and text.segmenter=character. Otherwise the text is spaced out or of a field"
            " that the dictionary lacks: --set text.user_dictionary=FILE"
        )
        yield Oddity("share of single-character tokens is high", round(single, 4), example, advice)
