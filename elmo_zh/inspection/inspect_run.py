"""Describe a run from the files it has so far, as a dictionary and as lines, including oddities."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.corpus.cleaning.line_counts import shortened, visible
from elmo_zh.corpus.tally import Tally
from elmo_zh.errors import RunError
from elmo_zh.inspection import Shown
from elmo_zh.inspection.segmented_text import LONG_SENTENCE_TOKENS, LONG_TOKEN_CHARACTERS, TextSurvey, survey_segmented
from elmo_zh.invocation import program
from elmo_zh.language import translate
from elmo_zh.pictures.canvas import name_corpus, save_picture
from elmo_zh.pictures.runs import coverage_figure
from elmo_zh.run.find_runs import explain_no_run
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import corpus_names, finished_stages
from elmo_zh.run.reporter import Reporter, aligned, counted, format_seconds
from elmo_zh.training.verdict import describe_verdict
from elmo_zh.vocabulary.coverage import ROUND_SIZES, coverage_lines, coverage_of
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, load_counts, load_vocabulary

_MOST_SOURCES, _MOST_REASONS = 20, 3


def inspect_run(run: RunDir, shown: Shown, reporter: Reporter) -> dict[str, Any]:
    """Describe the content of a run, finished or not, as JSON values, and draw coverage.png if there are counts."""
    finished, files = finished_stages(run), run.train_files()
    if not (finished or files or run.plan.exists()):
        if BundleLayout(run.path).info.is_file():
            typed = shlex.quote(str(run.path))
            raise RunError(f"{run.path} is a model bundle, not a run. Show it with: {program()} info {typed}")
        raise RunError(explain_no_run(run.path))
    survey = survey_segmented(files, shown, reporter) if files else None
    segmented = finished.get("segment", {})
    sources = segmented.get("sources", {})
    curve = _coverage_curve(run, survey)
    sizes = [size for size in (100, *ROUND_SIZES, len(curve) - 1) if 0 < size < len(curve)]
    coverage = finished.get("vocab", {}).get("counts", {}).get("coverage")
    is_full = run.vocab.exists() and 0 < run.load_config(None, []).vocab.size <= len(load_vocabulary(run.vocab))
    return {
        "run": str(run.path),
        "stages": {name: {"seconds": record["seconds"], **record["counts"]} for name, record in finished.items()},
        "sources": sources,
        "passed_over": segmented.get("passed_over", {}),
        "text": _describe(survey, shown.num_tokens) if survey else {},
        "coverage_curve": [{"words": size, "share": round(float(curve[size]), 6)} for size in sorted(set(sizes))],
        "coverage_picture": _draw_coverage(curve, survey, coverage, run, reporter),
        "oddities": find_oddities(survey, sources, segmented.get("counts", {}), coverage, is_vocabulary_full=is_full),
        "verdict": finished.get("train", {}).get("counts", {}).get("findings", []),
    }


def _coverage_curve(run: RunDir, survey: TextSurvey | None) -> NDArray[np.float64]:
    """Return the coverage of the 0, 1, 2, ... most frequent words, from the vocabulary's counts if there are any."""
    if run.vocab.exists() and run.vocab_counts.exists():
        counts = load_counts(run.vocab_counts, load_vocabulary(run.vocab))
        return coverage_of(sorted(counts[len(SPECIALS) :], reverse=True), sum(counts[UNKNOWN_ID:]))
    return _curve_of_text(survey)


def _curve_of_text(survey: TextSurvey | None) -> NDArray[np.float64]:
    return (
        coverage_of(sorted(survey.tokens.counts.values(), reverse=True), survey.num_tokens) if survey else np.zeros(1)
    )


def _ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _describe(survey: TextSurvey, num_tokens: int) -> dict[str, Any]:
    fractions = survey.kinds.fractions().items()
    return {
        "sentences": survey.num_sentences,
        "tokens": survey.num_tokens,
        "kinds": {what: {kind: round(each, 6) for kind, each in kinds.items()} for what, kinds in fractions},
        "single_character_share": round(survey.single_han_tokens / max(1, survey.num_tokens), 6),
        "sentence_lengths": survey.length_quantiles(),
        "most_frequent": dict(_ranked(survey.tokens.counts)[:num_tokens]),
        "longest": list(survey.longest),
        "samples": list(survey.sentences),
    }


