"""Describe the model that a command uses, in a dictionary for programs or in one line for people."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from elmo_zh.bundle.find_bundle import DEFAULT_MODEL, STARTER, shown_model
from elmo_zh.bundle.read import Bundle, History
from elmo_zh.choices import MODELS
from elmo_zh.invocation import path_from_here
from elmo_zh.run.reporter import counted, format_date

OWN_PROGRAM = "elmo-zh"


def describe_model(bundle: Bundle) -> dict[str, Any]:
    """Describe a model by path, digest, program, number of training tokens, run, corpus and date."""
    return {
        "path": str(bundle.path),
        "digest": bundle.digest,
        "made_by": bundle.info["origin"].get("program", OWN_PROGRAM),
        "train_tokens": bundle.info["training"].get("train_tokens"),
        **asdict(bundle.history),
    }


def model_line(bundle: Bundle) -> str:
    """Return the line that tells the user which model a command uses."""
    found = describe_model(bundle)
    path, place = bundle.path, shown_model(bundle.path)
    if path.resolve() != path.absolute():
        place += f" ({path_from_here(path.resolve())})"
    if found["made_by"] != OWN_PROGRAM:
        return f"Model: {place}, converted from {found['made_by']}."
    line = f"Model: {place}, trained on {_describe_training(found, bundle.history)}."
    is_newest = path == DEFAULT_MODEL and STARTER in MODELS
    return f"{line} This is the newest run's model. To use the starter instead: --model starter" if is_newest else line


def _describe_training(found: Mapping[str, Any], history: History) -> str:
    tokens = found["train_tokens"]
    amount = counted(tokens, "token") if isinstance(tokens, int) else ""
    if history.corpus:
        corpus = history.corpus[0]
        if more := history.num_sources - 1:
            corpus = f"{corpus} along with {counted(more, 'other source')}"
        text = f"{corpus} ({amount} of text)" if amount else corpus
    else:
        text = amount or "unknown text"
    date = f", {format_date(history.trained_at)}" if history.trained_at else ""
    return f"{text}{date}"
