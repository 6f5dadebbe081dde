"""Describe the model that a command uses, in a dictionary for programs or in one line for people."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from elmo_zh.bundle.find_bundle import DEFAULT_MODEL, STARTER, shown_model
from elmo_zh.bundle.read import Bundle, History
from elmo_zh.choices import MODELS
from elmo_zh.invocation import path_from_here
from elmo_zh.language import _
from elmo_zh.run.reporter import counted, first_ten, format_date

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
    about = describe_model(bundle)
    path, place = bundle.path, shown_model(bundle.path)
    if path.resolve() != path.absolute():
        place += f" ({path_from_here(path.resolve())})"
    if about["made_by"] != OWN_PROGRAM:
        message = _("Model: {model}, converted from {program}.")
        return message.format(model=place, program=about["made_by"])
    line = _("Model: {model}, trained on {text}.").format(model=place, text=_describe_training(about, bundle.history))
    if path == DEFAULT_MODEL and STARTER in MODELS:
        line += " " + _("This is the newest run's model. To use the starter instead: --model starter")
    return line


def _describe_training(about: Mapping[str, Any], history: History) -> str:
    tokens = about["train_tokens"]
    amount = counted(tokens, "{number} token", "{number} tokens") if isinstance(tokens, int) else ""
    sources = first_ten(list(history.corpus))
    date = format_date(history.trained_at) if history.trained_at else ""
    return ", ".join(filter(None, [sources, amount, date])) or _("unknown text")
