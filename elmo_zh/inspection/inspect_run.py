"""What a run holds, from whatever of it exists."""

import shlex
from pathlib import Path
from typing import Any

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.errors import RunError
from elmo_zh.inspection.oddities import find_oddities
from elmo_zh.inspection.segmented_text import TextSurvey, survey_segmented
from elmo_zh.invocation import program
from elmo_zh.pictures import can_draw, save_picture
from elmo_zh.planning.comparison import changed_settings, compare, finished_stages, load_plan
from elmo_zh.planning.coverage import ROUND_SIZES, CoverageCurve, exact_curve
from elmo_zh.run.find import explain_no_run
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, load_counts, load_vocabulary


def inspect_run(run: RunDir, *, num_samples: int, num_tokens: int, seed: int, reporter: Reporter) -> dict[str, Any]:
    """Return what a run holds, finished or not, and draw coverage.png where there are counts.

    Shown are `num_samples` sentences, which the seed chooses, and `num_tokens` frequent and as many long tokens.

    Raises:
        RunError: If there is no such run, nothing in it, or something in it is damaged.
    """
    finished, plan, files = finished_stages(run), load_plan(run), run.train_files()
    if not (finished or plan or files):
        if BundleLayout(run.path).info.is_file():
            typed = shlex.quote(str(run.path))
            raise RunError(f"{run.path} is a model bundle, not a run. Show it with: {program()} info {typed}")
        raise RunError(explain_no_run(run.path))
    survey = None
    if files:
        survey = survey_segmented(files, num_samples=num_samples, num_longest=num_tokens, seed=seed, reporter=reporter)
    segmented = finished.get("segment", {})
    sources = segmented.get("sources", {})
    curve = _coverage_curve(run, survey)
    sizes = [size for size in (100, *ROUND_SIZES) if size < curve.ranks[-1]] + [int(curve.ranks[-1])]
    coverage = finished.get("vocab", {}).get("counts", {}).get("coverage")
    return {
        "run": str(run.path),
        "stages": {name: {"seconds": record["seconds"], **record["counts"]} for name, record in finished.items()},
        "sources": sources,
        "passed_over": segmented.get("passed_over", {}),
        "text": _describe(survey, num_tokens) if survey else {},
        "coverage_curve": [{"words": size, "share": round(curve.at(size)[0], 6)} for size in sizes if size],
        "coverage_picture": _draw_coverage(curve, run.coverage_picture, reporter),
        "oddities": find_oddities(survey, sources, segmented.get("counts", {}), coverage),
        "verdict": finished.get("train", {}).get("counts", {}).get("verdict", {}),
        "plan": compare(run, plan) if plan else {},
        "changed_settings": changed_settings(run, plan) if plan else [],
    }


def _coverage_curve(run: RunDir, survey: TextSurvey | None) -> CoverageCurve:
    """Return how much of the text its most frequent words cover, from the vocabulary if there is one."""
    if run.vocab.exists() and run.vocab_counts.exists():
        counts = load_counts(run.vocab_counts, load_vocabulary(run.vocab))
        return exact_curve(counts[len(SPECIALS) :], sum(counts[UNKNOWN_ID:]))
    if survey is None:
        return exact_curve([])
    return exact_curve((count for _, count in survey.tokens.most_common()), survey.num_tokens)


def _describe(survey: TextSurvey, num_tokens: int) -> dict[str, Any]:
    fractions = survey.kinds.fractions().items()
    return {
        "sentences": survey.num_sentences,
        "tokens": survey.num_tokens,
        "kinds": {what: {kind: round(each, 6) for kind, each in kinds.items()} for what, kinds in fractions},
        "single_character_share": round(survey.single_han_tokens / max(1, survey.num_tokens), 6),
        "sentence_lengths": survey.length_quantiles(),
        "most_frequent": dict(survey.tokens.most_common(num_tokens)),
        "longest": list(survey.longest),
        "samples": list(survey.sentences),
    }


def _draw_coverage(curve: CoverageCurve, output: Path, reporter: Reporter) -> str:
    """Draw a curve as PNG, if it has words and matplotlib is installed; return the path of the picture, or nothing."""
    if len(curve.ranks) < 2:
        return ""
    if not can_draw():
        reporter.note("matplotlib is not installed, so coverage.png is not drawn.")
        return ""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter, StrMethodFormatter

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(curve.ranks[1:], curve.covered[1:])
    axes.set(xscale="log", ylim=(0, 1), xlabel="most frequent words", ylabel="tokens of the training text covered")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(alpha=0.3, which="both")
    save_picture(figure, output)
    return str(output)
