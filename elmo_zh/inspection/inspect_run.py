"""What a run holds, from whatever of it is there."""

from collections.abc import Mapping, Sequence
from typing import Any

from elmo_zh.errors import RunError
from elmo_zh.inspection.coverage_picture import draw_coverage
from elmo_zh.inspection.oddities import find_oddities
from elmo_zh.inspection.text_survey import TextSurvey, survey_text
from elmo_zh.pictures import can_draw
from elmo_zh.planning.comparison import changed_settings, compare, load_plan
from elmo_zh.planning.coverage import ROUND_SIZES
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record
from elmo_zh.run.reporter import Reporter
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, load_counts, load_vocabulary

_STAGES = ("segment", "vocab", "word2vec", "encode", "train", "export")


def inspect_run(run: RunDir, *, num_samples: int, num_tokens: int, seed: int, reporter: Reporter) -> dict[str, Any]:
    """Return what a run holds; coverage.png is drawn on the way where there are counts.

    Args:
        run: Finished or not.
        num_samples: Sentences to show.
        num_tokens: Frequent and long tokens to show.
        seed: Of the choice of sentences.
        reporter: Where to tell.

    Raises:
        RunError: If there is no such run, nothing in it, or something in it is damaged.
    """
    records = {name: load_record(run.stage_record(name)) for name in _STAGES}
    done = {name: record for name, record in records.items() if record.get("finished")}
    plan = load_plan(run)
    files = run.train_files()
    if not (done or plan or files):
        what = "holds no run" if run.path.exists() else "does not exist"
        raise RunError(f"{run.path} {what}. Begin one with: elmo-zh segment CORPUS --run {run.path}")
    survey = None
    if files:
        survey = survey_text(files, num_samples=num_samples, num_longest=num_tokens, seed=seed, reporter=reporter)
    segmented = done.get("segment", {})
    counts, num_counted = _counts(run, survey)
    coverage = done.get("vocab", {}).get("counts", {}).get("coverage")
    oddities = find_oddities(survey, segmented.get("sources", {}), segmented.get("counts", {}), coverage)
    return {
        "run": str(run.path),
        "stages": {name: {"seconds": record["seconds"], **record["counts"]} for name, record in done.items()},
        "sources": segmented.get("sources", {}),
        "passed_over": segmented.get("passed_over", {}),
        "text": _describe(survey, num_tokens) if survey else {},
        "coverage_curve": _curve([count for _, count in counts], num_counted),
        "coverage_picture": _draw(run, [count for _, count in counts], num_counted, reporter),
        "oddities": [oddity.described() for oddity in oddities],
        "plan": {each.name: each.described() for each in compare(run, plan)} if plan else {},
        "changed_settings": changed_settings(run, plan) if plan else [],
    }


def _counts(run: RunDir, survey: TextSurvey | None) -> tuple[list[tuple[str, int]], int]:
    """Return words with their counts, falling, and the tokens of the text, from the vocabulary if there is one."""
    if run.vocab.exists() and run.vocab_counts.exists():
        vocabulary = load_vocabulary(run.vocab)
        counts = load_counts(run.vocab_counts, vocabulary)
        words = list(zip(vocabulary.tokens, counts, strict=True))[len(SPECIALS) :]
        return words, sum(counts[UNKNOWN_ID:])
    if survey is None:
        return [], 0
    return survey.tokens.most_common(), survey.num_tokens


def _describe(survey: TextSurvey, num_tokens: int) -> dict[str, Any]:
    return {
        "sentences": survey.num_sentences,
        "tokens": survey.num_tokens,
        "kinds": {
            what: {kind: round(share, 6) for kind, share in shares.items()}
            for what, shares in survey.kinds.shares().items()
        },
        "single_character_share": round(survey.single_han_tokens / max(1, survey.num_tokens), 6),
        "sentence_lengths": survey.length_quantiles(),
        "most_frequent": dict(survey.tokens.most_common(num_tokens)),
        "longest": list(survey.longest),
        "samples": list(survey.sentences),
    }


def _curve(counts: Sequence[int], num_tokens: int) -> list[dict[str, float]]:
    sizes = [size for size in (100, *ROUND_SIZES) if size < len(counts)]
    sizes += [len(counts)] if counts else []
    wanted, covered, curve = set(sizes), 0, []
    for number, count in enumerate(counts, start=1):
        covered += count
        if number in wanted:
            curve.append({"words": number, "share": round(covered / max(1, num_tokens), 6)})
    return curve


def _draw(run: RunDir, counts: Sequence[int], num_tokens: int, reporter: Reporter) -> str:
    if not counts:
        return ""
    if not can_draw():
        reporter.note("matplotlib is not installed, so coverage.png is not drawn.")
        return ""
    draw_coverage(counts, num_tokens, run.coverage_picture)
    return str(run.coverage_picture)


def dropped_characters(source: Mapping[str, Any]) -> int:
    """Return how many characters of a source were left out."""
    return int(source["characters"]) - int(source["kept_characters"])
