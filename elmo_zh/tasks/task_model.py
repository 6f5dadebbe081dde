"""A trained task: the files of its folder, its description in task.json, and TaskModel, which labels text."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from msgspec import ValidationError, convert
from safetensors import SafetensorError

from elmo_zh.bundle.find_bundle import explain_no_starter, find_bundle, find_same_bundle, other_model
from elmo_zh.bundle.weights import load_tensors, save_tensors
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.checks import check_list, check_strings, refusal
from elmo_zh.config.declare import problems_of
from elmo_zh.config.task_settings import INPUTS, KINDS, SCHEMES, HeadSettings, Reading
from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.corpus.readers.examples import Example, UnlabelledError, count_labels, require_same_units
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OTHER_DIGEST, BundleError, CorpusError, OutputError, RunError
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.run.files import file_digest, read_json, write_json
from elmo_zh.run.outputs import require_unchanged, write_mark
from elmo_zh.run.reporter import Reporter, first_ten
from elmo_zh.tasks.datasets import report_reading, warn_of_new_labels
from elmo_zh.tasks.encode_texts import (
    FIRST_CHARACTER,
    TextEncoder,
    TextReader,
    Texts,
    UnitText,
    VectorCache,
    read_alike,
    sentences_of,
)
from elmo_zh.tasks.linear import MEMBERS, NETWORK, Features, LinearModel, load_members, mix, network_logs, save_members
from elmo_zh.tasks.networks import Sizes, TaskHead, predict_all
from elmo_zh.tasks.scores import (
    Answers,
    ClassPrediction,
    NumberPrediction,
    Prediction,
    main_metric,
    score_answers,
    tag_prediction,
)
from elmo_zh.text.sentences import iter_windows
from elmo_zh.version import __version__

# The format of a task that is a network alone, and of one that is a mixture.
TASK_FORMAT, MIXTURE_FORMAT = 1, 3
_WINDOW_CHARACTERS = 40_000
Text = str | Sequence[str]
Weights = TypeVar("Weights")
_MOST_LAYERS = 1000  # Of the biLM that a task names


class TaskLayout:
    """The paths of the files in a trained task's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.description = path / "task.json"
        self.head = path / "head.safetensors"
        # The linear models of a mixture; with them the network may be missing.
        self.linear = path / "linear.safetensors"
        # The figures of each epoch, one JSON object a line, and their picture.
        self.metrics, self.curve = path / "metrics.jsonl", path / "curve.png"
        self.confusion = path / "confusion.png"


@dataclass(frozen=True, kw_only=True)
class TaskDescription:
    """The content of task.json: what a trained task needs besides its weights and its bundle."""

    settings: HeadSettings  # the choices for the network
    sizes: Sizes
    labels: tuple[str, ...]  # names of the classes or tags, in the order of the network's outputs; empty for numbers
    scheme: str  # in tagging the scheme of the data, BIO, BMES or BIOES; "" for tags that mark no spans
    by_words: bool  # whether units are words; else characters
    alphabet: str  # the characters with vectors of their own
    mean: float  # mean of the numbers in training, for regression
    scale: float  # their standard deviation
    # The bundle's path in training, its digest, and `unknown` and `precision` of `ElmoEmbedder.load`
    model: Mapping[str, str]
    training: Mapping[str, Any]  # seeds, epochs and the other settings of the training, names of files and columns
    # Scores on the development and test examples, of each seed and of the chosen one, and of a mixture's members
    scores: Mapping[str, Any] = field(default_factory=dict)
    layer_weights: Sequence[float] = ()  # the weight of each ELMo layer in the network's input
    members: Mapping[str, float] = field(default_factory=dict)  # weights in the mixture; empty for a network alone
    digests: Mapping[str, str] = field(default_factory=dict)  # of the files with weights

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