def _draw_coverage(
    curve: NDArray[np.float64], survey: TextSurvey | None, coverage: float | None, run: RunDir, reporter: Reporter
) -> str:
    """Draw coverage.png, from the text if possible, since its curve goes further; return the path, or ""."""
    if len(curve) < 2:
        return ""
    vocabulary = None if coverage is None else (len(curve) - 1, coverage)
    if survey is not None:
        curve = _curve_of_text(survey)
    detail = f"Training text: {survey.num_tokens:,} tokens in {survey.num_sentences:,} sentences" if survey else ""
    title = f"Vocabulary coverage of {name_corpus(run.name, corpus_names(run))}"
    try:
        save_picture(coverage_figure(curve, vocabulary, title, [detail]), run.coverage_picture)
    except OSError as error:
        # A run can be inspected where nothing can be written, such as in someone else's folder.
        reporter.warn(
            f"{run.coverage_picture} cannot be written ({error.strerror or error}), so the picture is not drawn."
        )
        return ""
    return str(run.coverage_picture)


def describe_inspection(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the result of `inspect_run` as lines for the screen, in sections separated by empty lines."""
    picture = [f"Coverage picture: {found['coverage_picture']}"] if found["coverage_picture"] else []
    sections = (
        _stages(found["stages"]),
        _sources(found["sources"]) if found["sources"] else (),
        (*coverage_lines(found["coverage_curve"]), *picture) if found["coverage_curve"] else (),
        _text(found["text"]) if found["text"] else (),
        _oddities(found["oddities"]) if found["oddities"] or (found["text"] and not found["verdict"]) else (),
        describe_verdict(found["verdict"]) if found["verdict"] else (),
    )
    shown = [lines for section in sections if (lines := list(section))]
    for number, lines in enumerate(shown):
        yield from ["", *lines] if number else lines


def _stages(stages: Mapping[str, Any]) -> Iterator[str]:
    if not stages:
        yield "No stage has finished yet."
        return
    for name, stage in stages.items():
        counts = ", ".join(
            f"{translate(key.replace('_', ' '))} {value:,}"
            for key, value in stage.items()
            if key != "seconds" and isinstance(value, int | float) and not isinstance(value, bool)
        )
        yield f"{name} ({format_seconds(stage['seconds'])}): {counts}"


def _sources(sources: Mapping[str, Any]) -> Iterator[str]:
    tallies = {name: Tally.restored(source) for name, source in sources.items()}
    ranked = sorted(tallies.items(), key=lambda item: (-item[1].characters, item[0]))
    rows = [_source_row(name, [tally]) for name, tally in ranked[:_MOST_SOURCES]]
    if others := [tally for _, tally in ranked[_MOST_SOURCES:]]:
        rows.append(_source_row(translate(counted(len(others), "other source")), others))
    if len(tallies) > 1:
        rows.append(_source_row(translate("all sources"), tallies.values()))
    yield from aligned(rows, header=("source", "files", "documents", "characters", "kept", "characters left out"))


def _source_row(name: str, tallies: Iterable[Tally]) -> tuple[str, ...]:
    total = Tally()
    for tally in tallies:
        total.extend(tally)
    counts = (f"{count:,}" for count in (total.forms.total(), total.documents, total.characters))
    kept = f"{total.kept_characters / max(1, total.characters):.1%}"
    dropped = total.dropped.most_common(_MOST_REASONS)
    left_out = ", ".join(f"{translate(reason)} {count:,}" for reason, count in dropped if count)
    return name, *counts, kept, left_out


def _text(text: Mapping[str, Any]) -> Iterator[str]:
    kinds = text["kinds"]
    names = {"tokens": "share of tokens", "characters": "share of characters"}
    rows = [(translate(names[what]), *(f"{share:.1%}" for share in shares.values())) for what, shares in kinds.items()]
    yield from aligned(rows, header=("training text", *kinds["tokens"]))
    yield f"Tokens that are a single Chinese character: {text['single_character_share']:.1%}."
    lengths = ", ".join(f"{share} {length:,}" for share, length in text["sentence_lengths"].items())
    yield f"Percentiles of sentence length, in tokens: {lengths}."
    if text["most_frequent"]:
        most = (f"{visible(word)} {count:,}" for word, count in text["most_frequent"].items())
        yield "Most frequent tokens: " + "  ".join(most)
    if text["longest"]:
        yield "Longest tokens: " + "  ".join(map(visible, text["longest"]))
    if text["samples"]:
        yield "Random sentences:"
        yield from (f"  {visible(line)}" for line in text["samples"])


def _oddities(oddities: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not oddities:
        yield "No problem was found in the text."
        return
    yield "Worth a look:"
    for oddity in oddities:
        count = f"{oddity['count']:,}" if isinstance(oddity["count"], int) else f"{oddity['count']:.2%}"
        what, example = oddity["what"], oddity["example"]
        yield f"  {what}: {count}, for example: {example}" if example else f"  {what}: {count}"
        yield f"    {oddity['advice']}"


# In modern text segmented by words, about a third of the tokens are single characters; in classical text, most are.
_MANY_SINGLE = 0.65
_FEW_HAN = 0.5
_LITTLE_COVERAGE = 0.9
_MANY_COPIES, _MANY_COPIES_FRACTION = 20, 0.0005
_MUCH_DROPPED = 0.5
_LEAST_HELDOUT, _MOST_HELDOUT = 0.001, 0.15
_EMPTY, _HALVED = "sources from which no text was kept", "sources with most of their text left out"
_HELDOUT, _UNKNOWN = "unusual share of held-out tokens", "tokens outside the vocabulary, which is full"
_RARE = "tokens too rare for the vocabulary"
_REPEATED = "sentences that occur again and again"
_HAN, _SINGLE = "share of Han characters is low", "share of single-character tokens is high"
# Advice on each oddity.
_ADVICE = {
    _EMPTY: "Check the file, its format (--format) and its field (--field), or leave the file out.",
    _HALVED: "The table of sources lists the reasons. docs/corpora.md explains the options that keep more text.",
    _HELDOUT: "Perplexity is measured on the held-out text. To hold out more or less, change text.heldout_share,"
    " text.heldout_min_sentences or text.heldout_max_tokens.",
    "sentences with U+FFFD": "U+FFFD replaces bytes that could not be decoded, either here (with --bad-bytes"
    " replace) or before you got the file. Get the original file, or specify its encoding: --encoding",
    "sentences that look wrongly decoded": "The text was probably decoded with the wrong encoding, either here or"
    " earlier. Specify the right encoding (--encoding), get the original file, or try: --set text.repair_mojibake=true",
    "sentences with private-use characters": "Private-use characters have no standard meaning. Replace or remove them.",
    "long sentences": f"Sentences of more than {LONG_SENTENCE_TOKENS} tokens are usually lists, tables or text without"
    " punctuation. Split them into shorter lines.",
    "long tokens": f"Tokens of more than {LONG_TOKEN_CHARACTERS} characters are usually web addresses, codes or"
    " formulas. Remove them from the corpus.",
    _REPEATED: "Repeated notices, headers and copies of documents teach the model nothing new. Remove them.",
    _HAN: "Check that you chose the right text, field (--field) and encoding (--encoding).",
    _SINGLE: "A high share is normal for classical text and with text.segmenter=character. Otherwise, characters may be"
    " separated by spaces, or words may be missing from the dictionary. To add words: --set text.user_dictionary=FILE",
    _UNKNOWN: "In token mode, the model reads these tokens as <UNK>. For a larger vocabulary, start a new run with:"
    " --set vocab.size=N",
    _RARE: "In token mode, the model reads words that occur fewer than vocab.min_count times as <UNK>. Use more text,"
    " or start a new run in character mode: --set model.mode=character",
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
    """Return the oddities of a run, each with `what`, `count` (possibly a fraction), `example` and `advice`."""
    found = [*_of_record(sources, counts)]
    if survey is not None and survey.num_tokens:
        found += _of_text(survey)
    if coverage is not None and coverage < _LITTLE_COVERAGE:
        found.append((_UNKNOWN if is_vocabulary_full else _RARE, round(1 - coverage, 4), ""))
    return [
        {"what": what, "count": count, "example": example, "advice": _ADVICE[what]} for what, count, example in found
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
    if repeated := [(line, count) for line, count in _ranked(survey.repeated.counts)[:1000] if count >= least]:
        line, most = repeated[0]
        yield _REPEATED, sum(count for _, count in repeated), f"{shortened(line)} ({most:,} times)"
    example = shortened("".join(survey.sentences[:1]))
    if (han := survey.kinds.fractions()["characters"]["Han"]) < _FEW_HAN:
        yield _HAN, round(han, 4), example
    if (single := survey.single_han_tokens / survey.num_tokens) > _MANY_SINGLE:
        yield _SINGLE, round(single, 4), example
