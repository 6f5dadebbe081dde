"""What in a run is worth a look, and what to do about it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from elmo_zh.corpus.cleaning.examples import shortened
from elmo_zh.inspection.odd_text import LONG_SENTENCE_TOKENS, LONG_TOKEN_CHARACTERS
from elmo_zh.inspection.text_survey import TextSurvey

# In modern text segmented by words about a third of the tokens are single characters, in classical text most.
_MANY_SINGLE_SHARE = 0.65
_LITTLE_HAN_SHARE = 0.5
_LITTLE_COVERAGE = 0.9
_MANY_COPIES, _MANY_COPIES_SHARE = 20, 0.0005
_MUCH_DROPPED_SHARE = 0.5
_HELDOUT_SHARES = (0.001, 0.15)

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


@dataclass(frozen=True, kw_only=True)
class Oddity:
    """One thing to look at: what, how often, an example, and what to do next."""

    what: str
    count: float
    example: str
    advice: str

    def described(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def find_oddities(
    survey: TextSurvey | None, sources: Mapping[str, Any], counts: Mapping[str, Any], coverage: float | None
) -> list[Oddity]:
    """Return what is worth a look, as far as it can be told.

    Args:
        survey: Of the segmented training text; None if there is none.
        sources: Of the segment stage's record.
        counts: Of the segment stage's record.
        coverage: Share of the training tokens in the vocabulary, if there is one.
    """
    found = [*_of_sources(sources), *_of_split(counts)]
    if survey is not None and survey.num_tokens:
        found += [*_of_text(survey), *_of_tokens(survey)]
    if coverage is not None and coverage < _LITTLE_COVERAGE:
        advice = "Each word outside becomes <UNK>. Give more rows (--set vocab.size=...), or model.mode=character."
        found.append(
            Oddity(what="tokens outside the vocabulary", count=round(1 - coverage, 4), example="", advice=advice)
        )
    return found


def _of_sources(sources: Mapping[str, Any]) -> Iterator[Oddity]:
    empty = [name for name, source in sources.items() if not source["kept_characters"]]
    if empty:
        advice = "Look at the file, its format (--format) and field (--field), or leave it out."
        yield Oddity(what="sources with nothing kept", count=len(empty), example=empty[0], advice=advice)
    halved = [
        name
        for name, source in sources.items()
        if source["kept_characters"] and source["kept_characters"] < (1 - _MUCH_DROPPED_SHARE) * source["characters"]
    ]
    if halved:
        advice = "The table of sources names the reasons; see docs/corpora.md for the options."
        yield Oddity(
            what="sources with most of their text left out", count=len(halved), example=halved[0], advice=advice
        )


def _of_split(counts: Mapping[str, Any]) -> Iterator[Oddity]:
    if not counts:
        return
    heldout, train = counts["heldout_tokens"], counts["train_tokens"]
    share = heldout / max(1, heldout + train)
    if not _HELDOUT_SHARES[0] <= share <= _HELDOUT_SHARES[1]:
        advice = (
            "Perplexity is measured on it. See text.heldout_share, text.heldout_min_sentences, text.heldout_max_tokens."
        )
        yield Oddity(what="unusual share of held-out tokens", count=round(share, 6), example="", advice=advice)


def _of_text(survey: TextSurvey) -> Iterator[Oddity]:
    for kind, advice in _ADVICE.items():
        if survey.odd.counts[kind]:
            yield Oddity(what=kind, count=survey.odd.counts[kind], example=survey.odd.examples[kind], advice=advice)
    least = max(_MANY_COPIES, _MANY_COPIES_SHARE * survey.num_sentences)
    repeated = [(line, count) for line, count in survey.repeated.most_common(1000) if count >= least]
    if repeated:
        yield Oddity(
            what="sentences that stand there again and again",
            count=sum(count for _, count in repeated),
            example=f"{repeated[0][1]:,} times: {shortened(repeated[0][0])}",
            advice="Notices, headers or copies of documents teach nothing new. Remove them.",
        )


def _of_tokens(survey: TextSurvey) -> Iterator[Oddity]:
    shares = survey.kinds.shares()
    if shares["characters"]["Han"] < _LITTLE_HAN_SHARE:
        yield Oddity(
            what="share of Han characters is low",
            count=round(shares["characters"]["Han"], 4),
            example=shortened("".join(survey.sentences[:1])),
            advice="Is it the right text, column (--field) and encoding?",
        )
    single = survey.single_han_tokens / survey.num_tokens
    if single > _MANY_SINGLE_SHARE:
        yield Oddity(
            what="share of single-character tokens is high",
            count=round(single, 4),
            example=shortened(survey.sentences[0]) if survey.sentences else "",
            advice=(
                "Classical text is like that, and text.segmenter=character. Else the text is spaced out or of a field"
                " that the dictionary lacks: --set text.user_dictionary=FILE"
            ),
        )
