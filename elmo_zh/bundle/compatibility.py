"""Determine which other programs can load a model's files, and why the others cannot (docs/interop.md)."""

from collections.abc import Iterator

from elmo_zh.language import N_, _
from elmo_zh.reader.shape import BiLMShape

_PROGRAMS = ("bilm-tf", "AllenNLP", "simple_elmo", "pytorch-fast-elmo")
_ALLENNLP_SLOTS, _TENSORFLOW_LAYERS = 50, 8


def refusals(shape: BiLMShape) -> dict[str, list[str]]:
    """Return, for each other program, the reasons why it cannot load such a model; an empty list means that it can."""
    reasons: dict[str, list[str]] = {name: [] for name in _PROGRAMS}
    for names, reason in _iter_refusals(shape):
        for name in names.split(", "):
            reasons[name].append(reason)
    return reasons


def _iter_refusals(shape: BiLMShape) -> Iterator[tuple[str, str]]:
    """Yield the programs that cannot load the model, and why."""
    characters = shape.characters
    if characters and not characters.is_published:
        yield ", ".join(_PROGRAMS), N_("only the published architecture is supported, not the ELMoForManyLangs one")
        return
    if characters is None:
        yield "AllenNLP, simple_elmo", N_("only character-mode models are supported")
    tensorflow = "bilm-tf, simple_elmo" if characters else "bilm-tf"
    # These read W_P_0 and CNN_proj always.
    pytorch = "AllenNLP, pytorch-fast-elmo" if characters else "pytorch-fast-elmo"
    if shape.num_layers > _TENSORFLOW_LAYERS:
        yield tensorflow, N_("at most 8 layers are supported (model.num_layers)")
    if characters and characters.num_filters < shape.projection_dim:
        yield tensorflow, N_("model.character_filters must have at least model.projection_dim filters")
    if shape.projection_dim >= shape.cell_dim:
        yield pytorch, N_("model.projection_dim must be below model.cell_dim")
    if characters and characters.num_filters == shape.projection_dim:
        yield pytorch, N_("the number of filters must differ from model.projection_dim")
    if not shape.skip_connections:
        yield pytorch, N_("skip connections are always added (model.skip_connections), so the vectors would be wrong")
    if characters and characters.num_slots != _ALLENNLP_SLOTS:
        yield "AllenNLP", N_("50 character slots are required (model.character_slots)")
    if not shape.cell_clip or not shape.projection_clip:
        yield "pytorch-fast-elmo", N_("both clipping limits must be set (model.cell_clip, model.projection_clip)")


def describe_readers(shape: BiLMShape) -> list[str]:
    """Return one line listing the programs that can load the files, and one per set of reasons why others cannot."""
    by_reason: dict[str, list[str]] = {}
    for name, reasons in refusals(shape).items():
        by_reason.setdefault("; ".join(map(_, reasons)), []).append(name)
    able = by_reason.pop("", [])
    lines = [_("Also read by: {names}.").format(names=", ".join(able))] if able else []
    refused = _("Cannot be read by {names}: {reason}.")
    return lines + [refused.format(names=", ".join(names), reason=reason) for reason, names in by_reason.items()]