def write_task(
    layout: TaskLayout, description: TaskDescription, head: TaskHead | None, linear: Mapping[str, LinearModel]
) -> TaskDescription:
    """Write weights, task.json and the mark of the complete folder; return the description with the digests."""
    if head is not None:
        save_tensors({name: weights.contiguous() for name, weights in head.state_dict().items()}, layout.head)
    if linear:
        save_members(layout.linear, linear)
    files = [path for path in (layout.head, layout.linear) if path.is_file()]
    description = replace(description, digests={path.name: file_digest(path) for path in files})
    number = MIXTURE_FORMAT if description.members else TASK_FORMAT
    write_json(layout.description, {"format": number, "elmo_zh": __version__, **asdict(description)})
    write_mark(layout.path, "task", number, {"model": description.model.get("digest")})
    return description


def load_description(layout: TaskLayout) -> TaskDescription:
    """Read task.json; raise RunError if it is missing, damaged or in an unknown format."""
    path = layout.description
    if not path.is_file():
        raise RunError.missing(path, command("task", "fit"))
    try:
        require_unchanged(path)
        content = read_json(path)
        if content["format"] not in (TASK_FORMAT, MIXTURE_FORMAT):
            raise RunError.of_format(path, content["format"])
        description = convert(content, TaskDescription)
        _require_sound(description)
        return description
    except OutputError as error:
        raise RunError(*error.messages) from None
    except (ValidationError, ValueError, KeyError, TypeError) as error:
        raise RunError.damaged(path, error) from None


def _require_sound(description: TaskDescription) -> None:
    """Raise ValueError for values that no training would write."""
    settings, sizes, inputs = description.settings, description.sizes, description.settings.inputs
    conditions = {
        "settings": settings.kind in KINDS and not list(problems_of(settings)),
        "inputs": bool(inputs) and set(inputs) <= set(INPUTS),
        "labels": settings.regression or len(description.labels) == sizes.num_outputs,
        "scheme": description.scheme in ("", *SCHEMES),
        "alphabet": "characters" not in inputs or len(description.alphabet) == sizes.num_characters - FIRST_CHARACTER,
        "sizes": sizes.num_layers <= _MOST_LAYERS and max(vars(sizes).values()) < 2**31,
        "members": set(description.members) <= set(MEMBERS),
        "model": {"path", "digest", "unknown", "precision"} <= description.model.keys(),
    }
    if wrong := [name for name, is_sound in conditions.items() if not is_sound]:
        raise ValueError(f"{wrong[0]}: not as task fit writes it")


