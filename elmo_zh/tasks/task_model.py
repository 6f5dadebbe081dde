"""TaskModel: a trained task that predicts labels for raw text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from elmo_zh.bundle.find_bundle import STARTER, explain_no_starter, find_bundle, find_same_bundle
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.tensor_files import load_tensors, save_tensors
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.checks import check_list, check_path, check_strings, refusal
from elmo_zh.corpus.readers.examples import Example
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import BundleError, RunError
from elmo_zh.run.files import atomic_path, claimed_output, file_digest
from elmo_zh.run.mark import written_as
from elmo_zh.tasks.encode_texts import KnownCharacters, TextEncoder, TextReader, UnitText, read_alike, sentences_of
from elmo_zh.tasks.mixture import NETWORK, LinearMember, load_members, mix, network_logs, save_members
from elmo_zh.tasks.predictions import NumberPrediction, Prediction, TagPrediction, class_prediction, tag_prediction
from elmo_zh.tasks.task_description import TaskDescription, TaskLayout, load_description
from elmo_zh.tasks.task_head import TagProbabilities, TaskHead
from elmo_zh.tasks.train_head import Item, predict_items
from elmo_zh.tasks.vector_cache import VectorCache
from elmo_zh.text.windows import iter_windows

_WINDOW_TEXTS, _WINDOW_CHARACTERS = 2000, 40_000
Text = str | Sequence[str]


class TaskModel:
    """A trained classifier, tagger or text-pair model, with its bundle.

        model = TaskModel.load("my-tagger")
        [prediction] = model.predict(["李白是唐代诗人"])
        prediction.spans

    Attributes:
        description: Content of task.json: labels, settings, scores.
        embedder: The bundle.
    """

    def __init__(
        self,
        description: TaskDescription,
        head: TaskHead | None,
        embedder: ElmoEmbedder,
        word2vec: Word2Vec | None,
        linear: Mapping[str, LinearMember] | None = None,
    ) -> None:
        self.description, self.embedder = description, embedder
        self._head, self._word2vec, self._linear = head and head.eval(), word2vec, linear or {}
        has_characters = "characters" in description.settings.inputs
        self._characters = KnownCharacters(description.alphabet) if has_characters else None
        self._reader = TextReader(embedder, by_words=description.by_words)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the weights and the path of the bundle, which unpickling loads again."""
        return TaskModel, (self.description, self._head, self.embedder, self._word2vec, self._linear)

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
            BundleError: If the bundle is missing or differs from the one used in training, or if one is given although
                the task has its own.
        """
        layout = TaskLayout(check_path(path, "TaskModel.load", "path", "the folder of a trained task"))
        description = load_description(layout)
        head = _load_head(layout, description) if description.has_network else None
        linear = _load_linear(layout, description)
        folder = _find_model(layout, description, model)
        # Older tasks, and those with a biLM of their own, do not name them.
        precision, unknown = (description.model.get(*each) for each in (("precision", "float32"), ("unknown", "unk")))
        embedder = ElmoEmbedder.load(folder, device, precision, unknown=unknown)
        if embedder.bundle.digest != description.model["digest"]:
            raise BundleError(
                f"{folder} is not the model that {path} was trained on (digest {embedder.bundle.digest} instead of"
                f" {description.model['digest']}). Give the original model with --model, or train the task again."
            )
        word2vec = Word2Vec.load(folder) if description.reads("word2vec") else None
        return cls(description, head, embedder, word2vec, linear)

    def __repr__(self) -> str:
        settings, members = self.description.settings, self.description.members
        outputs = f"{len(self.description.labels)} labels, " if self.description.labels else ""
        parts = f"members {', '.join(members)}" if members else f"inputs {', '.join(settings.inputs)}"
        return f"<TaskModel {settings.kind} on {self.embedder.bundle.path}: {outputs}{parts}>"

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the task to a folder for `load` and `elmo-zh task predict`.

        The folder refers to the bundle and does not contain it, unless the biLM was trained with the network. Unlike
        a folder written by `task fit`, it has no epoch figures and no pictures.

        Args:
            path: The folder to write; it appears when it is complete.
            force: Replace an existing trained task.

        Raises:
            TypeError: If `path` is not a path.
            OutputError: If the folder exists and `force` is not given, or it contains something else.
        """
        output = check_path(path, "save", "path", "a folder")
        own = self.embedder.bundle.path
        names = ("path", "force=True")
        with (
            claimed_output(output, [own], written_as("task"), force=force, names=names),
            atomic_path(output) as unfinished,
        ):
            unfinished.mkdir()
            layout = TaskLayout(unfinished)
            if self._head is not None:
                own_weights = self._head.state_dict().items()
                save_tensors({name: weights.contiguous() for name, weights in own_weights}, layout.head)
            if self._linear:
                save_members(layout.linear, self._linear)
            if "started_from" in self.description.model:
                copytree(own, layout.model)
            self.description.save(layout)

    def predict(self, texts: Iterable[Text], *, probabilities: bool = False) -> list[Prediction]:
        """Predict labels for raw texts.

        Args:
            texts: Strings; for pairs, two strings each.
            probabilities: Also compute the probabilities of tags and spans; class probabilities are always included.

        Returns:
            For each text a `ClassPrediction`, a `NumberPrediction` or a `TagPrediction`.

        Raises:
            TypeError: If a single string is given, or an item is not a string (for pairs, two strings).
            ValueError: If probabilities are requested, and the task has no tags.
        """
        return list(self.iter_predict(texts, probabilities=probabilities))

    def iter_predict(self, texts: Iterable[Text], *, probabilities: bool = False) -> Iterator[Prediction]:
        """Yield the predictions of `predict` one by one, in bounded memory: up to 2,000 texts are read ahead."""
        if probabilities and self.description.settings.kind != "tag":
            raise ValueError("predict: probabilities=True is for tags; classes always have probabilities")
        checked = map(self._check, check_list(texts, "predict", "texts", "a list of texts"))
        for window in iter_windows(checked, lambda each: sum(map(len, each)), most_size=_WINDOW_CHARACTERS):
            read = [[self._reader.read(text) for text in each] for each in window]
            yield from self._predict(read, with_probabilities=probabilities)

    def _check(self, given: object) -> tuple[str, ...]:
        if self.description.settings.kind != "pairs":
            return tuple(check_strings([given], "predict", "texts"))
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
            raise refusal(TypeError, "predict", "texts", given, "pairs of strings")
        return tuple(check_strings(given, "predict", "texts"))

    def predict_examples(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predict labels for examples that are already labelled, keeping their units."""
        found: list[Prediction] = []
        for start in range(0, len(examples), _WINDOW_TEXTS):
            found += self._predict(
                [self._reader.read_example(each) for each in examples[start : start + _WINDOW_TEXTS]]
            )
        return found

    def _predict(self, texts: Sequence[Sequence[UnitText]], *, with_probabilities: bool = False) -> list[Prediction]:
        word2vec = self._word2vec and read_alike(self._word2vec, self.embedder, sentences_of(texts))
        cache = VectorCache.in_memory(self.embedder, sentences_of(texts)) if self.description.reads("elmo") else None
        found: list[Any] = []
        if self._head is not None:
            settings = self.description.settings
            has_elmo, has_grams = "elmo" in settings.inputs, settings.kind == "tag" and settings.head != "bilstm"
            encoder = TextEncoder(cache if has_elmo else None, word2vec, self._characters, has_grams)
            items = [Item(tuple(map(encoder.encode, each)), 0) for each in texts]
            found = predict_items(self._head, items, encoder, "predict_tags" if with_probabilities else "predict")
        if weights := self.description.members:
            logs = {name: member.log_probabilities(texts, cache, word2vec) for name, member in self._linear.items()}
            logs |= {NETWORK: network_logs(found)} if found else {}
            found = list(np.exp(mix([logs[name] for name in weights], [*weights.values()])).tolist())
        return [as_prediction(self.description, given, each) for given, each in zip(texts, found, strict=True)]


def as_prediction(description: TaskDescription, texts: Sequence[UnitText], found: Any) -> Prediction:
    """Convert a network's output for a text to labels and spans."""
    settings, labels = description.settings, description.labels
    if isinstance(found, TagProbabilities):
        plain = as_prediction(description, texts, found.tags)
        assert isinstance(plain, TagPrediction)
        spans = [replace(span, probability=each) for span, each in zip(plain.spans, found.of_spans, strict=True)]
        return replace(plain, spans=spans, probabilities=found.of_tags)
    if settings.kind == "tag":
        tags = [labels[number] for number in found]
        return tag_prediction(texts[0].text, texts[0].units, tags, description.scheme)
    if settings.regression:
        return NumberPrediction(description.mean + description.scale * found)
    return class_prediction(labels, found)


def _find_model(layout: TaskLayout, description: TaskDescription, given: str | Path | None) -> Path:
    """Return the folder of the task's bundle: inside the task's folder, as given, or as used in training."""
    if "started_from" in description.model:
        if given is not None:
            raise BundleError(
                f"{layout.path} has a model of its own, which was trained with the task. Leave out --model."
            )
        if not BundleLayout(layout.model).info.is_file():
            raise BundleError(f"{layout.model}, which was trained with the task, is missing. Copy {layout.path} again.")
        return layout.model
    if given is not None:
        return find_bundle(given)
    path, digest = Path(description.model["path"]), description.model["digest"]
    if found := find_same_bundle(digest, path, layout.path):
        return found
    if advice := explain_no_starter(path):
        raise BundleError(f"{layout.path} was trained on the model {STARTER}. {advice}")
    is_other = BundleLayout(path).info.is_file()
    not_found = "was not found at that path, beside the task or among the installed models"
    problem = "has been replaced by another model" if is_other else not_found
    raise BundleError(
        f"{path}, the model that {layout.path} was trained on, {problem}. Give the folder of the original model"
        " with --model, or in Python with TaskModel.load(path, model=...)."
    )


_REMEDY = "Copy the folder again, or train the task again with: elmo-zh task fit"


def _load_head(layout: TaskLayout, description: TaskDescription) -> TaskHead:
    def build() -> TaskHead:
        return TaskHead(
            description.settings, description.sizes, description.labels, marks_spans=description.marks_spans
        )

    _require_weights(layout.head, description)
    try:
        with torch.device("meta"):
            num_bytes = 4 * sum(parameter.numel() for parameter in build().parameters())
    except (RuntimeError, ValueError, ZeroDivisionError) as error:
        raise RunError(f"{layout.description} does not describe a network ({str(error)[:100]!r}). {_REMEDY}") from None
    # The sizes come from a file, so allocate memory only for weights that exist.
    if num_bytes > layout.head.stat().st_size:
        raise RunError(f"{layout.head} is too small for the network that task.json describes. {_REMEDY}")
    head = build()
    try:
        head.load_state_dict(load_tensors(layout.head))
    except (SafetensorError, RuntimeError):
        raise RunError(f"{layout.head} does not contain the network that task.json describes. {_REMEDY}") from None
    return head


def _load_linear(layout: TaskLayout, description: TaskDescription) -> dict[str, LinearMember]:
    names = [name for name in description.members if name != NETWORK]
    if not names:
        return {}
    _require_weights(layout.linear, description)
    num_texts = 2 if description.settings.kind == "pairs" else 1
    try:
        return load_members(layout.linear, names, description.sizes, num_texts)
    except (SafetensorError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:100]
        raise RunError(
            f"{layout.linear} does not contain the models that task.json describes ({reason}). {_REMEDY}"
        ) from None


def _require_weights(path: Path, description: TaskDescription) -> None:
    """Raise RunError if a weights file is missing or its digest differs from task.json."""
    if not path.is_file():
        raise RunError(f"{path} is missing. {_REMEDY}")
    expected = description.digests.get(path.name)
    if expected is not None and file_digest(path) != expected:
        raise RunError(
            f"{path} is damaged or from another task: its digest differs from the one in task.json. {_REMEDY}"
        )
