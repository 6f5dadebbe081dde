"""The files of a trained task, including its description in task.json."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from elmo_zh.choices import EMBED_PRECISIONS
from elmo_zh.config.declare import problems_of
from elmo_zh.config.task_settings import INPUTS, KINDS, SCHEMES, HeadSettings
from elmo_zh.errors import OutputError, RunError
from elmo_zh.run.files import file_digest, read_json, write_json
from elmo_zh.run.mark import require_unchanged, write_mark
from elmo_zh.tasks.layers import Sizes
from elmo_zh.tasks.mixture import MEMBERS, NETWORK
from elmo_zh.version import __version__

# The format of a task that is a network alone, and of one that is a mixture.
TASK_FORMAT, MIXTURE_FORMAT = 1, 3


class TaskLayout:
    """The paths of the files in a trained task's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.description = path / "task.json"
        self.head = path / "head.safetensors"
        # The linear models of a mixture; with them the network may be missing.
        self.linear = path / "linear.safetensors"
        # The bundle with the biLM that was trained with the network; only with --fine-tune.
        self.model = path / "model"
        # The figures of each epoch, one JSON object a line, and their picture.
        self.metrics, self.curve = path / "metrics.jsonl", path / "curve.png"
        # Pictures of the labels that were confused, and of predicted numbers against true ones.
        self.confusion, self.scatter = path / "confusion.png", path / "scatter.png"


@dataclass(frozen=True, kw_only=True)
class TaskDescription:
    """The content of task.json: everything needed to use a trained task, apart from weights."""

    settings: HeadSettings  # the choices for the network
    sizes: Sizes
    labels: tuple[str, ...]  # names of the classes or tags, in the order of the network's outputs; empty for numbers
    scheme: str  # in tagging the scheme of the data, BIO, BMES or BIOES; "" for tags that mark no spans
    by_words: bool  # whether units are words; else characters
    alphabet: str  # the characters with vectors of their own
    mean: float  # mean of the numbers in training, for regression
    scale: float  # their standard deviation
    # The bundle's path in training, its digest, `unknown` and `precision` of `ElmoEmbedder.load` (unk and float32 if
    # missing). If the biLM was trained too, the digest is for the bundle in the task's folder, and `started_from` has
    # the digest of the bundle it started from.
    model: Mapping[str, Any]
    training: Mapping[str, Any]  # seeds, epochs and the other settings of the training, names of files and columns
    scores: Mapping[str, Any]  # scores on the development and test examples, of each seed and of the chosen one
    layer_weights: Mapping[str, list[float]]  # the weight of each ELMo layer, by place: input, output
    members: Mapping[str, float] = field(default_factory=dict)  # weights in the mixture; empty for a network alone
    digests: Mapping[str, str] = field(default_factory=dict)  # of the files with weights; older tasks have none

    @property
    def marks_spans(self) -> bool:
        """Whether the tags mark spans."""
        return bool(self.scheme)

    @property
    def has_network(self) -> bool:
        """Whether predictions use a network, alone or in a mixture."""
        return not self.members or NETWORK in self.members

    def reads(self, name: str) -> bool:
        """Return whether a network or a linear model uses an input."""
        return name in self.members or (self.has_network and name in self.settings.inputs)

    @property
    def columns(self) -> tuple[str, ...]:
        """The text and label columns of the training data, also used for other files; empty if unknown."""
        return tuple(self.training.get("columns", ()))

    def save(self, layout: TaskLayout) -> None:
        """Write task.json, including the digests of existing weights, and the mark of the complete folder."""
        files = [path for path in (layout.head, layout.linear) if path.is_file()]
        own = {**asdict(self), "digests": {path.name: file_digest(path) for path in files}}
        number = MIXTURE_FORMAT if self.members else TASK_FORMAT
        write_json(layout.description, {"format": number, "elmo_zh": __version__, **own})
        write_mark(layout.path, "task", number, {"model": self.model.get("digest")})


def load_description(layout: TaskLayout) -> TaskDescription:
    """Read task.json; raise RunError if it is missing, damaged or from a different version."""
    path = layout.description
    if not path.is_file():
        raise RunError(f"{layout.path} has no trained task (task.json is missing). Train one with: elmo-zh task fit")
    try:
        require_unchanged(path, "Copy the folder again, or train the task again with: elmo-zh task fit")
        found = read_json(path)
        if found["format"] not in (TASK_FORMAT, MIXTURE_FORMAT):
            raise RunError(
                f"{path} has format {found['format']}, but this version of elmo-zh reads only formats"
                f" {TASK_FORMAT} and {MIXTURE_FORMAT}. Update elmo-zh, or train the task again with: elmo-zh task fit"
            )
        later = {name: dict(found.get(name, {})) for name in ("members", "digests")}
        values = {each.name: found[each.name] for each in fields(TaskDescription) if each.name not in later} | later
        values["settings"] = HeadSettings(**{**found["settings"], "inputs": tuple(found["settings"]["inputs"])})
        values["sizes"] = Sizes(**found["sizes"])
        values["labels"] = tuple(str(label) for label in found["labels"])
        description = TaskDescription(**values)
        _require_types(description)
        return description
    except OutputError as error:
        raise RunError(*error.messages) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is damaged ({error!r:.80}). Train the task again with: elmo-zh task fit") from None


def _require_types(description: TaskDescription) -> None:
    """Raise ValueError, KeyError or TypeError for a value that no training would write."""
    settings, sizes, model = description.settings, description.sizes, description.model
    needed = {"word2vec": [sizes.word2vec_dim], "elmo": [sizes.num_layers, sizes.elmo_dim]}
    # Two numbers stand for padding and for unknown characters.
    needed["characters"] = [sizes.num_characters, sizes.num_characters - 1 - len(description.alphabet)]
    numbers = settings.dropout, settings.mix_penalty, description.mean, description.scale
    whole = asdict(sizes).values(), (settings.hidden_dim, settings.character_dim)
    chosen = {
        "sizes": all(type(number) is int and 0 <= number < 2**31 for each in whole for number in each)
        and min(sizes.num_outputs, settings.character_dim) > 0
        and all(size > 0 for name in settings.inputs for size in needed.get(name, [])),
        "settings": settings.kind in KINDS and not list(problems_of(settings)),
        "inputs": bool(settings.inputs) and set(settings.inputs) <= set(INPUTS),
        "numbers": all(isinstance(number, int | float) and math.isfinite(number) for number in numbers),
        "dropout": 0 <= settings.dropout <= 1,
        "scheme": description.scheme in ("", *SCHEMES),
        "alphabet": isinstance(description.alphabet, str),
        "labels": settings.regression or len(description.labels) == sizes.num_outputs,
        "members": set(description.members) <= set(() if settings.kind == "tag" else MEMBERS)
        and all(isinstance(weight, float) and 0 < weight <= 1 for weight in description.members.values()),
        "model": all(isinstance(model[name], str) for name in ("path", "digest")),
        "unknown": model.get("unknown", "unk") in ("unk", "backoff"),
        "precision": model.get("precision", "float32") in EMBED_PRECISIONS,
        "columns": all(isinstance(column, str) for column in description.training.get("columns", ())),
        "truths": isinstance(settings.regression, bool) and isinstance(description.by_words, bool),
        **{name: isinstance(getattr(description, name), dict) for name in ("training", "scores", "layer_weights")},
    }
    if wrong := [name for name, is_right in chosen.items() if not is_right]:
        raise ValueError(f"{wrong[0]}: not as task fit writes it")
