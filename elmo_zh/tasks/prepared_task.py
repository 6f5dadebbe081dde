"""A task ready for training: its data as numbers, the vectors computed; trained, scored and written from here."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from elmo_zh.bundle.description import OWN_PROGRAM
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.word2vec import Word2Vec
from elmo_zh.bundle.write import source_of, write_bundle
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OptionError
from elmo_zh.pictures.canvas import can_draw, save_picture
from elmo_zh.pictures.tasks import confusion_figure, curve_figure, scatter_figure
from elmo_zh.run.files import atomic_path, file_digest
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.tasks.data.datasets import DataFiles, Dataset
from elmo_zh.tasks.data.examples import Example
from elmo_zh.tasks.data.read_labelled import Reading
from elmo_zh.tasks.encode_texts import Alphabet, TextEncoder, read_alike
from elmo_zh.tasks.live_vectors import LiveVectors
from elmo_zh.tasks.networks.settings import HeadSettings, Sizes
from elmo_zh.tasks.networks.task_head import TaskHead
from elmo_zh.tasks.predictions import NumberPrediction, Prediction
from elmo_zh.tasks.read_texts import Texts, cached_vectors, read_texts
from elmo_zh.tasks.score_task import confusable_labels, main_metric, score_predictions
from elmo_zh.tasks.scores import confusion_matrix
from elmo_zh.tasks.task_files import TaskDescription, TaskLayout
from elmo_zh.tasks.task_model import as_prediction
from elmo_zh.tasks.train_head import (
    DEFAULT_TRAINING,
    Item,
    Target,
    TrainedHead,
    TrainSettings,
    predict_items,
    train_head,
)
from elmo_zh.tasks.units import sentences_of
from elmo_zh.tasks.vector_cache import VectorCache


@dataclass(frozen=True, kw_only=True)
class FitJob:
    """The data and settings of a training.

    Attributes:
        files: The labelled data.
        reading: How it is read.
        settings: The network; its inputs are chosen by the data and the model if they are empty.
        training: How it is trained.
        num_seeds: Number of trainings, whose seeds are consecutive; the best on the development examples is kept.
    """

    files: DataFiles
    reading: Reading
    settings: HeadSettings
    training: TrainSettings = DEFAULT_TRAINING
    num_seeds: int = 1


@dataclass(frozen=True)
class FitReport:
    """The result of a training.

    Attributes:
        output: The folder.
        description: What its task.json says.
        metric: Name of the main score.
    """

    output: Path
    description: TaskDescription
    metric: str


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTask:
    """The data as numbers, and what is needed to train, score and write."""

    job: FitJob
    dataset: Dataset
    embedder: ElmoEmbedder
    encoder: TextEncoder
    sizes: Sizes
    labels: tuple[str, ...]
    mean: float
    scale: float
    texts: Texts
    items: Mapping[str, Sequence[Item]]
    reporter: Reporter

    @classmethod
    def prepare(
        cls, job: FitJob, dataset: Dataset, embedder: ElmoEmbedder, parts: Path, reporter: Reporter
    ) -> "PreparedTask":
        """Read the texts and compute their vectors, unless they are in `parts` already."""
        texts = read_texts(dataset, embedder, reporter)
        cache: VectorCache | LiveVectors | None = None
        if job.training.bilm_learning_rate is not None:
            if embedder.unknown != "unk":
                raise OptionError(
                    f"With --fine-tune the biLM reads unknown words as <UNK>, not by {embedder.unknown}. Leave out"
                    " --fine-tune, or set embed.unknown=unk."
                )
            cache = LiveVectors(embedder.bundle, sentences_of(chain(*texts.values())))
        elif "elmo" in job.settings.inputs:
            cache = cached_vectors(texts, embedder, parts, reporter)
        word2vec = Word2Vec.load(embedder.bundle.path) if "word2vec" in job.settings.inputs else None
        return cls.of_texts(job, dataset, embedder, texts, cache=cache, word2vec=word2vec, reporter=reporter)

    @classmethod
    def of_texts(
        cls,
        job: FitJob,
        dataset: Dataset,
        embedder: ElmoEmbedder,
        texts: Texts,
        *,
        cache: VectorCache | LiveVectors | None,
        word2vec: Word2Vec | None,
        reporter: Reporter,
    ) -> "PreparedTask":
        """Return texts that are read already, and their vectors, ready for training.

        Args:
            job: What to train.
            dataset: The examples.
            embedder: The model.
            texts: The texts of each part of the examples.
            cache: Their ELMo vectors, or the biLM that computes them, if they are an input.
            word2vec: The word2vec vectors, if they are an input.
            reporter: Receives messages and progress.
        """
        settings = job.settings
        word2vec = word2vec and read_alike(word2vec, embedder, sentences_of(chain(*texts.values())))
        alphabet = None
        if "characters" in settings.inputs:
            alphabet = Alphabet.of(text.text for each in texts["train"] for text in each)
        encoder = TextEncoder(cache, word2vec, alphabet)
        labels = () if settings.regression else _labels(dataset)
        numbers = np.array([float(example.labels[0]) for example in dataset.train] if settings.regression else [0.0])
        mean, scale = float(numbers.mean()), max(float(numbers.std()), 1e-6)
        target = _target_function(settings, labels, mean, scale)
        items = {
            part: [
                Item(tuple(map(encoder.encode, each)), target(example))
                for each, example in zip(texts[part], examples, strict=True)
            ]
            for part, examples in dataset.parts().items()
        }
        sizes = Sizes(
            num_layers=embedder.num_layers,
            elmo_dim=embedder.dimension,
            word2vec_dim=word2vec.dimension if word2vec else 0,
            num_characters=len(alphabet) if alphabet else 0,
            num_outputs=max(1, len(labels)),
        )
        return cls(
            job=job,
            dataset=dataset,
            embedder=embedder,
            encoder=encoder,
            sizes=sizes,
            labels=labels,
            mean=mean,
            scale=scale,
            texts=texts,
            items=items,
            reporter=reporter,
        )

    def seeds(self) -> range:
        """Return the seeds of the trainings."""
        return range(self.job.files.seed, self.job.files.seed + self.job.num_seeds)

    def head(self, seed: int) -> TaskHead:
        """Return the network with the first weights of a seed."""
        torch.manual_seed(seed)
        return TaskHead(self.job.settings, self.sizes, self.labels, marks_spans=bool(self.dataset.scheme))

    @property
    def metric(self) -> str:
        """Name of the main score."""
        return main_metric(self.job.settings, marks_spans=bool(self.dataset.scheme))

    def train(self, seed: int, folder: Path) -> TrainedHead:
        """Train a network from one seed."""
        if isinstance(self.encoder.cache, LiveVectors):
            self.encoder.cache.reset()
        trained = train_head(
            self.head(seed),
            self.items["train"],
            lambda head: float(self._scores(self.predictions(head, "dev"), "dev")[self.metric]),
            encoder=self.encoder,
            settings=self.job.training,
            seed=seed,
            folder=folder,
            reporter=self.reporter,
        )
        self.reporter.note(
            f"Seed {seed}: {self.metric} {trained.best_score:.4f} on the development examples,"
            f" {counted(len(trained.lines), 'epoch')}."
        )
        return trained

    def load(self, seed: int, trained: TrainedHead) -> TaskHead:
        """Return a trained network; if the biLM was trained too, its weights are put back."""
        head = self.head(seed)
        head.load_state_dict(trained.weights)
        if isinstance(self.encoder.cache, LiveVectors):
            self.encoder.cache.bilm.load_state_dict(trained.bilm_weights)
        return head

    def predictions(self, head: TaskHead, part: str) -> list[Prediction]:
        """Return what a network predicts for a part of the data; the tags of spans are BIOES tags."""
        description = replace(self.describe(scores={}, layer_weights={}), scheme="BIOES" if self.dataset.scheme else "")
        found = predict_items(head, self.items[part], self.encoder)
        return [as_prediction(description, each, raw) for each, raw in zip(self.texts[part], found, strict=True)]

    def describe(self, *, scores: Mapping[str, Any], layer_weights: Mapping[str, list[float]]) -> TaskDescription:
        """Return what task.json says."""
        bundle, job = self.embedder.bundle, self.job
        reading = {"unknown": self.embedder.unknown, "precision": self.embedder.precision}
        return TaskDescription(
            settings=job.settings,
            sizes=self.sizes,
            labels=self.labels,
            scheme=self.dataset.scheme,
            by_words=self.dataset.by_words or job.settings.kind != "tag",
            alphabet=self.encoder.alphabet.characters if self.encoder.alphabet else "",
            mean=self.mean,
            scale=self.scale,
            model={"path": str(bundle.path), "digest": bundle.digest, **reading},
            training={
                **asdict(job.training),
                "seeds": list(self.seeds()),
                "files": [path.name for path in self.dataset.files],
                **{f"{part}_examples": len(examples) for part, examples in self.dataset.parts().items()},
            },
            scores=scores,
            layer_weights=layer_weights,
        )

    def write(self, output: Path, trained: Sequence[TrainedHead]) -> FitReport:
        """Write the folder of the best of the trained networks."""
        best = max(range(len(trained)), key=lambda number: (trained[number].best_score, -number))
        by_seed: dict[str, Any] = {}
        for number, (seed, each) in enumerate(zip(self.seeds(), trained, strict=True)):
            head = self.load(seed, each)
            predictions = {part: self.predictions(head, part) for part in self._scored_parts()}
            scores = {part: self._scores(found, part) for part, found in predictions.items()}
            by_seed[str(seed)] = {part: found[self.metric] for part, found in scores.items()}
            if number == best:
                chosen, chosen_predictions, chosen_scores = head, predictions, scores
        description = self.describe(
            scores={"metric": self.metric, "chosen_seed": self.seeds()[best], "seeds": by_seed, **chosen_scores},
            layer_weights={place: mix.layer_weights() for place, mix in chosen.mixes().items()},
        )
        lines = [line for each in trained for line in each.lines]
        with atomic_path(output) as unfinished:
            unfinished.mkdir()
            layout = TaskLayout(unfinished)
            save_file(trained[best].weights, layout.head)
            layout.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
            self._draw(layout, lines, chosen_predictions, output.name)
            if trained[best].bilm_weights:
                model = self._write_bilm(layout.model, trained[best].bilm_weights)
                description = replace(description, model=model)
            description.save(layout.description)
        return FitReport(output, description, self.metric)

    def _write_bilm(self, folder: Path, weights: Mapping[str, Tensor]) -> dict[str, Any]:
        """Write the biLM that was trained with the network as a bundle; return what task.json says of the model."""
        bundle = self.embedder.bundle
        bilm = copy.deepcopy(bundle.bilm).cpu()
        bilm.load_state_dict(weights)
        start = {"digest": bundle.digest, "tokens": bundle.info["training"].get("tokens")}
        origin = {"program": OWN_PROGRAM, "started_from": {**start, "origin": bundle.info["origin"]}}
        # It gives vectors for the task and predicts no words any more.
        write_bundle(folder, replace(source_of(bundle), bilm=bilm, softmax=None, origin=origin))
        digest = file_digest(BundleLayout(folder).info)
        return {"path": str(bundle.path), "digest": digest, "started_from": bundle.digest}

    def _scored_parts(self) -> list[str]:
        return ["dev", "test"] if self.dataset.test else ["dev"]

    def _scores(self, predictions: Sequence[Prediction], part: str) -> dict[str, Any]:
        examples = self.dataset.parts()[part]
        return score_predictions(examples, predictions, marks_spans=bool(self.dataset.scheme))

    def _draw(
        self,
        layout: TaskLayout,
        lines: Sequence[Mapping[str, Any]],
        predictions: Mapping[str, Sequence[Prediction]],
        name: str,
    ) -> None:
        if not can_draw():
            self.reporter.warn("No pictures were drawn: matplotlib is not installed.")
            return
        save_picture(curve_figure(lines, self.metric, name), layout.curve)
        part = self._scored_parts()[-1]
        examples, found = self.dataset.parts()[part], predictions[part]
        title = f"{name}: {counted(len(examples), f'{part} example')}"
        if self.job.settings.regression:
            numbers = [float(example.labels[0]) for example in examples]
            values = [each.value for each in found if isinstance(each, NumberPrediction)]
            score = f"{self.metric} {self._scores(found, part)[self.metric]:.4f}"
            save_picture(scatter_figure(numbers, values, title, score), layout.scatter)
            return
        pairs = confusable_labels(examples, found, marks_spans=bool(self.dataset.scheme))
        labels = sorted({label for each in pairs for label in each})
        save_picture(confusion_figure(confusion_matrix(*pairs, labels), labels, title), layout.confusion)


def _labels(dataset: Dataset) -> tuple[str, ...]:
    """Return the labels of the training examples; for spans the tags of all forms of each type."""
    labels = dataset.labels()
    if not dataset.scheme:
        return labels
    types = sorted({label[1:] for label in labels if label != "O"})
    return ("O", *(letter + kind for kind in types for letter in "BIES"))


def _target_function(
    settings: HeadSettings, labels: Sequence[str], mean: float, scale: float
) -> Callable[[Example], Target]:
    numbers = {label: number for number, label in enumerate(labels)}

    def target(example: Example) -> Target:
        if settings.regression:
            return (float(example.labels[0]) - mean) / scale
        if settings.kind == "tag":
            # Labels of development and test examples may be unknown; they are not trained on.
            return [numbers.get(label, 0) for label in example.labels]
        return numbers.get(example.labels[0], 0)

    return target
