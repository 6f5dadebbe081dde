"""TaskModel: a trained task, which predicts labels of raw text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.word2vec import Word2Vec
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.sentence_arguments import check_texts, iterate
from elmo_zh.errors import BundleError, RunError
from elmo_zh.tasks.data.examples import Example
from elmo_zh.tasks.encode_texts import Alphabet, TextEncoder
from elmo_zh.tasks.networks.build import TaskHead
from elmo_zh.tasks.predictions import ClassPrediction, NumberPrediction, Prediction, tag_prediction
from elmo_zh.tasks.task_files import TaskDescription, TaskLayout, load_description
from elmo_zh.tasks.train_head import Item, predict_items
from elmo_zh.tasks.units import TextReader, UnitText
from elmo_zh.tasks.vector_cache import VectorCache

# Texts computed together, in bounded memory.
_WINDOW_TEXTS, _WINDOW_CHARACTERS = 2000, 40_000
Text = str | Sequence[str]


class TaskModel:
    """A trained classifier, tagger or model of pairs, with the bundle that it was trained on.

        model = TaskModel.load("my-tagger")
        [prediction] = model.predict(["李白是唐代诗人"])
        prediction.spans

    Attributes:
        description: What task.json says: labels, settings, scores.
        embedder: The bundle.
    """

    def __init__(
        self, description: TaskDescription, head: TaskHead, embedder: ElmoEmbedder, word2vec: Word2Vec | None
    ) -> None:
        self.description, self.embedder = description, embedder
        self._head, self._word2vec = head.eval(), word2vec
        self._alphabet = Alphabet(description.alphabet) if "characters" in description.settings.inputs else None
        self._reader = TextReader(embedder, by_words=description.by_words)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the network and the folder of the bundle, which is loaded again."""
        return TaskModel, (self.description, self._head, self.embedder, self._word2vec)

    @classmethod
    def load(cls, path: str | Path, model: str | Path | None = None, device: str = "auto") -> "TaskModel":
        """Load a trained task.

        Args:
            path: The folder that `task fit` wrote.
            model: The bundle, if it is no longer where it was when the task was trained.
            device: Device of the biLM: auto (a GPU if there is one), cpu or cuda.

        Raises:
            RunError: If the folder holds no trained task, or is damaged.
            BundleError: If the bundle is missing, or is not the one of the training.
        """
        layout = TaskLayout(Path(path))
        description = load_description(layout)
        head = _load_head(layout, description)
        folder = find_bundle(model or description.model["path"])
        if not BundleLayout(folder).info.is_file():
            raise BundleError(
                f"{folder}, the model that {path} was trained on, is not there. Give its folder with --model, in Python"
                " TaskModel.load(path, model=...)."
            )
        embedder = ElmoEmbedder.load(folder, device, unknown=description.model.get("unknown", "unk"))
        if embedder.bundle.digest != description.model["digest"]:
            raise BundleError(
                f"{folder} is not the model that {path} was trained on: {embedder.bundle.digest}, expected"
                f" {description.model['digest']}. Give that model with --model, or train the task again."
            )
        word2vec = Word2Vec.load(folder) if "word2vec" in description.settings.inputs else None
        return cls(description, head, embedder, word2vec)

    def predict(self, texts: Iterable[Text]) -> list[Prediction]:
        """Return what the model predicts for raw texts.

        Args:
            texts: Strings; for pairs two strings each.

        Returns:
            For each text a `ClassPrediction`, a `NumberPrediction` or a `TagPrediction`.

        Raises:
            TypeError: If a single string is given, or anything but strings, for pairs anything but two of them each.
        """
        return list(self.iter_predict(texts))

    def iter_predict(self, texts: Iterable[Text]) -> Iterator[Prediction]:
        """Yield what `predict` returns, in order and in bounded memory: up to 2,000 texts are read ahead."""
        waiting = iter(iterate(texts, "predict"))
        while window := list(self._window(waiting)):
            yield from self._predict([[self._reader.read(text) for text in each] for each in window])

    def _window(self, texts: Iterator[Any]) -> Iterator[tuple[str, ...]]:
        num_characters = 0
        for given in islice(texts, _WINDOW_TEXTS):
            yield self._check(given)
            num_characters += sum(map(len, given))
            if num_characters >= _WINDOW_CHARACTERS:
                return

    def _check(self, given: object) -> tuple[str, ...]:
        if self.description.settings.kind != "pairs":
            return tuple(check_texts([given], "predict", "texts"))
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
            raise TypeError(f"predict: {given!r:.60} is no pair. Call predict([(first, second)]).")
        return tuple(check_texts(given, "predict", "texts"))

    def predict_examples(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return what the model predicts for the units of labelled examples."""
        found: list[Prediction] = []
        for start in range(0, len(examples), _WINDOW_TEXTS):
            found += self._predict(
                [read_example(self._reader, each) for each in examples[start : start + _WINDOW_TEXTS]]
            )
        return found

    def _predict(self, texts: Sequence[Sequence[UnitText]]) -> list[Prediction]:
        encoder = TextEncoder(self._cache(texts), self._word2vec, self._alphabet)
        items = [Item(tuple(map(encoder.encode, each)), 0) for each in texts]
        return [
            self._prediction(given, found)
            for given, found in zip(texts, predict_items(self._head, items, encoder), strict=True)
        ]

    def _cache(self, texts: Sequence[Sequence[UnitText]]) -> VectorCache | None:
        if "elmo" not in self.description.settings.inputs:
            return None
        sentences = (sentence for each in texts for text in each for sentence in text.sentences)
        return VectorCache.in_memory(self.embedder, sentences)

    def _prediction(self, texts: Sequence[UnitText], found: Any) -> Prediction:
        return as_prediction(self.description, texts, found)


def read_example(reader: TextReader, example: Example) -> list[UnitText]:
    """Return the texts of an example with the units that its labels belong to."""
    if example.words is not None and example.units is not None:
        return [reader.read_words(example.texts[0], example.words, example.units)]
    return [reader.read(text, example.units) for text in example.texts]


def as_prediction(description: TaskDescription, texts: Sequence[UnitText], found: Any) -> Prediction:
    """Return what a network gives for a text in terms of labels and spans."""
    settings, labels = description.settings, description.labels
    if settings.kind == "tag":
        tags = [labels[number] for number in found]
        return tag_prediction(texts[0].text, texts[0].units, tags, description.scheme)
    if settings.regression:
        return NumberPrediction(description.mean + description.scale * found)
    probabilities = dict(zip(labels, found, strict=True))
    return ClassPrediction(max(probabilities, key=lambda label: probabilities[label]), probabilities)


def _load_head(layout: TaskLayout, description: TaskDescription) -> TaskHead:
    """Build the network and load its weights.

    Raises:
        RunError: If the file is missing, damaged or of another network.
    """

    def build() -> TaskHead:
        return TaskHead(
            description.settings, description.sizes, description.labels, marks_spans=description.marks_spans
        )

    remedy = "Copy the folder again, or train the task again with: elmo-zh task fit"
    if not layout.head.is_file():
        raise RunError(f"{layout.head} is missing. {remedy}")
    with torch.device("meta"):
        num_bytes = 4 * sum(parameter.numel() for parameter in build().parameters())
    # The sizes come from a file: memory is taken only for weights that are there.
    if num_bytes > layout.head.stat().st_size:
        raise RunError(f"{layout.head} has too few bytes for the network that task.json describes. {remedy}")
    head = build()
    try:
        head.load_state_dict(load_file(layout.head))
    except (SafetensorError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:100]
        raise RunError(f"{layout.head} is not the network that task.json describes ({reason}). {remedy}") from None
    return head


def describe_task(model: TaskModel) -> dict[str, Any]:
    """Return kind, inputs, labels and scores of a trained task, for programs."""
    description = model.description
    settings = asdict(description.settings)
    return {
        **{name: settings[name] for name in ("kind", "inputs", "elmo_at", "head", "regression")},
        "labels": list(description.labels),
        "scores": dict(description.scores),
        "model": dict(description.model),
    }
