"""Compare a plan with what the run turned out to be."""

from collections.abc import Mapping
from typing import Any

from elmo_zh.config import result_settings
from elmo_zh.errors import RunError
from elmo_zh.invocation import command
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.plan import PLAN_FORMAT, SECTIONS
from elmo_zh.run.files import folder_bytes, read_json
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import finished_stages

# Figures of the corpus, in the order in which they are shown.
_TOTALS = ("documents", "characters", "kept_characters", "sentences", "tokens")
CORPUS_FIGURES = (*_TOTALS, "distinct_words", "rows", "coverage")
# Which stage makes what a figure of disk space is about.
MAKERS = {"segmented": "segment", "ids": "encode", "word2vec": "word2vec", "checkpoints": "train", "model": "export"}


def load_plan(run: RunDir) -> dict[str, Any]:
    """Return the run's plan, or an empty one if there is none.

    Raises:
        RunError: If it is damaged, or of another format.
    """
    if not run.plan.exists():
        return {}
    remedy = f"Make it again with: {command('plan', 'CORPUS', '--run', run.path)}"
    try:
        plan = read_json(run.plan)
        for values in plan["figures"].values():
            Estimate.load(values)
        settings, found = plan["settings"], plan["format"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{run.plan} is damaged ({type(error).__name__}: {error}). {remedy}") from None
    if found != PLAN_FORMAT or not isinstance(settings, dict):
        raise RunError(f"{run.plan} is of format {found}, expected {PLAN_FORMAT}. {remedy}")
    return dict(plan)


def compare(run: RunDir, plan: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every planned figure whose truth the run holds by now.

    Each has planned, low, high, actual, deviation (by which fraction of the truth the plan was too high) and is_within
    (whether the truth lies in the interval).
    """
    actual = actual_figures(run)
    found = {}
    for name in (name for name in plan["figures"] if name in actual):
        planned, truth = Estimate.load(plan["figures"][name]), actual[name]
        deviation = planned.value / truth - 1 if truth else float(planned.value != 0)
        is_within = planned.holds(truth, rounding=1e-6 if name == "coverage" else 0.5)
        ends = {"planned": planned.value, "low": planned.low, "high": planned.high}
        found[name] = {**ends, "actual": truth, "deviation": round(deviation, 4), "is_within": is_within}
    return found


def actual_figures(run: RunDir) -> dict[str, float]:
    """Return the figures of the finished stages, by the names that a plan gives them."""
    finished = finished_stages(run, damaged_is_none=True)
    figures: dict[str, float] = {f"seconds.{name}": record["seconds"] for name, record in finished.items()}
    figures |= {f"bytes.{name}": folder_bytes(getattr(run, name)) for name in MAKERS if MAKERS[name] in finished}
    segmented, counted = (finished.get(name, {}).get("counts", {}) for name in ("segment", "vocab"))
    counts = {**segmented, **counted}
    if "segment" in finished:
        counts |= {name: counts[f"train_{name}"] + counts[f"heldout_{name}"] for name in ("sentences", "tokens")}
    figures |= {name: counts[name] for name in CORPUS_FIGURES if name in counts}
    if "train" in finished:
        # The record's own seconds are those after the last interruption.
        figures["seconds.train"] = finished["train"]["counts"]["training_seconds"]
    return figures


def changed_settings(run: RunDir, plan: Mapping[str, Any]) -> list[str]:
    """Return the settings that are no longer those of the plan, as section.key."""
    if not run.config.exists():
        return []
    config = run.load_config(None, [])
    return [
        f"{section}.{key}"
        for section in SECTIONS
        for key, value in result_settings(getattr(config, section)).items()
        if plan["settings"].get(section, {}).get(key, value) != value
    ]
