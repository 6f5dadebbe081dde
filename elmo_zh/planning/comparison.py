"""What was planned beside what came of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elmo_zh.errors import RunError
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.plan import PLAN_FORMAT, SECTIONS
from elmo_zh.planning.stage_pace import folder_bytes
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One figure as it was planned and as it is."""

    name: str
    planned: Estimate
    actual: float

    @property
    def deviation(self) -> float:
        """How much more was planned than came, as a share of what came."""
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
    remedy = "Make it again with: elmo-zh plan CORPUS --run"
    try:
        plan = json.loads(run.plan.read_text(encoding="utf-8"))
        for values in plan["figures"].values():
            Estimate.load(values)
        settings = plan["settings"]
        found = plan["format"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{run.plan} is damaged ({type(error).__name__}: {error}). {remedy} {run.path}") from None
    if found != PLAN_FORMAT or not isinstance(settings, dict):
        raise RunError(f"{run.plan} is of format {found}, expected {PLAN_FORMAT}. {remedy} {run.path}")
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
    """Return the figures of the stages that are done, by the names that a plan gives them."""
    records = {name: load_record(run.stage_record(name), damaged_is_none=True) for name in _RECORDED}
    done = {name: record for name, record in records.items() if record.get("finished")}
    figures: dict[str, float] = {f"seconds.{name}": record["seconds"] for name, record in done.items()}
    if "segment" in done:
        counts = done["segment"]["counts"]
        figures |= {name: counts[name] for name in ("documents", "characters", "kept_characters") if name in counts}
        figures["sentences"] = counts["train_sentences"] + counts["heldout_sentences"]
        figures["tokens"] = counts["train_tokens"] + counts["heldout_tokens"]
    if "vocab" in done:
        figures |= {name: done["vocab"]["counts"][name] for name in ("distinct_words", "rows", "coverage")}
    if "train" in done:
        # A stage that was interrupted counts its last part only.
        figures["seconds.train"] = done["train"]["counts"]["training_seconds"]
    made = {"segmented": run.segmented, "word2vec": run.word2vec, "ids": run.ids}
    made |= {"checkpoints": run.checkpoints, "model": run.model}
    makers = {
        "segmented": "segment",
        "word2vec": "word2vec",
        "ids": "encode",
        "checkpoints": "train",
        "model": "export",
    }
    figures |= {f"bytes.{name}": folder_bytes(path) for name, path in made.items() if makers[name] in done}
    figures.pop("seconds.export", None)
    return figures


_RECORDED = ("segment", "vocab", "word2vec", "encode", "train", "export")


def changed_settings(run: RunDir, plan: Mapping[str, Any]) -> list[str]:
    """Return the settings that are no longer what the plan was made with, as section.key."""
    from elmo_zh.config import result_settings

    if not run.config.exists():
        return []
    config = run.load_config(None, [])
    return [
        f"{section}.{key}"
        for section in SECTIONS
        for key, value in result_settings(getattr(config, section)).items()
        if plan["settings"].get(section, {}).get(key, value) != value
    ]
