"""What a run holds, from whatever of it exists."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from elmo_zh.errors import RunError
from elmo_zh.inspection.oddities import find_oddities
from elmo_zh.inspection.segmented_text import TextSurvey, survey_segmented
from elmo_zh.pictures import can_draw, save_picture
from elmo_zh.planning.comparison import STAGES, changed_settings, compare, load_plan
from elmo_zh.planning.coverage import ROUND_SIZES
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record
from elmo_zh.run.reporter import Reporter
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, load_counts, load_vocabulary


def inspect_run(run: RunDir, *, num_samples: int, num_tokens: int, seed: int, reporter: Reporter) -> dict[str, Any]:
    """Return what a run holds, and draw coverage.png where there are counts.

    Args:
        run: The run, finished or not.
        num_samples: Number of sentences to show.
        num_tokens: Number of frequent and of long tokens to show.
        seed: Seed of the choice of sentences.
        reporter: Where to report.

    Raises:
        RunError: If there is no such run, nothing in it, or something in it is damaged.
    """
    records = {name: load_record(run.stage_record(name)) for name in STAGES}
    finished = {name: record for name, record in records.items() if record.get("finished")}
    plan = load_plan(run)
    files = run.train_files()
    if not (finished or plan or files):
        what = "holds no run" if run.path.exists() else "does not exist"
        raise RunError(f"{run.path} {what}. Begin one with: elmo-zh segment CORPUS --run {run.path}")
    survey = None
    if files:
        survey = survey_segmented(files, num_samples=num_samples, num_longest=num_tokens, seed=seed, reporter=reporter)
    segmented = finished.get("segment", {})
    counts, num_counted = _word_counts(run, survey)
    coverage = finished.get("vocab", {}).get("counts", {}).get("coverage")
    oddities = find_oddities(survey, segmented.get("sources", {}), segmented.get("counts", {}), coverage)
    return {
        "run": str(run.path),
        "stages": {name: {"seconds": record["seconds"], **record["counts"]} for name, record in finished.items()},
        "sources": segmented.get("sources", {}),
        "passed_over": segmented.get("passed_over", {}),
        "text": _describe(survey, num_tokens) if survey else {},
        "coverage_curve": _curve(counts, num_counted),
        "coverage_picture": _picture(run, counts, num_counted, reporter),
        "oddities": [asdict(oddity) for oddity in oddities],
        "plan": {each.name: each.described() for each in compare(run, plan)} if plan else {},
        "changed_settings": changed_settings(run, plan) if plan else [],
    }


def _word_counts(run: RunDir, survey: TextSurvey | None) -> tuple[list[int], int]:
    """Return the counts of words, falling, and the tokens of the text, from the vocabulary if there is one."""
    if run.vocab.exists() and run.vocab_counts.exists():
        counts = load_counts(run.vocab_counts, load_vocabulary(run.vocab))
        return list(counts[len(SPECIALS) :]), sum(counts[UNKNOWN_ID:])
    if survey is None:
        return [], 0
    return [count for _, count in survey.tokens.most_common()], survey.num_tokens


def _describe(survey: TextSurvey, num_tokens: int) -> dict[str, Any]:
    return {
        "sentences": survey.num_sentences,
        "tokens": survey.num_tokens,
        "kinds": {
            what: {kind: round(fraction, 6) for kind, fraction in fractions.items()}
            for what, fractions in survey.kinds.fractions().items()
        },
        "single_character_share": round(survey.single_han_tokens / max(1, survey.num_tokens), 6),
        "sentence_lengths": survey.length_quantiles(),
        "most_frequent": dict(survey.tokens.most_common(num_tokens)),
        "longest": list(survey.longest),
        "samples": list(survey.sentences),
    }


def _curve(counts: Sequence[int], num_tokens: int) -> list[dict[str, float]]:
    sizes = [size for size in (100, *ROUND_SIZES) if size < len(counts)] + ([len(counts)] if counts else [])
    return [{"words": size, "share": round(sum(counts[:size]) / max(1, num_tokens), 6)} for size in sizes]


def _picture(run: RunDir, counts: Sequence[int], num_tokens: int, reporter: Reporter) -> str:
    if not counts:
        return ""
    if not can_draw():
        reporter.note("matplotlib is not installed, so coverage.png is not drawn.")
        return ""
    draw_coverage(counts, num_tokens, run.coverage_picture)
    return str(run.coverage_picture)


def draw_coverage(counts: Sequence[int], num_tokens: int, output: Path) -> None:
    """Draw the fraction of tokens covered over the number of words.

    Args:
        counts: Counts of the words, falling.
        num_tokens: Tokens of the text, those of other words included.
        output: The PNG file to write.
    """
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter, StrMethodFormatter

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(1, len(counts) + 1), np.cumsum(counts) / max(1, num_tokens))
    axes.set_xscale("log")
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("most frequent words")
    axes.set_ylabel("tokens of the training text covered")
    axes.grid(alpha=0.3, which="both")
    save_picture(figure, output)
