"""Train a task on a bundle: read and check the data, compute the vectors once, train, score, and write the folder."""

import copy
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.word2vec import Word2Vec
from elmo_zh.bundle.write import write_tuned
from elmo_zh.config.task_settings import FitJob, HeadSettings
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OptionError
from elmo_zh.pictures.canvas import can_draw, describe_numbers, save_picture
from elmo_zh.pictures.tasks import confusion_figure, curve_figure, scatter_figure
from elmo_zh.run.files import atomic_path, claimed_output, file_digest
from elmo_zh.run.reporter import Reporter, SilentReporter, counted
from elmo_zh.run.work_folder import WorkFolder
from elmo_zh.tasks.datasets import Dataset, find_files, has_ids_as_labels, load_dataset, output_labels
from elmo_zh.tasks.encode_texts import KnownCharacters, TextEncoder, Texts, read_alike, read_texts, sentences_of
from elmo_zh.tasks.examples import Example
from elmo_zh.tasks.layers import Sizes
from elmo_zh.tasks.linear import LinearModels, class_predictions
from elmo_zh.tasks.members import NETWORK, Mixture, fit_mixture, linear_names, network_logs, save_members
from elmo_zh.tasks.mixture import Floats
from elmo_zh.tasks.predictions import NumberPrediction, Prediction
from elmo_zh.tasks.scores import confusable_labels, confusion_matrix, main_metric, score_predictions
from elmo_zh.tasks.task_description import TaskDescription, TaskLayout, is_trained_task
from elmo_zh.tasks.task_head import TaskHead
from elmo_zh.tasks.task_model import as_prediction
from elmo_zh.tasks.train_head import Item, TrainedHead, predict_items, target_function, train_head
from elmo_zh.tasks.vectors import LiveVectors, VectorCache
from elmo_zh.version import __version__

# The refusal of `WorkFolder.open`, and what it would discard.
OTHER_TRAINING = "an unfinished training with other data, another model or other settings"
TRAININGS = "seed-*"


@dataclass(frozen=True)
class FitReport:
    """The result of a training: its folder, the content of task.json, the main score, and reasons to doubt it."""

    output: Path
    description: TaskDescription
    metric: str
    doubts: Sequence[str]


def fit_task(
    job: FitJob, embedder: ElmoEmbedder, output: Path, *, force: bool = False, reporter: Reporter | None = None
) -> FitReport:
    """Train a task and write its folder; an interrupted call can be resumed."""
    reporter = reporter or SilentReporter()
    files = find_files(job.files, reporter)
    work = WorkFolder.of(output)
    inputs = [*files.paths().values(), embedder.bundle.path]
    with claimed_output(output, inputs, is_trained_task, force=force, kind="a trained task"):
        dataset = load_dataset(files, job.reading, reporter)
        fine_tunes = job.training.bilm_learning_rate is not None
        job = replace(job, settings=with_inputs(job.settings, dataset, embedder, reporter, fine_tunes=fine_tunes))
        if fine_tunes and "elmo" not in job.settings.inputs:
            raise OptionError("--fine-tune trains the biLM, so ELMo has to be an input: add elmo to --inputs.")
        work.open(manifest_of(job, dataset, embedder), force=force, refusal=OTHER_TRAINING, work=TRAININGS)
        task = PreparedTask.prepare(job, dataset, embedder, work.path, reporter)
        trained = [task.train(seed, work.path / f"seed-{seed}") for seed in job.seeds()]
        report = task.write(output, trained)
        work.remove()
    return report


def with_inputs(
    settings: HeadSettings, dataset: Dataset, embedder: ElmoEmbedder, reporter: Reporter, *, fine_tunes: bool = False
) -> HeadSettings:
    """Return the settings with the inputs that data and model allow, and with a mixture only where one can be made."""
    has_word2vec = BundleLayout(embedder.bundle.path).word2vec.is_file()
    inputs = settings.inputs
    if not inputs:
        by_characters = settings.kind == "tag" and not dataset.by_words
        inputs = ("word2vec", "elmo", *(("characters",) if by_characters else ()))
        if not has_word2vec:
            inputs = tuple(name for name in inputs if name != "word2vec")
            reporter.note(
                f"{embedder.bundle.path} has no word2vec vectors, so the network reads only {', '.join(inputs)}."
            )
    elif "word2vec" in inputs and not has_word2vec:
        Word2Vec.load(embedder.bundle.path)  # raises the error that says what to do
    check_head(settings, inputs)
    # Only classes are mixed, and no network whose biLM is trained with it.
    is_alone = settings.kind == "tag" or settings.regression or fine_tunes
    head = "bilstm" if settings.head == "mixture" and is_alone else settings.head
    return replace(settings, inputs=inputs, head=head)


