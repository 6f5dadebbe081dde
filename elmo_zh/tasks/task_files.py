"""The folder of a trained task: its files, and task.json, which describes it."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from elmo_zh.choices import EMBED_PRECISIONS, UNKNOWN_WAYS
from elmo_zh.errors import RunError
from elmo_zh.run.files import write_json
from elmo_zh.tasks.data.schemes import SCHEMES
from elmo_zh.tasks.networks.settings import ELMO_PLACES, ENCODERS, HEADS, INPUTS, METRICS, HeadSettings, Sizes
from elmo_zh.version import __version__

TASK_FORMAT = 1


@dataclass(frozen=True)
class TaskLayout:
    """The names of all files of a trained task."""

    path: Path

    @property
    def description(self) -> Path:
        """The description of the task, and of what it was trained with."""
        return self.path / "task.json"

    @property
    def head(self) -> Path:
        """The weights of the network."""
        return self.path / "head.safetensors"

    @property
    def model(self) -> Path:
        """The bundle with the biLM that was trained with the network; only with --fine-tune."""
        return self.path / "model"

    @property
    def metrics(self) -> Path:
        """The figures of each epoch, one JSON object a line."""
        return self.path / "metrics.jsonl"

    @property
    def curve(self) -> Path:
        """The picture of loss and score by epoch."""
        return self.path / "curve.png"

    @property
    def confusion(self) -> Path:
        """The picture of which label was taken for which."""
        return self.path / "confusion.png"

    @property
    def scatter(self) -> Path:
        """The picture of predicted numbers by the true ones."""
        return self.path / "scatter.png"


@dataclass(frozen=True, kw_only=True)
class TaskDescription:
    """The content of task.json.

    Attributes:
        settings: The choices for the network.
        sizes: Its sizes.
        labels: Names of the classes or tags, in the order of the network's outputs; empty for numbers.
        scheme: In tagging the scheme of the data, BIO, BMES or BIOES; "" for tags that mark no spans.
        by_words: Whether units are words; else characters.
        alphabet: The characters with vectors of their own.
        mean: Mean of the numbers in training, for regression.
        scale: Their standard deviation.
        model: The bundle: its path as it was given, its digest, the input for unknown words and the precision
            (`ElmoEmbedder.load`; unk and float32 if they are not there); if the biLM was trained too, the digest of
            the bundle in the folder, and of the one it started from as `started_from`.
        training: Seeds, epochs and the other settings of the training, and the names of the files.
        scores: Scores on the development and test examples, of each seed and of the chosen one.
        layer_weights: The factor of each layer of ELMo, where it goes in.
    """

    settings: HeadSettings
    sizes: Sizes
    labels: tuple[str, ...]
    scheme: str
    by_words: bool
    alphabet: str
    mean: float
    scale: float
    model: Mapping[str, Any]
    training: Mapping[str, Any]
    scores: Mapping[str, Any]
    layer_weights: Mapping[str, list[float]]

    @property
    def marks_spans(self) -> bool:
        """Whether tags mark spans."""
        return bool(self.scheme)

    def save(self, path: Path) -> None:
        """Write task.json."""
        write_json(path, {"format": TASK_FORMAT, "elmo_zh": __version__, **asdict(self)})


def is_trained_task(path: Path) -> bool:
    """Return whether a folder is that of a trained task."""
    return TaskLayout(path).description.is_file()


def load_description(layout: TaskLayout) -> TaskDescription:
    """Read task.json.

    Raises:
        RunError: If the folder holds no trained task, or the file is damaged or of another version.
    """
    path = layout.description
    if not path.is_file():
        raise RunError(f"{layout.path} holds no trained task (task.json is missing). Train one with: elmo-zh task fit")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != TASK_FORMAT:
            raise RunError(f"{path}: format {found['format']}, expected {TASK_FORMAT}. Update elmo-zh.")
        values = {field.name: found[field.name] for field in fields(TaskDescription)}
        values["settings"] = HeadSettings(**{**found["settings"], "inputs": tuple(found["settings"]["inputs"])})
        values["sizes"] = Sizes(**found["sizes"])
        values["labels"] = tuple(str(label) for label in found["labels"])
        numbers = list(asdict(values["sizes"]).values())
        if not all(type(number) is int and 0 <= number < 2**31 for number in numbers):
            raise ValueError("a size is not a number")
        description = TaskDescription(**values)
        _require_types(description)
        return description
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({error!r:.80}). Train the task again with: elmo-zh task fit") from None


def _require_types(description: TaskDescription) -> None:
    """Raise ValueError, KeyError or TypeError for a value that no training has written."""
    settings = description.settings
    chosen = {
        "kind": settings.kind in ("classify", "tag", "pairs"),
        "head": settings.head in HEADS,
        "encoder": settings.encoder in ENCODERS,
        "elmo_at": settings.elmo_at in ELMO_PLACES,
        "metric": settings.metric in METRICS,
        "inputs": bool(settings.inputs) and set(settings.inputs) <= set(INPUTS),
        "scheme": description.scheme in ("", *SCHEMES),
        "alphabet": isinstance(description.alphabet, str),
        "labels": settings.regression or len(description.labels) == description.sizes.num_outputs,
        "model": all(isinstance(description.model[name], str) for name in ("path", "digest")),
        "unknown": description.model.get("unknown", "unk") in UNKNOWN_WAYS,
        "precision": description.model.get("precision", "float32") in EMBED_PRECISIONS,
    }
    sizes = description.sizes
    needed = {"word2vec": [sizes.word2vec_dim], "elmo": [sizes.num_layers, sizes.elmo_dim]}
    needed["characters"] = [sizes.num_characters]
    chosen["sizes"] = sizes.num_outputs > 0 and all(
        size > 0 for name in settings.inputs for size in needed.get(name, [])
    )
    for name in ("hidden_dim", "character_dim"):
        size = getattr(settings, name)
        chosen[name] = type(size) is int and 0 < size < 2**31
    for name, number in (("dropout", settings.dropout), ("mean", description.mean), ("scale", description.scale)):
        chosen[name] = isinstance(number, int | float) and math.isfinite(number)
    chosen["mix_penalty"] = isinstance(settings.mix_penalty, int | float)
    chosen["dropout"] = chosen["dropout"] and 0 <= settings.dropout <= 1
    if "characters" in settings.inputs:
        # Two numbers are those of padding and of unknown characters.
        chosen["alphabet"] = chosen["alphabet"] and len(description.alphabet) + 2 <= sizes.num_characters
    for name, truth in (("regression", settings.regression), ("by_words", description.by_words)):
        chosen[name] = isinstance(truth, bool)
    for name in ("training", "scores", "layer_weights"):
        chosen[name] = isinstance(getattr(description, name), dict)
    if wrong := [name for name, is_right in chosen.items() if not is_right]:
        raise ValueError(f"{wrong[0]} is not as task fit writes it")