class TaskModel:
    """A trained task, which predicts classes, numbers or tags, with its bundle.

        model = TaskModel.load("my-tagger")
        [prediction] = model.predict(["李白是唐代诗人"])
        prediction.spans

    Attributes:
        description: Content of task.json: labels, settings, scores.
        embedder: Computes vectors with the bundle.
    """

    def __init__(
        self,
        description: TaskDescription,
        head: TaskHead | None,
        linear: Mapping[str, LinearModel],
        embedder: ElmoEmbedder,
    ) -> None:
        self.description, self.embedder = description, embedder
        self._head, self._linear = head and head.eval(), linear
        self._word2vec = Word2Vec.load(embedder.bundle.path) if description.reads("word2vec") else None
        self._reader = TextReader(embedder, by_words=description.by_words)

    @classmethod
    def load(cls, path: str | Path, model: str | Path | None = None, device: str = "auto") -> "TaskModel":
        """Load a trained task.

        Args:
            path: The folder written by `task fit`.
            model: The bundle, if it has moved since the task was trained.
            device: Device of the biLM: auto (a GPU if there is one), cpu or cuda.

        Raises:
            TypeError: If `path` is not a path.
            RunError: If the folder is not a trained task, or is damaged.
            BundleError: If the bundle is missing or differs from the one used in training.
        """
        layout = TaskLayout(Path(path))
        description = load_description(layout)
        head, linear = load_weights(layout, description)
        folder, made_with = _find_model(layout, description, model), description.model
        embedder = ElmoEmbedder.load(folder, device, made_with["precision"], unknown=made_with["unknown"])
        if embedder.bundle.digest != made_with["digest"]:
            raise other_model(layout.path, made_with["path"], made_with["digest"], folder, embedder.bundle.digest)
        return cls(description, head, linear, embedder)

    def predict(self, texts: Iterable[Text]) -> list[Prediction]:
        """Predict labels for raw texts.

        Args:
            texts: Strings; for pairs, two strings each.

        Returns:
            For each text or pair, a `ClassPrediction`, a `NumberPrediction` or a `TagPrediction`.

        Raises:
            TypeError: If a single string is given, or an item is not a string (for pairs, two strings).
        """
        return list(self.iter_predict(texts))

    def iter_predict(self, texts: Iterable[Text]) -> Iterator[Prediction]:
        """Yield the predictions of `predict` one by one; up to 2,000 texts are read ahead."""
        checked = map(self._check, check_list(texts, "predict", "texts", "a list of texts"))
        for window in iter_windows(checked, lambda texts: sum(map(len, texts)), most_size=_WINDOW_CHARACTERS):
            read = [[self._reader.read(text) for text in texts] for texts in window]
            outputs = self._outputs(read)
            yield from map(self._prediction, read, outputs, answers_of(self.description, outputs))

    def _check(self, text: object) -> tuple[str, ...]:
        if self.description.settings.kind != "pairs":
            return tuple(check_strings([text], "predict", "texts"))
        if isinstance(text, str) or not isinstance(text, Sequence) or len(text) != 2:
            raise refusal(TypeError, "predict", "texts", text, "pairs of strings")
        return tuple(check_strings(text, "predict", "texts"))

    def _prediction(self, texts: Sequence[UnitText], output: Any, answer: Sequence[Any]) -> Prediction:
        if self.description.settings.kind == "tag":
            return tag_prediction(texts[0].text, texts[0].units, answer, self.description.scheme)
        if self.description.settings.regression:
            return NumberPrediction(answer[0])
        return ClassPrediction(answer[0], dict(zip(self.description.labels, output, strict=True)))

    def answers(self, examples: Sequence[Example]) -> Answers:
        """Predict the labels of examples that are already labelled, keeping their units; spans are marked in BIOES."""
        answers: list[Sequence[Any]] = []
        for window in iter_windows(examples, lambda example: len(example.key), most_size=_WINDOW_CHARACTERS):
            outputs = self._outputs([self._reader.read_example(example) for example in window])
            answers += answers_of(self.description, outputs)
        return answers

    def _outputs(self, texts: Texts) -> list[Any]:
        """Return the class probabilities, a standardised number, or the tag numbers of each text or pair."""
        settings, members = self.description.settings, self.description.members
        word2vec = self._word2vec and read_alike(self._word2vec, self.embedder, sentences_of(texts))
        cache = VectorCache.in_memory(self.embedder, sentences_of(texts)) if self.description.reads("elmo") else None
        outputs: list[Any] = []
        if self._head is not None:
            alphabet = self.description.alphabet if "characters" in settings.inputs else None
            encoder = TextEncoder(
                cache if "elmo" in settings.inputs else None, word2vec, alphabet, settings.reads_grams
            )
            outputs = predict_all(self._head, [[*map(encoder.encode, example)] for example in texts], encoder)
        if not members:
            return outputs
        logs = {
            name: model.log_probabilities(Features.of(name, texts, cache, word2vec, model.grams).at(slice(None)))
            for name, model in self._linear.items()
        }
        logs |= {NETWORK: network_logs(outputs)} if outputs else {}
        probabilities: list[Any] = np.exp(mix(logs, members)).tolist()
        return probabilities

    def score(self, data: Path, reading: Reading, reporter: Reporter) -> tuple[str, int, dict[str, Any]]:
        """Score the task on a labelled file; return the name of its main metric, the number of examples and all scores.

        Raises:
            CorpusError: If the file has no labels, labels that are mostly unknown, or tags of another kind.
        """
        description = self.description
        try:
            labelled = read_labelled(data, replace(reading, task_columns=description.columns))
        except UnlabelledError as error:
            step = _("Next: {command}").format(command=command("task", "predict"))
            raise CorpusError(f"{error} {step}") from None
        report_reading(labelled, reporter)
        examples, settings = labelled.examples, description.settings
        if settings.kind == "tag":
            require_same_units(labelled, description.scheme, "task.json", by_words=description.by_words)
        known, marks_spans = description.labels, bool(description.scheme)
        if not settings.regression and warn_of_new_labels("test", examples, known, reporter, marks_spans=marks_spans):
            raise CorpusError(
                _(
                    "{data}: most labels are new to the task, which knows {known}. Use data with the task's"
                    " labels, or name the column that holds them: --label-column NAME"
                ).format(data=data, known=first_ten([*count_labels([known], marks_spans=marks_spans)]))
            )
        metric = main_metric(settings, description.scheme)
        scores = score_answers([example.labels for example in examples], self.answers(examples), metric)
        return metric, len(examples), scores


