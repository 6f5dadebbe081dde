"""Describe a bundle, and run its self-test."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from elmo_zh.bundle.compatibility import describe_readers, refusals
from elmo_zh.bundle.description import describe_model
from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.bundle.weights import count_parameters
from elmo_zh.embed.selftest import run_selftest
from elmo_zh.info.description import Description, rows
from elmo_zh.invocation import command
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import format_date

_RESULTS = {True: N_("ok"), False: N_("FAILED"), None: N_("skip")}
POOR_FROM_ZERO = N_(
    "This model was trained with carried state, so its vectors from zero state are poor. Convert it with"
    " --warm-on TEXT to give it a warm state, or embed with --stateful."
)


def describe_bundle(path: Path, *, check: bool, device: str) -> Description:
    """Describe a bundle after checking the digests of its files; with `check`, also run its self-test."""
    bundle = load_bundle(path)
    values = _values_of(bundle)
    lines = [str(path), *rows(_for_people(values, bundle)), *describe_readers(bundle.shape)]
    problems: list[str] = []
    if check:
        checks = run_selftest(bundle, device)
        problems = [result.name for result in checks if result.passed is False]
        values["checks"] = [asdict(result) for result in checks]
        lines += [f"{_(_RESULTS[result.passed]):6} {_(result.name)}: {result.found}" for result in checks]
    if bundle.needs_warm_state():
        lines.append(_(POOR_FROM_ZERO))
    segmented = () if bundle.text else ("--segmented",)
    values["next"] = command("embed", "file.txt", "--model", path, *segmented)
    lines.append(_("Next: {command}").format(command=values["next"]))
    return Description(values, lines, problems)


def _values_of(bundle: Bundle) -> dict[str, Any]:
    shape = bundle.shape
    sizes = {field.name: getattr(shape, field.name) for field in fields(shape) if field.name != "characters"}
    if bundle.vocabulary is None:
        del sizes["num_tokens"]
    return {
        "kind": "bundle",
        "path": str(bundle.path),
        "digest": bundle.digest,
        "mode": shape.mode,
        "origin": bundle.info["origin"],
        "sizes": sizes,
        "characters": asdict(shape.characters) if shape.characters else None,
        "parameters": count_parameters(bundle.weights),
        "softmax": bundle.weights.has_softmax,
        "tied_softmax": bundle.weights.is_tied,
        "vocabulary": len(bundle.vocabulary) if bundle.vocabulary else None,
        "segmenter": bundle.info["segmenter"],
        "text": bundle.info["text"],
        "carry_state": bundle.info["carry_state"],
        "warm_state": bundle.weights.warm_state is not None,
        "training": bundle.info["training"],
        "history": asdict(bundle.history),
        "digests": bundle.info["digests"],
        "readers": refusals(shape),
    }


def _for_people(values: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
    """Return the values to show to people, each once."""
    about = describe_model(bundle)
    shown: dict[str, Any] = {"made_by": about["made_by"], "corpus": about["corpus"]}
    shown |= {"date": format_date(about["trained_at"])} if about["trained_at"] else {}
    names = ("mode", "sizes", "characters", "parameters", "softmax", "tied_softmax", "vocabulary", "segmenter")
    shown |= {name: values[name] for name in (*names, "carry_state", "warm_state", "training")}
    split = (values["text"] or {}).get("split_unknown")
    shown |= {"split_unknown": split} if split is not None else {}
    shown |= {name: value for name, value in values["origin"].items() if name != "program"}
    return {**shown, **values["digests"]}