def check_head(settings: HeadSettings, inputs: Sequence[str]) -> None:
    """Raise OptionError if the network cannot use ELMo where the settings put it."""
    if settings.head == "linear" and settings.encoder != "single":
        raise OptionError(f"--encoder {settings.encoder}: a linear head has no LSTMs. Leave it out.")
    if settings.head == "linear" and settings.elmo_at != "input":
        raise OptionError(f"--elmo-at {settings.elmo_at}: a linear head takes ELMo at its input only. Leave it out.")
    if "elmo" in inputs and settings.elmo_at == "output" and len(inputs) == 1:
        raise OptionError("--elmo-at output needs another input: --inputs word2vec,elmo")


def manifest_of(job: FitJob, dataset: Dataset, embedder: ElmoEmbedder) -> dict[str, Any]:
    """Return everything that a trained task depends on, for `manifest.json`."""
    return {
        "elmo_zh": __version__,
        "digests": {part: file_digest(path) for part, path in dataset.files.items()},
        "seed": job.files.seed,
        "limit": job.files.limit,
        "reading": asdict(job.reading),
        "settings": asdict(job.settings),
        "training": asdict(job.training),
        "num_seeds": job.num_seeds,
        **embedder.identity(),
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTask:
    """The data as numbers, with everything needed to train, score and write."""

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
        """Read the texts and compute their vectors, unless `parts` already has them."""
        texts = read_texts(dataset, embedder, reporter)
        sentences = list(sentences_of(chain(*texts.values())))
        cache: VectorCache | LiveVectors | None = None
        if job.training.bilm_learning_rate is not None:
            if embedder.unknown != "unk":
                raise OptionError(
                    f"With --fine-tune the biLM reads unknown words as <UNK>, not by {embedder.unknown}. Leave out"
                    " --fine-tune, or set embed.unknown=unk."
                )
            cache = LiveVectors(embedder.bundle, sentences)
        elif "elmo" in job.settings.inputs:
            cache = VectorCache.on_disk(parts / "vectors", embedder, sentences, reporter)
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
        """Prepare texts that are already read, with the vectors to use as inputs, for training."""
        settings = job.settings
        word2vec = word2vec and read_alike(word2vec, embedder, sentences_of(chain(*texts.values())))
        characters = None
        if "characters" in settings.inputs:
            characters = KnownCharacters.of(text.text for each in texts["train"] for text in each)
        encoder = TextEncoder(cache, word2vec, characters)
        labels = () if settings.regression else output_labels(dataset)
        numbers = np.array([float(example.labels[0]) for example in dataset.train] if settings.regression else [0.0])
        mean, scale = float(numbers.mean()), max(float(numbers.std()), 1e-6)
        target = target_function(settings, labels, mean, scale)
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
            num_characters=len(characters) if characters else 0,
            num_outputs=max(1, len(labels)),
        )
        return cls(
            job=job, dataset=dataset, embedder=embedder, encoder=encoder, sizes=sizes, labels=labels, mean=mean,
            scale=scale, texts=texts, items=items, reporter=reporter,
        )  # fmt: skip

    def head(self, seed: int) -> TaskHead:
        """Return a network whose initial weights are drawn with a seed."""
        torch.manual_seed(seed)
        return TaskHead(self.job.settings, self.sizes, self.labels, marks_spans=bool(self.dataset.scheme))

    @property
    def metric(self) -> str:
        """Name of the main score."""
        return main_metric(self.job.settings, marks_spans=bool(self.dataset.scheme))

    def train(self, seed: int, folder: Path) -> TrainedHead:
        """Train a network with one seed."""
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
            f"Seed {seed}: {self.metric} {trained.best_score:.4f} on the development examples after"
            f" {counted(len(trained.lines), 'epoch')}."
        )
        return trained

    def load(self, seed: int, trained: TrainedHead) -> TaskHead:
        """Return a trained network; if the biLM was trained too, restore its trained weights."""
        head = self.head(seed)
        head.load_state_dict(trained.weights)
        if isinstance(self.encoder.cache, LiveVectors):
            self.encoder.cache.bilm.load_state_dict(trained.bilm_weights)
        return head

    def predictions(self, head: TaskHead, part: str) -> list[Prediction]:
        """Return a network's predictions for one part of the data, with spans marked by BIOES tags."""
        description = replace(self.describe(), scheme="BIOES" if self.dataset.scheme else "")
        found = predict_items(head, self.items[part], self.encoder)
        return [as_prediction(description, each, raw) for each, raw in zip(self.texts[part], found, strict=True)]

    def mix(self, head: TaskHead) -> Mixture:
        """Return a mixture of linear models and a trained network, chosen on held-out labels."""
        parts = self._scored_parts()
        network = {part: network_logs(predict_items(head, self.items[part], self.encoder)) for part in parts}
        cache, word2vec = self.encoder.cache, self.encoder.word2vec
        assert not isinstance(cache, LiveVectors)  # with --fine-tune the network is alone

        def score(classes: NDArray[np.int64], logs: Floats) -> float:
            examples = [Example(("",), (self.labels[number],)) for number in classes]
            found = score_predictions(examples, class_predictions(logs, self.labels), marks_spans=False)
            return float(found[self.metric])

        return fit_mixture(
            LinearModels(self.dataset, self.texts, cache=lambda: cache, word2vec=word2vec, seed=self.job.files.seed),
            linear_names(self.job.settings.inputs),
            self.dataset,
            self.labels,
            network,
            score=score,
            reporter=self.reporter,
        )

    def describe(
        self, scores: Mapping[str, Any] | None = None, head: TaskHead | None = None, mixture: Mixture | None = None
    ) -> TaskDescription:
        """Return the content of task.json for a trained network or a mixture with it, and its scores."""
        bundle, job = self.embedder.bundle, self.job
        reading = {"unknown": self.embedder.unknown, "precision": self.embedder.precision}
        is_kept = mixture is None or NETWORK in mixture.weights
        layer_weights = {place: mix.layer_weights() for place, mix in head.mixes().items()} if head and is_kept else {}
        return TaskDescription(
            settings=job.settings,
            sizes=self.sizes,
            labels=self.labels,
            scheme=self.dataset.scheme,
            by_words=self.dataset.by_words or job.settings.kind != "tag",
            alphabet=self.encoder.characters.characters if self.encoder.characters else "",
            mean=self.mean,
            scale=self.scale,
            model={"path": str(bundle.path.absolute()), "digest": bundle.digest, **reading},
            training={
                **asdict(job.training),
                "seeds": list(job.seeds()),
                "files": [path.name for path in self.dataset.files.values()],
                "columns": list(self.dataset.columns),
                **{f"{part}_examples": len(examples) for part, examples in self.dataset.parts().items()},
            },
            scores={**(scores or {}), **({"members": mixture.figures()} if mixture else {})},
            members=mixture.weights if mixture else {},
            layer_weights=layer_weights,
        )

    def write(self, output: Path, trained: Sequence[TrainedHead]) -> FitReport:
        """Write the best trained network to its folder."""
        best, mixture = max(range(len(trained)), key=lambda number: (trained[number].best_score, -number)), None
        by_seed: dict[str, Any] = {}
        for number, (seed, each) in enumerate(zip(self.job.seeds(), trained, strict=True)):
            head = self.load(seed, each)
            predictions = {part: self.predictions(head, part) for part in self._scored_parts()}
            scores = {part: self._scores(found, part) for part, found in predictions.items()}
            by_seed[str(seed)] = {part: found[self.metric] for part, found in scores.items()}
            if number == best:
                chosen, chosen_predictions, chosen_scores = head, predictions, scores
        if self.job.settings.head == "mixture":
            mixture = self.mix(chosen)
            chosen_predictions = {part: class_predictions(logs, self.labels) for part, logs in mixture.logs.items()}
            chosen_scores = {part: self._scores(found, part) for part, found in chosen_predictions.items()}
        facts = {"metric": self.metric, "chosen_seed": self.job.seeds()[best], "seeds": by_seed}
        description = self.describe({**facts, **chosen_scores}, chosen, mixture)
        lines = [line for each in trained for line in each.lines]
        with atomic_path(output) as unfinished:
            unfinished.mkdir()
            layout = TaskLayout(unfinished)
            if description.has_network:
                save_file(trained[best].weights, layout.head)
            if mixture is not None and mixture.linear:
                save_members(layout.linear, mixture.linear)
            layout.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
            self._draw(layout, lines, chosen_predictions, output.name)
            if trained[best].bilm_weights:
                model = self._write_bilm(layout.model, trained[best].bilm_weights)
                description = replace(description, model=model)
            description.save(layout)
        return FitReport(output, description, self.metric, [*self._doubts(chosen_scores)])

    def _doubts(self, scores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """Yield reasons not to use a network: labels that are ids, or scores reached without any network."""
        settings, part = self.job.settings, self._scored_parts()[-1]
        examples, value = self.dataset.parts()[part], float(scores[part][self.metric])
        tested = counted(len(examples), f"{part} example")
        if not settings.regression and has_ids_as_labels(self.dataset.train):
            yield (
                f"The {len(self.labels):,} labels of {len(self.dataset.train):,} training examples look like ids, from"
                " which nothing can be learned. Name another column: --label-column NAME"
            )
        elif self.metric == "accuracy":
            counts = Counter(label for example in self.dataset.train for label in example.labels)
            usual = max(self.labels, key=lambda label: counts[label])
            given = [label for example in examples for label in example.labels]
            share = given.count(usual) / len(given)
            if value <= share:
                yield (
                    f"{self.metric} {value:.4f} on {tested} is no better than always answering {usual[:40]!r}"
                    f" ({share:.4f})."
                )
        elif value <= 0:
            yield f"{self.metric} {value:.4f} on {tested}: it has learned nothing that shows there."

    def _write_bilm(self, folder: Path, weights: Mapping[str, Tensor]) -> dict[str, Any]:
        """Write the biLM trained with the network as a bundle; return the model's entry in task.json."""
        bundle = self.embedder.bundle
        bilm = copy.deepcopy(bundle.bilm).cpu()
        bilm.load_state_dict(weights)
        write_tuned(folder, bundle, bilm)
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
        for line in describe_numbers(labels, layout.confusion.name):
            self.reporter.note(line)