def answers_of(description: TaskDescription, outputs: Sequence[Any]) -> Answers:
    """Return the labels or numbers that a model's outputs stand for; spans are marked in BIOES."""
    labels = description.labels
    if description.settings.kind == "tag":
        return [[labels[number] for number in tags] for tags in outputs]
    if description.settings.regression:
        return [[description.mean + description.scale * number] for number in outputs]
    return [[labels[best]] for best in np.reshape(outputs, (-1, len(labels))).argmax(axis=1)]


def _find_model(layout: TaskLayout, description: TaskDescription, model: str | Path | None) -> Path:
    """Return the folder of the task's bundle: the one given, or one found by its digest."""
    if model is not None:
        return find_bundle(model)
    path = Path(description.model["path"])
    if folder := find_same_bundle(description.model["digest"], path, layout.path):
        return folder
    raise BundleError(
        _(
            "The model that {path2} was trained on was not found at {path}, beside the task or among the installed"
            " models. Specify the folder of the original model with --model, or in Python with"
            " TaskModel.load(path, model=...). {advice}"
        )
        .format(path=path, path2=layout.path, advice=explain_no_starter(path))
        .rstrip()
    )


def load_weights(layout: TaskLayout, description: TaskDescription) -> tuple[TaskHead | None, Mapping[str, LinearModel]]:
    """Read the network and the linear models that a task uses; raise RunError for a missing or damaged file."""
    names = [name for name in description.members if name != NETWORK]
    num_texts = 2 if description.settings.kind == "pairs" else 1
    head = (
        _read(layout.head, description, lambda path: _read_head(path, description)) if description.has_network else None
    )
    linear: Mapping[str, LinearModel] = {}
    if names:
        linear = _read(layout.linear, description, lambda path: load_members(path, names, description.sizes, num_texts))
    return head, linear


def _read_head(path: Path, description: TaskDescription) -> TaskHead:
    # The sizes come from a file, so no memory is allocated for them.
    with torch.device("meta"):
        head = build_head(description)
    head.load_state_dict(load_tensors(path), assign=True)
    return head.float()


def build_head(description: TaskDescription) -> TaskHead:
    """Return a task's network with initial weights."""
    marks_spans = bool(description.scheme)
    return TaskHead(description.settings, description.sizes, description.labels, marks_spans=marks_spans)


def _read(path: Path, description: TaskDescription, read: Callable[[Path], Weights]) -> Weights:
    """Read the weights in a file; raise RunError if it is missing or damaged, or its digest differs from task.json."""
    if not path.is_file():
        raise RunError.missing(path)
    expected = description.digests.get(path.name)
    if expected is not None and file_digest(path) != expected:
        raise RunError.damaged(path, _(OTHER_DIGEST).format(name="task.json"))
    try:
        return read(path)
    except (SafetensorError, RuntimeError, ValueError, KeyError, OverflowError) as error:
        raise RunError.damaged(path, error) from None
