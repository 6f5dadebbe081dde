"""Determine which other programs can load a model's files, and why the others cannot (docs/interop.md)."""

from elmo_zh.reader.shape import BiLMShape

_ALLENNLP_SLOTS = 50
_TENSORFLOW_LAYERS = 8
_CHARACTERS_ONLY = "only character-mode models are supported"


def refusals(shape: BiLMShape) -> dict[str, list[str]]:
    """Return, for each other program, the reasons why it cannot load such a model; an empty list means that it can."""
    if shape.characters and not shape.characters.is_published:
        reason = "only the published architecture is supported, not the ELMoForManyLangs one"
        return {name: [reason] for name in ("bilm-tf", "AllenNLP", "simple_elmo", "pytorch-fast-elmo")}
    return {
        "bilm-tf": _tensorflow(shape),
        "AllenNLP": _allennlp(shape),
        "simple_elmo": _tensorflow(shape) if shape.characters else [_CHARACTERS_ONLY],
        "pytorch-fast-elmo": _fast_elmo(shape),
    }


def _tensorflow(shape: BiLMShape) -> list[str]:
    reasons = []
    if shape.num_layers > _TENSORFLOW_LAYERS:
        reasons.append(f"at most {_TENSORFLOW_LAYERS} layers are supported (model.num_layers)")
    if shape.characters and shape.characters.num_filters < shape.projection_dim:
        reasons.append("there must be at least as many filters as projection dimensions (model.character_filters)")
    return reasons


def _allennlp(shape: BiLMShape) -> list[str]:
    if shape.characters is None:
        return [_CHARACTERS_ONLY]
    reasons = _without_projections(shape)
    if not shape.skip_connections:
        reasons.append("skip connections are required (model.skip_connections)")
    if shape.characters.num_slots != _ALLENNLP_SLOTS:
        reasons.append(f"{_ALLENNLP_SLOTS} character slots are required (model.character_slots)")
    return reasons


def _fast_elmo(shape: BiLMShape) -> list[str]:
    reasons = _without_projections(shape)
    if not shape.skip_connections:
        reasons.append("skip connections are always added (model.skip_connections), so the vectors would be wrong")
    if not shape.cell_clip or not shape.projection_clip:
        reasons.append("both clipping limits must be set (model.cell_clip, model.projection_clip)")
    return reasons


def _without_projections(shape: BiLMShape) -> list[str]:
    """Return the reasons why the model cannot be loaded by programs that always read W_P_0 and CNN_proj."""
    reasons = []
    if shape.projection_dim >= shape.cell_dim:
        reasons.append("the projection must be narrower than the cell (model.projection_dim below model.cell_dim)")
    if shape.characters and shape.characters.num_filters == shape.projection_dim:
        reasons.append("CNN_proj is required, so the number of filters must differ from model.projection_dim")
    return reasons


def describe_readers(shape: BiLMShape) -> list[str]:
    """Return one line listing the programs that can load the files, and one per set of reasons why others cannot."""
    by_reason: dict[str, list[str]] = {}
    for name, reasons in refusals(shape).items():
        by_reason.setdefault("; ".join(reasons), []).append(name)
    able = by_reason.pop("", [])
    lines = [f"Also read by: {', '.join(able)}." if able else "No other program can read this model."]
    return lines + [f"Cannot be read by {', '.join(names)}: {reason}." for reason, names in by_reason.items()]
