"""Compare a plan with what the run turned out to be."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elmo_zh.config import result_settings
from elmo_zh.errors import RunError
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.plan import PLAN_FORMAT, SECTIONS
from elmo_zh.planning.stage_costs import folder_bytes
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record

STAGES = ("segment", "vocab", "word2vec", "encode", "train", "export")
# Which stage makes what a figure of disk space is about.
MAKERS = {"segmented": "segment", "ids": "encode", "word2vec": "word2vec", "checkpoints": "train", "model": "export"}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One figure as it was planned and as it is."""

    name: str
    planned: Estimate
    actual: float

    @property
    def deviation(self) -> float:
        """By which fraction of the truth the plan was too high."""
        return self.planned.value / self.actual - 1 if self.actual else float(self.planned.value != 0)

    @property
    def is_within(self) -> bool:
        """Whether the truth lies in the interval."""
        return self.planned.holds(self.actual, rounding=1e-6 if self.name == "coverage" else 0.5)

    def described(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        ends = {"planned": self.planned.value, "low": self.planned.low, "high": self.planned.high}
        return {**ends, "actual": self.actual, "deviation": round(self.deviation, 4), "is_within": self.is_within}


def load_plan(run: RunDir) -> dict[str, Any]:
    """Return the run's plan, or an empty one if there is none.

    Raises:
        RunError: If it is damaged, or of another format.
    """
    if not run.plan.exists():
        return {}
    remedy = f"Make it again with: elmo-zh plan CORPUS --run {run.path}"
    try:
        plan = json.loads(run.plan.read_text(encoding="utf-8"))
        for values in plan["figures"].values():
            Estimate.load(values)
        settings, found = plan["settings"], plan["format"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{run.plan} is damaged ({type(error).__name__}: {error}). {remedy}") from None
    if found != PLAN_FORMAT or not isinstance(settings, dict):
        raise RunError(f"{run.plan} is of format {found}, expected {PLAN_FORMAT}. {remedy}")
    return dict(plan)


def compare(run: RunDir, plan: Mapping[str, Any]) -> list[Comparison]:
    """Return every planned figure whose truth the run holds by now."""
    actual = actual_figures(run)
    return [
        Comparison(name=name, planned=Estimate.load(values), actual=actual[name])
        for name, values in plan["figures"].items()
        if name in actual
    ]


def actual_figures(run: RunDir) -> dict[str, float]:
    """Return the figures of the finished stages, by the names that a plan gives them."""
    records = {name: load_record(run.stage_record(name), damaged_is_none=True) for name in STAGES}
    finished = {name: record for name, record in records.items() if record.get("finished")}
    counts: dict[str, dict[str, Any]] = {name: record["counts"] for name, record in finished.items()}
    figures: dict[str, float] = {f"seconds.{name}": record["seconds"] for name, record in finished.items()}
    figures |= {f"bytes.{name}": folder_bytes(getattr(run, name)) for name in MAKERS if MAKERS[name] in finished}
    if segmented := counts.get("segment"):
        names = ("documents", "characters", "kept_characters")
        figures |= {name: segmented[name] for name in names if name in segmented}
        for name in ("sentences", "tokens"):
            figures[name] = segmented[f"train_{name}"] + segmented[f"heldout_{name}"]
    if "vocab" in counts:
        figures |= {name: counts["vocab"][name] for name in ("distinct_words", "rows", "coverage")}
    if "train" in counts:
        # The record's own seconds are those after the last interruption.
        figures["seconds.train"] = counts["train"]["training_seconds"]
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
